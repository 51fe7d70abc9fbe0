// Tensors as DLPack's C exchange API gives them (dlpack.h 1.2 and 1.3): borrowed views, and the stream the caller works on.
#pragma once
#include <stdint.h>

typedef struct {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides; // strides may be NULL: contiguous
  uint64_t byte_offset;
} Tensor;

typedef struct {
  uint32_t major, minor;
  void *previous, *allocate, *from_object, *to_object;
  int (*view)(void *object, Tensor *out); // borrows: the view lives as long as the object
  int (*stream)(int32_t device_type, int32_t device_id, void **out);
} Exchange;

#define EXCHANGE_NAME "dlpack_exchange_api"

static inline char *tensor_address(const Tensor *t) { return (char *)t->data + t->byte_offset; }

static int has_zero_extent(const Tensor *t) {
  for (int k = 0; k < t->ndim; k++)
    if (t->shape[k] == 0) return 1;
  return 0;
}

static int is_row_major(const Tensor *t) {
  if (!t->strides) return 1;
  int64_t step = 1;
  for (int k = t->ndim - 1; k >= 0; k--) {
    if (t->shape[k] != 1 && t->strides[k] != step) return has_zero_extent(t);
    step *= t->shape[k];
  }
  return 1;
}

static int64_t element_count(const Tensor *t) {
  int64_t n = 1;
  for (int k = 0; k < t->ndim; k++) n *= t->shape[k];
  return n;
}
