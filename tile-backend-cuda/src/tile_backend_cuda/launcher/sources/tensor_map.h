// Tensor maps of a plan: encoded by the driver when an address or an extent is new, remembered for the last few.
#pragma once
#include "driver.h"
#include "expression.h"
#include <string.h>

enum { MAP_RANK = 5, MAP_BYTES = 128, WAYS = 4 };

typedef struct {
  uint64_t address;
  int64_t dims[MAP_RANK], strides[MAP_RANK]; // innermost first; strides in bytes, those of dimension 1 and on
} MapKey;

typedef struct {
  int param, workspace; // the one that is not negative is the number of what the map is of
  int rank, type, interleave, swizzle, promotion, fill;
  Expression dims[MAP_RANK], strides[MAP_RANK];
  unsigned box[MAP_RANK], steps[MAP_RANK];
  int next, used;
  MapKey keys[WAYS];
  char maps[WAYS][MAP_BYTES];
} TensorMap;

enum { MAP_DONE = 0, MAP_NOT_A_NUMBER = -1 };

static int map_key(const TensorMap *m, uint64_t address, const int64_t *slots, MapKey *key) {
  memset(key, 0, sizeof *key);
  key->address = address;
  for (int k = 0; k < m->rank; k++) {
    if (evaluate(&m->dims[k], slots, &key->dims[k])) return MAP_NOT_A_NUMBER;
    if (k && evaluate(&m->strides[k], slots, &key->strides[k])) return MAP_NOT_A_NUMBER;
  }
  return MAP_DONE;
}

static int is_empty(const TensorMap *m, const MapKey *key) {
  for (int k = 0; k < m->rank; k++)
    if (key->dims[k] <= 0) return 1;
  return 0;
}

// `made` begins at a multiple of 64 bytes, as cuTensorMapEncodeTiled wants it. Gives MAP_DONE or the driver's error.
static int encoded(const Driver *driver, const TensorMap *m, const MapKey *key, char *made) {
  uint64_t dims[MAP_RANK], strides[MAP_RANK] = {0};
  for (int k = 0; k < m->rank; k++) {
    dims[k] = (uint64_t)key->dims[k];
    if (k) strides[k - 1] = (uint64_t)key->strides[k];
  }
  return driver->encode(made, m->type, (unsigned)m->rank, (void *)(uintptr_t)key->address, dims, strides, m->box, m->steps, m->interleave,
                        m->swizzle, m->promotion, m->fill);
}

// The map of a workspace, which is new in each call: nothing is remembered, so no lock is needed. Results as below.
static int workspace_map(const Driver *driver, const TensorMap *m, void *address, const int64_t *slots, char *out) {
  MapKey key;
  _Alignas(64) char made[MAP_BYTES] = {0};
  if (map_key(m, (uint64_t)(uintptr_t)address, slots, &key)) return MAP_NOT_A_NUMBER;
  int error = is_empty(m, &key) ? MAP_DONE : encoded(driver, m, &key, made);
  memcpy(out, made, MAP_BYTES);
  return error;
}

// Writes the map of this call to `out`. Gives MAP_DONE, MAP_NOT_A_NUMBER or the driver's error.
// A tensor without elements has no map: the kernel gets zeros, which fault when they are used.
static int tensor_map(const Driver *driver, TensorMap *m, const int64_t *slots, char *out) {
  MapKey key;
  if (map_key(m, (uint64_t)slots[m->param], slots, &key)) return MAP_NOT_A_NUMBER;
  if (is_empty(m, &key)) {
    memset(out, 0, MAP_BYTES);
    return MAP_DONE;
  }
  for (int w = 0; w < m->used; w++)
    if (!memcmp(&m->keys[w], &key, sizeof key)) {
      memcpy(out, m->maps[w], MAP_BYTES);
      return MAP_DONE;
    }
  _Alignas(64) char made[MAP_BYTES];
  int error = encoded(driver, m, &key, made);
  if (error) return error;
  int w = m->next;
  m->next = (w + 1) % WAYS;
  if (m->used < WAYS) m->used++;
  m->keys[w] = key;
  memcpy(m->maps[w], made, MAP_BYTES);
  memcpy(out, made, MAP_BYTES);
  return MAP_DONE;
}
