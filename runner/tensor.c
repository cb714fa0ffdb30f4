#define _POSIX_C_SOURCE 200809L
#include "tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

static const struct {
  ONNXTensorElementDataType type;
  const char *name, *descriptor;
  size_t size;
} TYPES[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "float32", "<f4", 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "float64", "<f8", 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "float16", "<f2", 2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", "|i1", 1},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, "int16", "<i2", 2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "int32", "<i4", 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "int64", "<i8", 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "uint8", "|u1", 1},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, "uint16", "<u2", 2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, "uint32", "<u4", 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, "uint64", "<u8", 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", "|b1", 1},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, "bfloat16", "<u2", 2}, /* after uint16: reading finds that one */
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "string", NULL, 0},
};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

const char *type_name(ONNXTensorElementDataType type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (TYPES[i].type == type) return TYPES[i].name;
  return "unsupported";
}

size_t type_size(ONNXTensorElementDataType type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (TYPES[i].type == type) return TYPES[i].size;
  return 0;
}

static bool refuse(char *reason, const char *text) {
  snprintf(reason, REASON_SIZE, "%s", text);
  return false;
}

/* The whole of a regular file, so that nothing below ever trusts a size that a header claims. */
static bool read_file(const char *path, struct tensor *tensor, size_t *length, char *reason) {
  struct stat facts;
  if (stat(path, &facts) != 0) return refuse(reason, strerror(errno));
  if (!S_ISREG(facts.st_mode)) return refuse(reason, "not a regular file");
  FILE *file = fopen(path, "rb");
  if (!file) return refuse(reason, strerror(errno));
  *length = (size_t)facts.st_size;
  tensor->storage = allocate(*length);
  bool whole = fread(tensor->storage, 1, *length, file) == *length;
  fclose(file);
  return whole || refuse(reason, "cannot be read to its end");
}

/* Multiplies the dimensions; false when the product does not fit. */
static bool count_elements(struct tensor *tensor) {
  tensor->count = 1;
  for (size_t i = 0; i < tensor->rank; i++)
    if (__builtin_mul_overflow(tensor->count, (size_t)tensor->shape[i], &tensor->count)) return false;
  return true;
}

/* --- The header of .npy: a Python dictionary with three known keys --- */

struct cursor {
  const char *at, *end;
};

static void skip_spaces(struct cursor *cursor) {
  while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n')) cursor->at++;
}

static bool take(struct cursor *cursor, const char *text) {
  size_t length = strlen(text);
  skip_spaces(cursor);
  if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0) return false;
  cursor->at += length;
  return true;
}

static bool take_number(struct cursor *cursor, int64_t *value) {
  skip_spaces(cursor);
  const char *start = cursor->at;
  for (*value = 0; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *cursor->at - '0', value)) return false;
  return cursor->at > start;
}

static bool take_shape(struct cursor *cursor, struct tensor *tensor) {
  if (!take(cursor, "(")) return false;
  for (tensor->rank = 0; !take(cursor, ")"); tensor->rank++) {
    if (tensor->rank == MAX_RANK || !take_number(cursor, &tensor->shape[tensor->rank])) return false;
    if (!take(cursor, ",")) return take(cursor, ")") && ++tensor->rank;
  }
  return true;
}

static bool take_type(struct cursor *cursor, struct tensor *tensor) {
  if (!take(cursor, "'")) return false;
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (TYPES[i].descriptor && take(cursor, TYPES[i].descriptor)) {
      tensor->type = TYPES[i].type;
      return take(cursor, "'");
    }
  return false;
}

static bool parse_header(struct cursor cursor, struct tensor *tensor, char *reason) {
  bool typed = false, ordered = false, shaped = false;
  if (!take(&cursor, "{")) return refuse(reason, "the header is not a dictionary");
  while (!take(&cursor, "}")) {
    if (!typed && take(&cursor, "'descr':")) typed = take_type(&cursor, tensor);
    else if (!ordered && take(&cursor, "'fortran_order':")) ordered = take(&cursor, "False");
    else if (!shaped && take(&cursor, "'shape':")) shaped = take_shape(&cursor, tensor);
    else return refuse(reason, "the header needs a supported 'descr', 'fortran_order': False and a 'shape'");
    if (!take(&cursor, ",") && !take(&cursor, "}")) return refuse(reason, "the header cannot be understood");
    else if (cursor.at[-1] == '}') break;
  }
  skip_spaces(&cursor);
  if (cursor.at != cursor.end) return refuse(reason, "the header has more after its dictionary");
  return (typed && ordered && shaped) || refuse(reason, "the header lacks a key");
}

