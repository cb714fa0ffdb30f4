#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "session.h"

static const char *const USAGE =
    "usage: ortrim-runner --library FILE [--preload FILE]... --model FILE [--case NAME=FOLDER]... [--runs N] "
    "[--warmup N] [--seconds S] [--outputs FOLDER] [--trace 0|1] [--json FILE] [--session FILE] "
    "[--load file|bytes|map] [--threads N] [--inter-op-threads N] [--allow-spinning 0|1] [--arena 0|1] [--memory-pattern 0|1] "
    "[--optimization-level none|basic|extended|all] [--provider NAME]... [--config KEY=VALUE]...";

static long whole_number(const char *option, const char *text, long low, long high) {
  char *end = NULL;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || end == text || *end || value < low || value > high)
    fail(EXIT_USAGE, "%s takes a whole number from %ld to %ld, not '%s'", option, low, high, text);
  return value;
}

static double duration(const char *option, const char *text) {
  char *end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end || !(value > 0 && value <= 86400))
    fail(EXIT_USAGE, "%s takes seconds above 0 and up to 86400, not '%s'", option, text);
  return value;
}

static void add_setting(struct setting **list, size_t *count, const char *option, char *word) {
  char *equals = strchr(word, '=');
  if (!equals || equals == word || !equals[1]) fail(EXIT_USAGE, "%s takes KEY=VALUE, not '%s'", option, word);
  *equals = '\0';
  *list = resize(*list, (*count + 1) * sizeof **list);
  (*list)[(*count)++] = (struct setting){.key = word, .value = equals + 1};
}

/* A case's name becomes a folder's name below --outputs. */
static void check_case(const struct options *options) {
  const char *name = options->cases[options->case_count - 1].key;
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (*name == '.' || strlen(name) > 100 || name[strspn(name, allowed)])
    fail(EXIT_USAGE, "--case: '%s' is not a name of letters, digits, '.', '_' and '-'", name);
  for (size_t i = 0; i + 1 < options->case_count; i++)
    if (!strcmp(options->cases[i].key, name)) fail(EXIT_USAGE, "--case: '%s' is given twice", name);
}

static void add_companion(struct options *options, const char *word) {
  size_t size = (options->companion_count + 1) * sizeof *options->companions;
  options->companions = resize(options->companions, size);
  options->companions[options->companion_count++] = word;
}

void add_provider(struct options *options, const char *name) {
  size_t size = (options->provider_count + 1) * sizeof *options->providers;
  options->providers = resize(options->providers, size);
  options->providers[options->provider_count++] = name;
}

static bool read_number(struct options *options, const char *option, const char *text) {
  if (!strcmp(option, "--runs")) options->runs = whole_number(option, text, 1, 1000000);
  else if (!strcmp(option, "--warmup")) options->warmup = whole_number(option, text, 0, 1000000);
  else if (!strcmp(option, "--threads")) options->threads = whole_number(option, text, 1, 1024);
  else if (!strcmp(option, "--inter-op-threads")) options->inter_op_threads = whole_number(option, text, 1, 1024);
  else if (!strcmp(option, "--allow-spinning")) options->allow_spinning = whole_number(option, text, 0, 1);
  else if (!strcmp(option, "--arena")) options->arena = whole_number(option, text, 0, 1);
  else if (!strcmp(option, "--memory-pattern")) options->memory_pattern = whole_number(option, text, 0, 1);
  else if (!strcmp(option, "--trace")) options->trace = whole_number(option, text, 0, 1);
  else if (!strcmp(option, "--seconds")) options->seconds = duration(option, text);
  else return false;
  return true;
}

const char *way_to_load(const char *option, const char *word) {
  if (strcmp(word, "file") && strcmp(word, "bytes") && strcmp(word, "map"))
    fail(EXIT_USAGE, "%s takes file, bytes or map, not '%s'", option, word);
  return word;
}

static void read_option(struct options *options, const char *option, char *word) {
  if (read_number(options, option, word)) return;
  if (!strcmp(option, "--library")) options->library = word;
  else if (!strcmp(option, "--preload")) add_companion(options, word);
  else if (!strcmp(option, "--model")) options->model = word;
  else if (!strcmp(option, "--outputs")) options->outputs = word;
  else if (!strcmp(option, "--json")) report_to(options->json = word);
  else if (!strcmp(option, "--session")) options->session = word;
  else if (!strcmp(option, "--load")) options->load = way_to_load(option, word);
  else if (!strcmp(option, "--optimization-level")) options->optimization_level = word;
  else if (!strcmp(option, "--provider")) add_provider(options, word);
  else if (!strcmp(option, "--config"))
    add_setting(&options->configuration, &options->configuration_count, option, word);
  else if (!strcmp(option, "--case")) {
    add_setting(&options->cases, &options->case_count, option, word);
    check_case(options);
  } else fail(EXIT_USAGE, "%s is not an option; %s", option, USAGE);
}

struct options options_read(int count, char **words) {
  struct options options = {.runs = 100, .warmup = 5, .threads = 1, .inter_op_threads = 1, .seconds = 3600, .arena = true};
  options.memory_pattern = true;
  options.load = "file";
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) fail(EXIT_USAGE, "%s: not an option, or its value is missing; %s", words[i], USAGE);
    read_option(&options, words[i], words[i + 1]);
  }
  if (!options.library || !options.model) fail(EXIT_USAGE, "--library and --model are required; %s", USAGE);
  if (options.session) session_read(&options);
  if (options.trace && !options.outputs) fail(EXIT_USAGE, "--trace 1 needs --outputs; %s", USAGE);
  return options;
}
