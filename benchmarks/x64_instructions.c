/* A plugin of qemu's user emulation that writes how many instructions were executed whenever the runner asks for it.
 *
 * The runner calls `instructions_now` right before and right after an inference: of an unstripped one, qemu knows where
 * that is, if it has a log. Blocks are counted as they begin, for all threads without a lock: one thread is exact. The
 * declarations are those of version 1 of qemu's interface for plugins (7.2 to 8.2), since Debian has no header for it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct block;
struct instruction;
enum { NO_REGISTERS = 0, ADD_64_BITS = 0 };
size_t qemu_plugin_tb_n_insns(const struct block *block);
uint64_t qemu_plugin_tb_vaddr(const struct block *block);
struct instruction *qemu_plugin_tb_get_insn(const struct block *block, size_t index);
const char *qemu_plugin_insn_symbol(const struct instruction *instruction);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, void (*translated)(uint64_t plugin, struct block *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct block *block, void (*begun)(unsigned processor, void *data),
                                          int registers, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *block, int operation, void *counter, uint64_t added);
void qemu_plugin_outs(const char *text);

int qemu_plugin_version = 1;
static uint64_t executed, asked_at; /* asked_at: where the function begins, which is what runs of it first */

static void asked(unsigned processor, void *data) {
  (void)processor, (void)data;
  char line[40];
  snprintf(line, sizeof line, "instructions %" PRIu64 "\n", executed);
  qemu_plugin_outs(line);
}

static void translated(uint64_t plugin, struct block *block) {
  (void)plugin;
  const char *function = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
  if (!asked_at && function && !strcmp(function, "instructions_now")) asked_at = qemu_plugin_tb_vaddr(block);
  if (asked_at && qemu_plugin_tb_vaddr(block) == asked_at)
    qemu_plugin_register_vcpu_tb_exec_cb(block, asked, NO_REGISTERS, NULL);
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_64_BITS, &executed, qemu_plugin_tb_n_insns(block));
}

int qemu_plugin_install(uint64_t plugin, const void *machine, int count, char **words) {
  (void)machine, (void)count, (void)words;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  return 0;
}
