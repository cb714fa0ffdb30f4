#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* One line of /proc/self/status, which gives kB; 0 when it is not there. */
static int64_t status_bytes(const char *field) {
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) return 0;
  char line[256];
  long long kilobytes = 0;
  size_t length = strlen(field);
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, field, length) && line[length] == ':' && sscanf(line + length + 1, "%lld", &kilobytes) == 1) break;
  fclose(status);
  return (int64_t)kilobytes * 1024;
}

int64_t resident_bytes(void) { return status_bytes("VmRSS"); }

int64_t peak_resident_bytes(const char **source) {
  int64_t peak = status_bytes("VmHWM");
  *source = "VmHWM";
  if (peak > 0) return peak;
  /* Second choice: on Linux it survives exec, so a large parent shows in it. */
  struct rusage usage;
  *source = "ru_maxrss";
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}