/* Finds the header's bounds; false when the file is too short for what it claims. */
static bool header_bounds(const unsigned char *bytes, size_t length, size_t *start, size_t *size) {
  if (length < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3) return false;
  *start = bytes[6] == 1 ? 10 : 12;
  if (length < *start) return false;
  *size = (size_t)bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] > 1) *size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  return *size <= length - *start;
}

bool npy_read(const char *path, struct tensor *tensor, char *reason) {
  size_t length, start, size;
  if (!read_file(path, tensor, &length, reason)) return false;
  if (!header_bounds(tensor->storage, length, &start, &size)) return refuse(reason, "not a .npy file, or a truncated one");
  const char *header = (const char *)tensor->storage + start;
  if (!parse_header((struct cursor){header, header + size}, tensor, reason)) return false;
  tensor->data = tensor->storage + start + size;
  if (!count_elements(tensor) || __builtin_mul_overflow(tensor->count, type_size(tensor->type), &tensor->size))
    return refuse(reason, "the shape is too large");
  return tensor->size == length - start - size || refuse(reason, "the data is not as long as the shape says");
}

/* --- .strings --- */

static bool take_u64(const unsigned char **at, const unsigned char *end, uint64_t *value) {
  if ((size_t)(end - *at) < 8) return false;
  memcpy(value, *at, 8);
  *at += 8;
  return true;
}

static bool take_strings_shape(const unsigned char **at, const unsigned char *end, struct tensor *tensor) {
  uint64_t value;
  if (!take_u64(at, end, &value) || value > MAX_RANK) return false;
  tensor->rank = (size_t)value;
  for (size_t i = 0; i < tensor->rank; i++) {
    if (!take_u64(at, end, &value) || value > INT64_MAX) return false;
    tensor->shape[i] = (int64_t)value;
  }
  return count_elements(tensor);
}

bool strings_read(const char *path, struct tensor *tensor, char *reason) {
  size_t length;
  uint64_t size;
  if (!read_file(path, tensor, &length, reason)) return false;
  const unsigned char *at = tensor->storage, *end = at + length;
  tensor->type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  if (!take_strings_shape(&at, end, tensor)) return refuse(reason, "the shape cannot be read");
  tensor->data = tensor->storage + (at - tensor->storage);
  tensor->size = (size_t)(end - at);
  for (size_t i = 0; i < tensor->count; i++) {
    if (!take_u64(&at, end, &size) || size > (size_t)(end - at)) return refuse(reason, "an element is cut off");
    at += size;
  }
  return at == end || refuse(reason, "there is more after the last element");
}

/* --- Writing --- */

static bool write_parts(const char *path, const void *head, size_t head_size, const struct tensor *tensor) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool whole = fwrite(head, 1, head_size, file) == head_size;
  whole = whole && fwrite(tensor->data, 1, tensor->size, file) == tensor->size;
  return fclose(file) == 0 && whole;
}

static const char *descriptor_of(ONNXTensorElementDataType type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (TYPES[i].type == type) return TYPES[i].descriptor;
  return NULL;
}

bool npy_write(const char *path, const struct tensor *tensor) {
  char head[10 + 128 + MAX_RANK * 24];
  const char *descriptor = descriptor_of(tensor->type);
  if (!descriptor) return false;
  int length = 10;
  length += snprintf(head + length, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (", descriptor);
  for (size_t i = 0; i < tensor->rank; i++)
    length += snprintf(head + length, sizeof head - (size_t)length, "%" PRId64 ", ", tensor->shape[i]);
  length += snprintf(head + length, sizeof head - (size_t)length, "), }");
  while (length % 64 != 63) head[length++] = ' ';
  head[length++] = '\n';
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  head[8] = (char)((length - 10) & 0xff);
  head[9] = (char)((length - 10) >> 8);
  return write_parts(path, head, (size_t)length, tensor);
}

bool strings_write(const char *path, const struct tensor *tensor) {
  uint64_t head[1 + MAX_RANK] = {tensor->rank};
  for (size_t i = 0; i < tensor->rank; i++) head[1 + i] = (uint64_t)tensor->shape[i];
  return write_parts(path, head, (1 + tensor->rank) * sizeof *head, tensor);
}
