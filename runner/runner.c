/* Loads a model with ONNX Runtime from a library given by path, runs it on recorded inputs, and prints what it took.
 *
 * One process measures one library with one model, so that the peak of its memory is the library's own. The same
 * binary measures the trimmed library and the official one. It prints exactly one JSON document; a library that was
 * built without exceptions aborts on errors, which the caller sees as a signal.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"
#include "measure.h"
#include "options.h"
#include "outputs.h"
#include "report.h"
#include "runtime.h"
#include "trace.h"

struct times {
  double input_ms, inference_ms, output_ms;
  int64_t instructions; /* of the inference, or UNKNOWN_INSTRUCTIONS */
};

/* One run, whose outputs stay in `outputs` until they are released. */
static struct times run_once(const struct runtime *runtime, struct inputs *inputs, struct outputs *outputs) {
  double start = now_ms();
  inputs_make(inputs, runtime);
  double made = now_ms();
  int64_t before = instructions_now();
  double begun = now_ms();
  require(runtime, EXIT_INFERENCE,
          runtime->api->Run(runtime->session, NULL, inputs->names, inputs->values, inputs->count,
                            (const char *const *)runtime->output_names, runtime->output_count, outputs->values));
  double inferred = now_ms();
  int64_t after = instructions_now();
  double counted = now_ms();
  outputs_copy(outputs, runtime);
  int known = before != UNKNOWN_INSTRUCTIONS && after != UNKNOWN_INSTRUCTIONS;
  return (struct times){made - start, inferred - begun, now_ms() - counted,
                        known ? after - before : UNKNOWN_INSTRUCTIONS};
}

static struct times run_and_release(const struct runtime *runtime, struct inputs *inputs, struct outputs *outputs) {
  struct times times = run_once(runtime, inputs, outputs);
  outputs_release(outputs, runtime);
  inputs_release(inputs, runtime);
  return times;
}

/* OUTPUTS/CASE, made when absent; NULL when outputs are not asked for. */
static char *output_folder(const struct options *options, const char *name) {
  if (!options->outputs) return NULL;
  enter_stage("output", options->outputs);
  size_t size = strlen(options->outputs) + strlen(name) + 2;
  char *folder = allocate(size);
  snprintf(folder, size, "%s/%s", options->outputs, name);
  make_folder(options->outputs);
  make_folder(folder);
  return folder;
}

/* The first run, apart from the others: it allocates what later runs reuse. Its outputs are the ones saved. */
static void first_run(const struct runtime *runtime, struct inputs *inputs, struct outputs *outputs,
                      const char *name, char *folder) {
  enter_stage("first run", name);
  struct times first = run_once(runtime, inputs, outputs);
  json_milliseconds("first_run_ms", first.input_ms + first.inference_ms + first.output_ms);
  enter_stage("output", folder ? folder : name);
  outputs_save(outputs, runtime, folder);
  outputs_release(outputs, runtime);
  inputs_release(inputs, runtime);
  free(folder);
}

/* Null unless all are known: some alone would be those of other runs than the times'. */
static void report_instructions(const struct times *times, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (times[i].instructions == UNKNOWN_INSTRUCTIONS) {
      json_null("instructions");
      return;
    }
  json_open("instructions", '[');
  for (size_t i = 0; i < count; i++) json_integer(NULL, times[i].instructions);
  json_close(']');
}

static void report_samples(const struct times *times, size_t count) {
  double *column = allocate(count * sizeof *column);
  for (size_t i = 0; i < count; i++) column[i] = times[i].input_ms;
  json_samples("input_ms", column, count);
  for (size_t i = 0; i < count; i++) column[i] = times[i].inference_ms;
  json_samples("inference_ms", column, count);
  for (size_t i = 0; i < count; i++) column[i] = times[i].output_ms;
  json_samples("output_ms", column, count);
  free(column);
  report_instructions(times, count);
}

/* The measured runs: as many as asked for, but none is begun after the time limit except the first. */
static void measured_runs(const struct runtime *runtime, struct inputs *inputs, struct outputs *outputs,
                          const struct options *options) {
  struct times *times = allocate((size_t)options->runs * sizeof *times);
  double limit = now_ms() + options->seconds * 1e3;
  size_t done = 0;
  for (long i = 0; i < options->warmup && now_ms() < limit; i++) run_and_release(runtime, inputs, outputs);
  do times[done++] = run_and_release(runtime, inputs, outputs);
  while (done < (size_t)options->runs && now_ms() < limit);
  json_integer("runs", (int64_t)done);
  report_samples(times, done);
  free(times);
}

static void run_case(const struct runtime *runtime, const struct options *options, const struct setting *given) {
  struct inputs inputs;
  struct outputs outputs = {0};
  inputs_read(&inputs, runtime, given->value);
  outputs_prepare(&outputs, runtime);
  char *folder = output_folder(options, given->key);
  json_open(NULL, '{');
  json_string("name", given->key);
  first_run(runtime, &inputs, &outputs, given->key, folder);
  enter_stage("measured runs", given->key);
  measured_runs(runtime, &inputs, &outputs, options);
  json_close('}');
  inputs_free(&inputs, runtime);
  free(outputs.values);
  free(outputs.copy);
}

static void report_bytes(const char *key, int64_t bytes) {
  if (bytes == UNKNOWN_BYTES) json_null(key);
  else json_integer(key, bytes);
}

static void report_memory(int64_t opened, int64_t loaded) {
  struct peak peak = peak_read();
  json_open("memory", '{');
  report_bytes("opened_rss_bytes", opened);
  report_bytes("loaded_rss_bytes", loaded);
  report_bytes("peak_rss_bytes", peak.ever);
  report_bytes("inference_peak_rss_bytes", peak.since_reset);
  json_string("peak_source", peak.source);
  json_close('}');
}

static void measure(struct runtime *runtime, const struct options *options) {
  count_instructions();
  runtime_open(runtime, options);
  int64_t opened = resident_bytes();
  runtime_load(runtime, options);
  int64_t loaded = resident_bytes();
  peak_reset();
  json_string("runtime_version", runtime->version);
  json_milliseconds("open_ms", runtime->open_ms);
  json_milliseconds("load_ms", runtime->load_ms);
  if (runtime->load_waited_ms < 0) json_null("load_waited_ms");
  else json_milliseconds("load_waited_ms", runtime->load_waited_ms);
  json_open("cases", '[');
  for (size_t i = 0; i < options->case_count; i++) run_case(runtime, options, &options->cases[i]);
  json_close(']');
  report_memory(opened, loaded);
  trace_end(runtime, options);
}

int main(int count, char **words) {
  report_open();
  struct options options = options_read(count, words);
  struct runtime runtime = {0};
  json_open(NULL, '{');
  json_string("schema", "ortrim-runner/1");
  json_string("status", "ok");
  measure(&runtime, &options);
  json_close('}');
  report_close();
  /* The session is not released and destructors do not run: a crash in them would hide a good measurement. */
  fflush(NULL);
  _exit(0);
}
