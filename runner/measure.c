#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#else
#define _GNU_SOURCE /* syscall */
#endif
#include "measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach/mach.h>
#elif defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

double waited_ms(void) {
  FILE *statistics = fopen("/proc/thread-self/schedstat", "r"); /* run time, time in a run queue, both in ns */
  unsigned long long waited;
  if (!statistics) return UNKNOWN_MS;
  int found = fscanf(statistics, "%*u %llu", &waited);
  fclose(statistics);
  return found == 1 ? (double)waited / 1e6 : UNKNOWN_MS;
}

#if defined(__linux__)

static int counter = -1;

void count_instructions(void) {
  struct perf_event_attr wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
  wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  wanted.inherit = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  counter = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t instructions_now(void) {
  struct {
    uint64_t count, enabled, running;
  } found;
  if (counter < 0 || read(counter, &found, sizeof found) != (ssize_t)sizeof found) return UNKNOWN_INSTRUCTIONS;
  /* The counter was lent to somebody else for a while, or the processor is not of the kind that it belongs to. */
  return found.running < found.enabled || !found.count ? UNKNOWN_INSTRUCTIONS : (int64_t)found.count;
}

#else

void count_instructions(void) {}

int64_t instructions_now(void) { return UNKNOWN_INSTRUCTIONS; }

#endif

#if defined(__APPLE__)

/* What iOS holds against an app's limit, and Xcode shows: clean pages of files, code among them, do not count. False
 * where the kernel is too old to tell the most. */
static int footprint(int64_t *now, int64_t *most) {
  task_vm_info_data_t info;
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  memset(&info, 0, sizeof info);
  if (task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) != KERN_SUCCESS) return 0;
  *now = (int64_t)info.phys_footprint;
  *most = info.ledger_phys_footprint_peak;
  return count >= TASK_VM_INFO_REV3_COUNT;
}

int64_t resident_bytes(void) {
  int64_t now, most;
  return footprint(&now, &most) ? now : UNKNOWN_BYTES;
}

/* Programs cannot reset the ledger's high-water mark. */
void peak_reset(void) {}

struct peak peak_read(void) {
  int64_t now, most;
  if (footprint(&now, &most)) return (struct peak){most > now ? most : now, UNKNOWN_BYTES, "phys_footprint"};
  struct rusage usage; /* In bytes, not in kB as elsewhere. */
  int64_t ever = getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss : UNKNOWN_BYTES;
  return (struct peak){ever, UNKNOWN_BYTES, "ru_maxrss"};
}

#else

/* One line of /proc/self/status, which gives kB; UNKNOWN_BYTES where it is not there, or 0, which no process has. */
static int64_t status_bytes(const char *field) {
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) return UNKNOWN_BYTES;
  char line[256];
  long long kilobytes = 0;
  size_t length = strlen(field);
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, field, length) && line[length] == ':' && sscanf(line + length + 1, "%lld", &kilobytes) == 1) break;
  fclose(status);
  return kilobytes > 0 ? (int64_t)kilobytes * 1024 : UNKNOWN_BYTES;
}

int64_t resident_bytes(void) { return status_bytes("VmRSS"); }

/* The high-water mark before it was reset; UNKNOWN_BYTES: it was not. */
static int64_t before_reset = UNKNOWN_BYTES;

void peak_reset(void) {
  int64_t peak = status_bytes("VmHWM");
  /* Never made: where /proc is only a folder, nothing is left in it. */
  int descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  if (write(descriptor, "5", 1) == 1) before_reset = peak; /* 5: CLEAR_REFS_MM_HIWATER_RSS, proc(5) */
  close(descriptor);
}

struct peak peak_read(void) {
  int64_t now = status_bytes("VmHWM");
  if (now > 0)
    return (struct peak){now > before_reset ? now : before_reset, before_reset > 0 ? now : UNKNOWN_BYTES, "VmHWM"};
  /* Second choice: it survives exec, so a large parent shows in it; a reset, which needs /proc too, lowers it. */
  struct rusage usage;
  int64_t ever = getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : UNKNOWN_BYTES;
  return (struct peak){ever, UNKNOWN_BYTES, "ru_maxrss"};
}

#endif
