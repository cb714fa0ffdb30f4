#define _POSIX_C_SOURCE 200809L
#include "outputs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tensor.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 64 };

void outputs_prepare(struct outputs *outputs, const struct runtime *runtime) {
  size_t size = runtime->output_count * sizeof *outputs->values;
  outputs->values = memset(allocate(size), 0, size);
}

void make_folder(const char *path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST) fail(EXIT_OUTPUT, "%s: %s", path, strerror(errno));
}

void outputs_release(struct outputs *outputs, const struct runtime *runtime) {
  for (size_t i = 0; i < runtime->output_count; i++) {
    if (outputs->values[i]) runtime->api->ReleaseValue(outputs->values[i]);
    outputs->values[i] = NULL;
  }
}

/* What kind of value it is; unknown for an optional output that is not there. */
static ONNXType kind_of(const struct runtime *runtime, const OrtValue *value) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  int present = 0;
  if (!value) return kind;
  require(runtime, EXIT_INFERENCE, runtime->api->HasValue(value, &present));
  if (present) require(runtime, EXIT_INFERENCE, runtime->api->GetValueType(value, &kind));
  return kind;
}

/* Type and shape; `data` stays unset. */
static void describe(struct tensor *tensor, const struct runtime *runtime, const OrtValue *value) {
  const OrtApi *api = runtime->api;
  OrtTensorTypeAndShapeInfo *info = NULL;
  *tensor = (struct tensor){0};
  require(runtime, EXIT_INFERENCE, api->GetTensorTypeAndShape(value, &info));
  require(runtime, EXIT_INFERENCE, api->GetTensorElementType(info, &tensor->type));
  require(runtime, EXIT_INFERENCE, api->GetDimensionsCount(info, &tensor->rank));
  if (tensor->rank > MAX_RANK) fail(EXIT_INFERENCE, "an output has %zu dimensions", tensor->rank);
  require(runtime, EXIT_INFERENCE, api->GetDimensions(info, tensor->shape, tensor->rank));
  require(runtime, EXIT_INFERENCE, api->GetTensorShapeElementCount(info, &tensor->count));
  tensor->size = tensor->count * type_size(tensor->type);
  api->ReleaseTensorTypeAndShapeInfo(info);
}

static void make_room(struct outputs *outputs, size_t size) {
  if (size <= outputs->capacity) return;
  outputs->copy = resize(outputs->copy, size);
  outputs->capacity = size;
}

/* Strings, in the form of a .strings file: each one's length, then its bytes. */
static void copy_strings(struct outputs *outputs, const struct runtime *runtime, const OrtValue *value,
                         struct tensor *tensor) {
  tensor->size = 0;
  for (size_t i = 0; i < tensor->count; i++) {
    size_t length = 0;
    require(runtime, EXIT_INFERENCE, runtime->api->GetStringTensorElementLength(value, i, &length));
    make_room(outputs, tensor->size + sizeof(uint64_t) + length);
    uint64_t written = length;
    memcpy(outputs->copy + tensor->size, &written, sizeof written);
    tensor->size += sizeof written;
    require(runtime, EXIT_INFERENCE,
            runtime->api->GetStringTensorElement(value, length, i, outputs->copy + tensor->size));
    tensor->size += length;
  }
}

static void copy_tensor(struct outputs *outputs, const struct runtime *runtime, OrtValue *value, struct tensor *tensor) {
  describe(tensor, runtime, value);
  if (tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) copy_strings(outputs, runtime, value, tensor);
  else if (tensor->size) {
    void *data = NULL;
    make_room(outputs, tensor->size);
    require(runtime, EXIT_INFERENCE, runtime->api->GetTensorMutableData(value, &data));
    memcpy(outputs->copy, data, tensor->size);
  }
  tensor->data = outputs->copy;
}

void outputs_copy(struct outputs *outputs, const struct runtime *runtime) {
  struct tensor tensor;
  for (size_t i = 0; i < runtime->output_count; i++)
    if (kind_of(runtime, outputs->values[i]) == ONNX_TYPE_TENSOR)
      copy_tensor(outputs, runtime, outputs->values[i], &tensor);
}

/* --- Saving --- */

static void write_tensor(const struct tensor *tensor, const char *folder, const char *file) {
  char path[PATH_SIZE];
  bool strings = tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  int length = snprintf(path, sizeof path, "%s/%s", folder, file);
  if (length < 0 || length >= PATH_SIZE) fail(EXIT_OUTPUT, "%s: the path is too long", folder);
  if (!(strings ? strings_write(path, tensor) : npy_write(path, tensor))) fail(EXIT_OUTPUT, "%s: %s", path, strerror(errno));
}

