/* The one JSON document that the runner prints, and the way it ends when something is wrong. */
#ifndef ORTRIM_REPORT_H
#define ORTRIM_REPORT_H

#include <stddef.h>
#include <stdint.h>

enum exit_code {
  EXIT_MEMORY = 1,
  EXIT_USAGE = 2,
  EXIT_LIBRARY = 3,
  EXIT_MODEL = 4,
  EXIT_INPUT = 5,
  EXIT_INFERENCE = 6,
  EXIT_OUTPUT = 7,
};

/* Keeps standard output for the report: whatever a library prints goes to standard error instead. */
void report_open(void);
/* Sends the report to a file instead; NULL keeps standard output. */
void report_to(const char *path);
/* Ends the report and the program's work with it. */
void report_close(void);

/* Says on standard error what is being done, so that a crash has a place; failures name the stage too. */
void enter_stage(const char *stage, const char *subject);
/* Prints an error report instead of the one under way and exits with `code`. Never returns. */
_Noreturn void fail(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_string(const char *key, const char *value);
void json_integer(const char *key, int64_t value);
void json_null(const char *key);
void json_milliseconds(const char *key, double value);
void json_samples(const char *key, const double *values, size_t count);

/* malloc and realloc that end the program when memory is short. */
void *allocate(size_t size);
void *resize(void *memory, size_t size);

#endif
