#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

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
