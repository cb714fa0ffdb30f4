#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The document grows in memory and is written at the end: a failure half way leaves no half of one. */
static struct {
  int descriptor;
  const char *path;
  const char *stage;
  char *text;
  size_t length, capacity;
  bool needs_comma;
} report = {.descriptor = STDOUT_FILENO, .stage = "arguments"};

void *allocate(size_t size) { return resize(NULL, size); }

void *resize(void *memory, size_t size) {
  void *larger = realloc(memory, size ? size : 1);
  if (!larger) {
    static const char message[] = "{\"schema\":\"ortrim-runner/1\",\"status\":\"error\",\"stage\":\"memory\","
                                  "\"exit_code\":1,\"message\":\"out of memory\"}\n";
    ssize_t written = write(report.descriptor, message, sizeof message - 1);
    _exit(written < 0 ? EXIT_OUTPUT : EXIT_MEMORY);
  }
  return larger;
}

void report_open(void) {
  int kept = dup(STDOUT_FILENO);
  if (kept < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return;
  report.descriptor = kept;
}

void report_to(const char *path) { report.path = path; }

static void append(const char *text, size_t length) {
  if (report.capacity - report.length < length) {
    report.capacity = (report.length + length) * 2;
    report.text = resize(report.text, report.capacity);
  }
  memcpy(report.text + report.length, text, length);
  report.length += length;
}

static void append_text(const char *text) { append(text, strlen(text)); }

static void append_quoted(const char *text) {
  append_text("\"");
  for (; *text; text++) {
    char escaped[8];
    unsigned char byte = (unsigned char)*text;
    if (byte == '"' || byte == '\\') append(escaped, (size_t)snprintf(escaped, sizeof escaped, "\\%c", byte));
    else if (byte < 0x20 || byte == 0x7f) append(escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", byte));
    else append(text, 1);
  }
  append_text("\"");
}

static void start_value(const char *key) {
  if (report.needs_comma) append_text(",");
  if (key) {
    append_quoted(key);
    append_text(":");
  }
  report.needs_comma = true;
}

void json_open(const char *key, char bracket) {
  start_value(key);
  append(&bracket, 1);
  report.needs_comma = false;
}

void json_close(char bracket) {
  append(&bracket, 1);
  report.needs_comma = true;
}

void json_string(const char *key, const char *value) {
  start_value(key);
  if (value) append_quoted(value);
  else append_text("null");
}

void json_integer(const char *key, int64_t value) {
  char text[32];
  start_value(key);
  append(text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

void json_null(const char *key) {
  start_value(key);
  append_text("null");
}

void json_milliseconds(const char *key, double value) {
  char text[64];
  start_value(key);
  /* Not %f: its decimal point is the locale's, which a library that is loaded may set for the whole process. */
  long long nanoseconds = (long long)(value * 1e6 + 0.5);
  append(text, (size_t)snprintf(text, sizeof text, "%lld.%06lld", nanoseconds / 1000000, nanoseconds % 1000000));
}

void json_samples(const char *key, const double *values, size_t count) {
  json_open(key, '[');
  for (size_t i = 0; i < count; i++) json_milliseconds(NULL, values[i]);
  json_close(']');
}

static bool write_report(FILE *file) {
  bool whole = fwrite(report.text, 1, report.length, file) == report.length;
  return fclose(file) == 0 && whole;
}

void report_close(void) {
  append_text("\n");
  FILE *file = report.path ? fopen(report.path, "wb") : fdopen(report.descriptor, "wb");
  if (file && write_report(file)) return;
  fprintf(stderr, "runner: the report cannot be written\n");
  exit(EXIT_OUTPUT);
}

void enter_stage(const char *stage, const char *subject) {
  report.stage = stage;
  fprintf(stderr, "runner: %s %s\n", stage, subject);
}

void fail(enum exit_code code, const char *format, ...) {
  char message[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  report.length = 0;
  report.needs_comma = false;
  json_open(NULL, '{');
  json_string("schema", "ortrim-runner/1");
  json_string("status", "error");
  json_string("stage", report.stage);
  json_integer("exit_code", code);
  json_string("message", message);
  json_close('}');
  report_close();
  /* Not exit(): the destructors of a library that is in trouble could hang or crash. */
  _exit((int)code);
}
