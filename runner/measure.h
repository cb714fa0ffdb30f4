/* Time and memory of this process. */
#ifndef ORTRIM_MEASURE_H
#define ORTRIM_MEASURE_H

#include <stdint.h>

/* Milliseconds of the monotonic clock. */
double now_ms(void);
/* A number that the system does not tell. */
#define UNKNOWN_BYTES INT64_C(-1)
#define UNKNOWN_MS (-1.0)
#define UNKNOWN_INSTRUCTIONS INT64_C(-1)
/* Milliseconds that this thread was ready to run and waited for a processor, or UNKNOWN_MS (not Linux). */
double waited_ms(void);

/* Has the processor count what this process executes, in threads that begin later, too. Changes nothing where the system
 * lets nobody, or the processor counts nothing. Android's filter of system calls lets apps ask (bionic's
 * SECCOMP_ALLOWLIST_COMMON.TXT, since Android 8). */
void count_instructions(void);
/* Instructions so far, those of the kernel apart, or UNKNOWN_INSTRUCTIONS. */
int64_t instructions_now(void);

/* Resident bytes now, or UNKNOWN_BYTES. */
int64_t resident_bytes(void);

struct peak {
  int64_t ever;         /* the most bytes that were ever resident */
  int64_t since_reset;  /* the most since peak_reset, or UNKNOWN_BYTES */
  const char *source;   /* who told */
};
/* Has the system count from now on; whatever it counted is kept. Changes nothing where that is not possible. */
void peak_reset(void);
struct peak peak_read(void);

#endif
