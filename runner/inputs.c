#define _POSIX_C_SOURCE 200809L
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64, PATH_SIZE = 4096 };

/* The element type that the model declares for an input; undefined when it is not a tensor. */
static ONNXTensorElementDataType declared_type(const struct runtime *runtime, size_t index) {
  const OrtApi *api = runtime->api;
  OrtTypeInfo *info = NULL;
  const OrtTensorTypeAndShapeInfo *tensor = NULL;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  require(runtime, EXIT_INPUT, api->SessionGetInputTypeInfo(runtime->session, index, &info));
  require(runtime, EXIT_INPUT, api->CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor) require(runtime, EXIT_INPUT, api->GetTensorElementType(tensor, &type));
  api->ReleaseTypeInfo(info);
  return type;
}

/* Only an input of an optional type may be left out: runtimes without exceptions abort on a missing one. */
static void check_optional(const struct runtime *runtime, size_t index, const char *folder) {
  OrtTypeInfo *info = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  require(runtime, EXIT_INPUT, runtime->api->SessionGetInputTypeInfo(runtime->session, index, &info));
  require(runtime, EXIT_INPUT, runtime->api->GetOnnxTypeFromTypeInfo(info, &kind));
  runtime->api->ReleaseTypeInfo(info);
  if (kind == ONNX_TYPE_OPTIONAL) return;
  fail(EXIT_INPUT, "%s: there is no input_%03zu.npy for '%s'", folder, index, runtime->input_names[index]);
}

/* Two element types fit when they are the same, or are bfloat16 and the uint16 that carries its bits. */
static bool adopt_type(struct tensor *tensor, ONNXTensorElementDataType declared) {
  bool carried = tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
  if (declared == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 && carried) tensor->type = declared;
  return declared == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED || tensor->type == declared;
}

static void check_type(struct tensor *tensor, const struct runtime *runtime, size_t index, const char *path) {
  ONNXTensorElementDataType declared = declared_type(runtime, index);
  if (adopt_type(tensor, declared)) return;
  fail(EXIT_INPUT, "%s: '%s' is %s in the model, not %s", path, runtime->input_names[index], type_name(declared),
       type_name(tensor->type));
}

/* The path of an input's file with this ending; false when there is none. */
static bool input_path(char *path, const char *folder, size_t index, const char *ending) {
  int length = snprintf(path, PATH_SIZE, "%s/input_%03zu.%s", folder, index, ending);
  if (length < 0 || length >= PATH_SIZE) fail(EXIT_INPUT, "%s: the path is too long", folder);
  return access(path, F_OK) == 0;
}

static bool read_input(struct input *input, const struct runtime *runtime, const char *folder, size_t index) {
  char path[PATH_SIZE], reason[REASON_SIZE] = "";
  memset(input, 0, sizeof *input);
  bool read;
  if (input_path(path, folder, index, "npy")) read = npy_read(path, &input->tensor, reason);
  else if (input_path(path, folder, index, "strings")) read = strings_read(path, &input->tensor, reason);
  else {
    check_optional(runtime, index, folder);
    return false;
  }
  if (!read) fail(EXIT_INPUT, "%s: %s", path, reason);
  check_type(&input->tensor, runtime, index, path);
  if (posix_memalign(&input->staging, ALIGNMENT, input->tensor.size + 1)) fail(EXIT_MEMORY, "out of memory");
  return true;
}

void inputs_read(struct inputs *inputs, const struct runtime *runtime, const char *folder) {
  enter_stage("input", folder);
  if (access(folder, R_OK | X_OK) != 0) fail(EXIT_INPUT, "%s: not a folder that can be read", folder);
  inputs->count = 0;
  inputs->names = allocate(runtime->input_count * sizeof *inputs->names);
  inputs->entries = allocate(runtime->input_count * sizeof *inputs->entries);
  inputs->values = allocate(runtime->input_count * sizeof *inputs->values);
  for (size_t i = 0; i < runtime->input_count; i++)
    if (read_input(&inputs->entries[inputs->count], runtime, folder, i))
      inputs->names[inputs->count++] = runtime->input_names[i];
  require(runtime, EXIT_INPUT, runtime->api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &inputs->memory));
}

static void make_strings(struct input *input, const struct runtime *runtime) {
  const OrtApi *api = runtime->api;
  const struct tensor *tensor = &input->tensor;
  const unsigned char *at = tensor->data;
  require(runtime, EXIT_INPUT, api->CreateTensorAsOrtValue(runtime->allocator, tensor->shape, tensor->rank, tensor->type,
                                                           &input->value));
  for (size_t i = 0; i < tensor->count; i++) {
    uint64_t length;
    char *text = NULL;
    memcpy(&length, at, sizeof length);
    require(runtime, EXIT_INPUT, api->GetResizedStringTensorElementBuffer(input->value, i, (size_t)length, &text));
    memcpy(text, at + sizeof length, (size_t)length);
    at += sizeof length + length;
  }
}

static void make_numbers(struct input *input, const struct runtime *runtime, const OrtMemoryInfo *memory) {
  const struct tensor *tensor = &input->tensor;
  memcpy(input->staging, tensor->data, tensor->size);
  require(runtime, EXIT_INPUT,
          runtime->api->CreateTensorWithDataAsOrtValue(memory, input->staging, tensor->size, tensor->shape, tensor->rank,
                                                       tensor->type, &input->value));
}

void inputs_make(struct inputs *inputs, const struct runtime *runtime) {
  for (size_t i = 0; i < inputs->count; i++) {
    struct input *input = &inputs->entries[i];
    if (input->tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) make_strings(input, runtime);
    else make_numbers(input, runtime, inputs->memory);
    inputs->values[i] = input->value;
  }
}

void inputs_release(struct inputs *inputs, const struct runtime *runtime) {
  for (size_t i = 0; i < inputs->count; i++) runtime->api->ReleaseValue(inputs->entries[i].value);
}

void inputs_free(struct inputs *inputs, const struct runtime *runtime) {
  for (size_t i = 0; i < inputs->count; i++) {
    free(inputs->entries[i].staging);
    free(inputs->entries[i].tensor.storage);
  }
  runtime->api->ReleaseMemoryInfo(inputs->memory);
  free(inputs->names);
  free(inputs->entries);
  free(inputs->values);
}
