/* A plugin of qemu's user emulation that writes how many instructions were executed whenever the runner asks for it.
 *
 * The runner calls `instructions_now` right before and right after an inference: of an unstripped one, qemu knows where
 * that is, if it has a log. Blocks are counted as they begin, for all threads without a lock: one thread is exact. The
 * declarations are those of version 1 of qemu's interface for plugins (7.2 to 8.2), since Debian has no header for it.
 *
 * With `library=PATH` and `functions=FILE`, where the functions of a library begin, one hexadecimal offset a line in
 * ascending order, it follows their calls, too, and writes what was executed in each, without what others of them took
 * that it called. A call returns where the block ends that was executed before the function's first one. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block;
struct instruction;
enum { NO_REGISTERS = 0, ADD_64_BITS = 0, MOST_FUNCTIONS = 4096, DEEPEST = 64 };
size_t qemu_plugin_tb_n_insns(const struct block *block);
uint64_t qemu_plugin_tb_vaddr(const struct block *block);
struct instruction *qemu_plugin_tb_get_insn(const struct block *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct instruction *instruction);
size_t qemu_plugin_insn_size(const struct instruction *instruction);
const char *qemu_plugin_insn_symbol(const struct instruction *instruction);
void *qemu_plugin_insn_haddr(const struct instruction *instruction);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, void (*translated)(uint64_t plugin, struct block *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct block *block, void (*begun)(unsigned processor, void *data),
                                          int registers, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *block, int operation, void *counter, uint64_t added);
void qemu_plugin_outs(const char *text);

int qemu_plugin_version = 1;
static uint64_t executed, asked_at; /* asked_at: where the function begins, which is what runs of it first */

static char library[4096]; /* empty: none is followed */
static uint64_t functions[MOST_FUNCTIONS], taken[MOST_FUNCTIONS + 1], loaded_at, ended_at;
static size_t function_count, depth;
static struct {
  uint64_t returns_to;
  size_t function;
} calls[DEEPEST];
struct followed {
  uint64_t begin, end, count;
  size_t function; /* which begins there; function_count: none does */
};

/* qemu's own map of memory has the program's, whose addresses are `apart` from it. */
static void find_library(uint64_t apart) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096 + 128];
  while (maps && !loaded_at && fgets(line, sizeof line, maps)) {
    const char *path = strchr(line, '/');
    if (path && !strncmp(path, library, strlen(library)) && path[strlen(library)] == '\n')
      loaded_at = strtoull(line, NULL, 16) - apart;
  }
  if (maps) fclose(maps);
}

static void asked(unsigned processor, void *data) {
  (void)processor, (void)data;
  char line[64];
  for (size_t i = 0; i < function_count; i++) {
    if (!taken[i]) continue;
    snprintf(line, sizeof line, "function %zu %" PRIu64 "\n", i, taken[i]);
    qemu_plugin_outs(line);
  }
  snprintf(line, sizeof line, "instructions %" PRIu64 "\n", executed);
  qemu_plugin_outs(line);
}

static void followed(unsigned processor, void *data) {
  (void)processor;
  const struct followed *block = data;
  for (size_t i = 0; i < depth; i++) /* one that another jumps to returns with that */
    if (calls[i].returns_to == block->begin) depth = i;
  if (block->function != function_count && depth < DEEPEST) {
    calls[depth].returns_to = ended_at;
    calls[depth++].function = block->function;
  }
  taken[depth ? calls[depth - 1].function : function_count] += block->count;
  ended_at = block->end;
}

static int ordered(const void *one, const void *other) {
  const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static void follow(struct block *block, uint64_t begin) {
  const struct instruction *last = qemu_plugin_tb_get_insn(block, qemu_plugin_tb_n_insns(block) - 1);
  const uint64_t offset = begin - loaded_at;
  const uint64_t *found = bsearch(&offset, functions, function_count, sizeof offset, ordered);
  struct followed *kept = malloc(sizeof *kept);
  kept->begin = begin, kept->end = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
  kept->count = qemu_plugin_tb_n_insns(block);
  kept->function = loaded_at && found ? (size_t)(found - functions) : function_count;
  qemu_plugin_register_vcpu_tb_exec_cb(block, followed, NO_REGISTERS, kept);
}

static void translated(uint64_t plugin, struct block *block) {
  (void)plugin;
  const struct instruction *first = qemu_plugin_tb_get_insn(block, 0);
  const char *function = qemu_plugin_insn_symbol(first);
  const uint64_t begin = qemu_plugin_tb_vaddr(block);
  if (!asked_at && function && !strcmp(function, "instructions_now")) {
    asked_at = begin;
    if (*library) find_library((uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first) - begin);
  }
  if (asked_at && begin == asked_at) qemu_plugin_register_vcpu_tb_exec_cb(block, asked, NO_REGISTERS, NULL);
  if (function_count) follow(block, begin);
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_64_BITS, &executed, qemu_plugin_tb_n_insns(block));
}

int qemu_plugin_install(uint64_t plugin, const void *machine, int count, char **words) {
  (void)machine;
  for (int i = 0; i < count; i++) {
    FILE *file = !strncmp(words[i], "functions=", 10) ? fopen(words[i] + 10, "r") : NULL;
    while (file && function_count < MOST_FUNCTIONS && fscanf(file, "%" SCNx64, &functions[function_count]) == 1)
      function_count++;
    if (file) fclose(file);
    if (!strncmp(words[i], "library=", 8)) snprintf(library, sizeof library, "%s", words[i] + 8);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  return 0;
}
