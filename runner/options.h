/* The runner's command line. */
#ifndef ORTRIM_OPTIONS_H
#define ORTRIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct setting {
  char *key;
  char *value;
};

struct options {
  const char *library;
  const char **companions;       /* libraries that the library needs, opened before it */
  size_t companion_count;
  const char *model;
  const char *outputs;           /* NULL: outputs are not saved */
  const char *json;              /* NULL: standard output */
  const char *optimization_level; /* NULL: the runtime's own default */
  const char **providers;        /* execution providers beside the CPU's */
  size_t provider_count;
  const char *load;              /* how the model's bytes reach the runtime: file, bytes or map */
  const char *session;           /* session.json, whose settings replace the others; NULL: there is none */
  long runs, warmup, threads, inter_op_threads;
  double seconds;                /* limit of the measured runs of one case */
  bool allow_spinning, arena, memory_pattern, trace;
  struct setting *cases;         /* name and folder */
  size_t case_count;
  struct setting *configuration; /* session configuration entries */
  size_t configuration_count;
};

/* Reads the arguments or fails with EXIT_USAGE. */
struct options options_read(int count, char **words);
/* Adds an execution provider, whose name stays the caller's. */
void add_provider(struct options *options, const char *name);
/* Returns a word that --load takes, or fails with EXIT_USAGE. */
const char *way_to_load(const char *option, const char *word);

#endif
