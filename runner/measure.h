/* Time and memory of this process. */
#ifndef ORTRIM_MEASURE_H
#define ORTRIM_MEASURE_H

#include <stdint.h>

/* Milliseconds of the monotonic clock. */
double now_ms(void);
/* Resident bytes now; 0 where the system does not tell. */
int64_t resident_bytes(void);
/* The most bytes that were ever resident; `*source` says who told. */
int64_t peak_resident_bytes(const char **source);

#endif
