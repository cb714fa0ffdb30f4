/* Tensors in files: .npy (versions 1 to 3, little-endian, C order) and .strings.
 *
 * A .strings file holds little-endian 64-bit numbers: the rank, each dimension, then for each element its length in
 * bytes followed by that many bytes of UTF-8. bfloat16 travels as the uint16 of its bits; the model says which is meant.
 */
#ifndef ORTRIM_TENSOR_H
#define ORTRIM_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxruntime_c_api.h"

enum { MAX_RANK = 32, REASON_SIZE = 200 };

struct tensor {
  ONNXTensorElementDataType type;
  size_t rank;
  int64_t shape[MAX_RANK];
  size_t count;         /* elements */
  size_t size;          /* bytes of data */
  unsigned char *data;  /* inside `storage`; strings: lengths and bytes as in the file */
  unsigned char *storage;
};

/* The name of an element type in NumPy's words, and the bytes of one element (0: not a fixed size). */
const char *type_name(ONNXTensorElementDataType type);
size_t type_size(ONNXTensorElementDataType type);

/* Reads a file whatever is in it: false with a reason when it is not a tensor. The caller frees `storage`. */
bool npy_read(const char *path, struct tensor *tensor, char *reason);
bool strings_read(const char *path, struct tensor *tensor, char *reason);
/* Writes a tensor; false when the file cannot be written in full. */
bool npy_write(const char *path, const struct tensor *tensor);
bool strings_write(const char *path, const struct tensor *tensor);

#endif