/* One line of the report; `tensor` is NULL for what is not a tensor of a supported type. */
static void report_output(const char *name, const char *type, const struct tensor *tensor, const char *file) {
  json_open(NULL, '{');
  json_string("name", name);
  json_string("element_type", type);
  json_open("shape", '[');
  for (size_t i = 0; tensor && i < tensor->rank; i++) json_integer(NULL, tensor->shape[i]);
  json_close(']');
  json_string("file", file);
  json_close('}');
}

static void save_tensor(struct outputs *outputs, const struct runtime *runtime, OrtValue *value, const char *folder,
                        const char *name, const char *stem) {
  struct tensor tensor;
  char file[NAME_SIZE + 16];
  describe(&tensor, runtime, value);
  bool strings = tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  if (!strings && !type_size(tensor.type)) {
    report_output(name, "unsupported", &tensor, NULL);
    return;
  }
  copy_tensor(outputs, runtime, value, &tensor);
  snprintf(file, sizeof file, "%s.%s", stem, strings ? "strings" : "npy");
  if (folder) write_tensor(&tensor, folder, file);
  report_output(name, type_name(tensor.type), &tensor, folder ? file : NULL);
}

static void save_value(struct outputs *outputs, const struct runtime *runtime, OrtValue *value, const char *folder,
                       const char *name, const char *stem);

static void save_part(struct outputs *outputs, const struct runtime *runtime, const OrtValue *whole, size_t index,
                      const char *folder, const char *name, const char *stem) {
  OrtValue *part = NULL;
  require(runtime, EXIT_INFERENCE, runtime->api->GetValue(whole, (int)index, runtime->allocator, &part));
  save_value(outputs, runtime, part, folder, name, stem);
  runtime->api->ReleaseValue(part);
}

static void save_sequence(struct outputs *outputs, const struct runtime *runtime, const OrtValue *sequence,
                          const char *folder, const char *name, const char *stem) {
  char element_stem[NAME_SIZE], element_name[1024];
  size_t count = 0;
  require(runtime, EXIT_INFERENCE, runtime->api->GetValueCount(sequence, &count));
  for (size_t i = 0; i < count; i++) {
    snprintf(element_stem, sizeof element_stem, "%.40s_%03zu", stem, i);
    snprintf(element_name, sizeof element_name, "%.900s[%zu]", name, i);
    save_part(outputs, runtime, sequence, i, folder, element_name, element_stem);
  }
}

/* The runtime hands out a map as two vectors: its keys, in their order, and its values. */
static void save_map(struct outputs *outputs, const struct runtime *runtime, const OrtValue *map, const char *folder,
                     const char *name, const char *stem) {
  static const char *const PARTS[] = {"keys", "values"};
  char part_stem[NAME_SIZE], part_name[1024];
  for (size_t i = 0; i < 2; i++) {
    snprintf(part_stem, sizeof part_stem, "%.50s_%s", stem, PARTS[i]);
    snprintf(part_name, sizeof part_name, "%.1000s.%s", name, PARTS[i]);
    save_part(outputs, runtime, map, i, folder, part_name, part_stem);
  }
}

static void save_value(struct outputs *outputs, const struct runtime *runtime, OrtValue *value, const char *folder,
                       const char *name, const char *stem) {
  ONNXType kind = kind_of(runtime, value);
  if (kind == ONNX_TYPE_TENSOR) save_tensor(outputs, runtime, value, folder, name, stem);
  else if (kind == ONNX_TYPE_SEQUENCE) save_sequence(outputs, runtime, value, folder, name, stem);
  else if (kind == ONNX_TYPE_MAP) save_map(outputs, runtime, value, folder, name, stem);
  else report_output(name, kind == ONNX_TYPE_UNKNOWN ? "absent" : "unsupported", NULL, NULL);
}

void outputs_save(struct outputs *outputs, const struct runtime *runtime, const char *folder) {
  char stem[NAME_SIZE];
  json_open("outputs", '[');
  for (size_t i = 0; i < runtime->output_count; i++) {
    snprintf(stem, sizeof stem, "output_%03zu", i);
    save_value(outputs, runtime, outputs->values[i], folder, runtime->output_names[i], stem);
  }
  json_close(']');
}
