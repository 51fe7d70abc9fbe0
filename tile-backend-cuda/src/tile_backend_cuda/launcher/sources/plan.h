// A plan: all that is needed to check and launch one kernel on one device. Made from data, once; see plan.py for its meaning.
#pragma once
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
#include "driver.h"
#include "expression.h"
#include "tensor_map.h"

enum { MAX_PARAMS = 64, MAX_SLOTS = 128, MAX_RANK = 8, MAX_MAPS = 16, MAX_WORKSPACES = 8, MAX_TYPES = 4, MAX_GRID = 3 };

enum { TENSOR = 't', POINTER = 'p', INTEGER = 'i', FLOAT32 = 'f', FLOAT64 = 'd', RAW = 'r', DIMENSION = 'n' };

typedef struct {
  int kind, bits, is_signed;             // integers and dimensions
  int code, rank, alignment, row_major;  // tensors; `code`: of DLPack, with `bits`
  int dim_slot[MAX_RANK];                // >= 0: the slot of a dimension that stands alone
  Expression dims[MAX_RANK], strides[MAX_RANK]; // strides: count 0 is not checked
} Param;

typedef struct {
  int source, index; // 'p' a parameter, 'm' a tensor map, 'w' a workspace
} Passed;

typedef struct {
  void *function;
  Expression when, grid[MAX_GRID]; // when: count 0 is always
  unsigned block[3], shared, attribute_count;
  int passed_count;
  Attribute attributes[3];
  Passed *passed;
} Entry;

typedef struct {
  PyTypeObject *type;
  const Exchange *api; // NULL: this type goes through Python
  PyObject *is_lazy;   // NULL, or a function of a tensor: its memory is not its value
} Known;

typedef struct {
  PyObject_HEAD
  Driver driver;
  int device_type, device_id;
  void *context;
  int param_count, given_count, slot_count, map_count, workspace_count, entry_count, known_count;
  Param *params;
  TensorMap *maps;
  Expression *workspaces; // bytes
  Entry *entries;
  PyObject *exchange, *failed;
  Known known[MAX_TYPES];
} Plan;
