#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MOST_BYTES = 1 << 20, DEEPEST = 16 };

struct reader {
  const char *at; /* ends with a zero byte */
  struct options *options;
  const char *file; /* of the model */
};

static _Noreturn void damaged(const struct reader *reader) {
  fail(EXIT_USAGE, "%s is not a session.json of the schema ortrim-session/1", reader->options->session);
}

static void skip_blanks(struct reader *reader) { reader->at += strspn(reader->at, " \t\r\n"); }

static bool take(struct reader *reader, char wanted) {
  skip_blanks(reader);
  if (*reader->at != wanted) return false;
  reader->at++;
  return true;
}

static void expect(struct reader *reader, char wanted) {
  if (!take(reader, wanted)) damaged(reader);
}

/* A string in memory of its own; ortrim writes none that needs an escape. */
static char *take_string(struct reader *reader) {
  expect(reader, '"');
  size_t length = strcspn(reader->at, "\"\\\n");
  if (reader->at[length] != '"') damaged(reader);
  char *text = memcpy(allocate(length + 1), reader->at, length);
  text[length] = '\0';
  reader->at += length + 1;
  return text;
}

static long take_number(struct reader *reader) {
  char *end = NULL;
  skip_blanks(reader);
  long number = strtol(reader->at, &end, 10);
  if (end == reader->at || number < 1 || number > 1024) damaged(reader);
  reader->at = end;
  return number;
}

static bool take_word(struct reader *reader, const char *word) {
  skip_blanks(reader);
  if (strncmp(reader->at, word, strlen(word)) != 0) return false;
  reader->at += strlen(word);
  return true;
}

static bool take_truth(struct reader *reader) {
  if (take_word(reader, "true")) return true;
  if (!take_word(reader, "false")) damaged(reader);
  return false;
}

typedef void (*member)(struct reader *reader, char *key, int depth);

static void take_object(struct reader *reader, member act, int depth) {
  if (depth > DEEPEST) damaged(reader);
  expect(reader, '{');
  if (take(reader, '}')) return;
  do {
    char *key = take_string(reader);
    expect(reader, ':');
    act(reader, key, depth + 1);
  } while (take(reader, ','));
  expect(reader, '}');
}

static void skip_value(struct reader *reader, char *key, int depth);

static void skip_array(struct reader *reader, int depth) {
  if (depth > DEEPEST) damaged(reader);
  expect(reader, '[');
  if (take(reader, ']')) return;
  do skip_value(reader, NULL, depth + 1);
  while (take(reader, ','));
  expect(reader, ']');
}

/* A key that this runner does not know is of a later version and changes nothing. */
static void skip_value(struct reader *reader, char *key, int depth) {
  (void)key;
  skip_blanks(reader);
  if (*reader->at == '{') take_object(reader, skip_value, depth);
  else if (*reader->at == '[') skip_array(reader, depth);
  else if (*reader->at == '"') take_string(reader);
  else {
    size_t length = strcspn(reader->at, ",}[]{\" \t\r\n");
    if (length == 0) damaged(reader);
    reader->at += length;
  }
}

static void take_entry(struct reader *reader, char *key, int depth) {
  struct options *options = reader->options;
  (void)depth;
  options->configuration = resize(options->configuration, (options->configuration_count + 1) * sizeof(struct setting));
  options->configuration[options->configuration_count++] = (struct setting){.key = key, .value = take_string(reader)};
}

static void take_providers(struct reader *reader) {
  expect(reader, '[');
  if (take(reader, ']')) return;
  do add_provider(reader->options, take_string(reader));
  while (take(reader, ','));
  expect(reader, ']');
}

static void take_setting(struct reader *reader, char *key, int depth) {
  struct options *options = reader->options;
  if (!strcmp(key, "load")) options->load = way_to_load(key, take_string(reader));
  else if (!strcmp(key, "intra_op_num_threads")) options->threads = take_number(reader);
  else if (!strcmp(key, "inter_op_num_threads")) options->inter_op_threads = take_number(reader);
  else if (!strcmp(key, "enable_cpu_mem_arena")) options->arena = take_truth(reader);
  else if (!strcmp(key, "enable_mem_pattern")) options->memory_pattern = take_truth(reader);
  else if (!strcmp(key, "graph_optimization_level"))
    options->optimization_level = strcmp(take_string(reader), "ORT_DISABLE_ALL") ? "all" : "none";
  else if (!strcmp(key, "execution_providers")) take_providers(reader);
  else if (!strcmp(key, "session_configuration")) take_object(reader, take_entry, depth);
  else skip_value(reader, key, depth);
}

/* A model's file is its name with `.ort`, so that the name decides before the settings are read. */
static void take_model(struct reader *reader, char *key, int depth) {
  size_t length = strlen(key);
  bool is_it = !strncmp(reader->file, key, length) && !strcmp(reader->file + length, ".ort");
  take_object(reader, is_it ? take_setting : skip_value, depth);
  if (is_it) reader->file = "";
}

static void take_top(struct reader *reader, char *key, int depth) {
  if (!strcmp(key, "models")) take_object(reader, take_model, depth);
  else if (!strcmp(key, "schema") && strcmp(take_string(reader), "ortrim-session/1")) damaged(reader);
  else if (strcmp(key, "schema")) skip_value(reader, key, depth);
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
  char *text = allocate(MOST_BYTES + 1);
  size_t length = fread(text, 1, MOST_BYTES, file);
  bool whole = feof(file) && !ferror(file);
  fclose(file);
  if (!whole) fail(EXIT_USAGE, "%s: it cannot be read, or is too long", path);
  text[length] = '\0';
  return text;
}

void session_read(struct options *options) {
  const char *slash = strrchr(options->model, '/'), *file = slash ? slash + 1 : options->model;
  struct reader reader = {.at = read_text(options->session), .options = options, .file = file};
  take_object(&reader, take_top, 0);
  skip_blanks(&reader);
  if (*reader.at) damaged(&reader);
  if (*reader.file) fail(EXIT_USAGE, "%s has no settings for %s", options->session, file);
}
