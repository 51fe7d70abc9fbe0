// A plan from Python data: tuples as plan.py describes them.
#pragma once
#include "launch.h"

static int refuse(const char *what) {
  PyErr_Format(PyExc_ValueError, "the plan has more %s than a native plan holds", what);
  return -1;
}

static void *array(Py_ssize_t count, size_t size) { return PyMem_Calloc(count ? (size_t)count : 1, size); }

// `code`: a tuple of numbers, two for each operation.
static int read_expression(PyObject *code, Expression *out) {
  Py_ssize_t n = PyTuple_Size(code);
  if (n < 0) return -1;
  out->code = array(n, sizeof(int64_t));
  if (!out->code) return -1;
  for (Py_ssize_t i = 0; i < n; i++) out->code[i] = PyLong_AsLongLong(PyTuple_GetItem(code, i));
  out->count = (int)(n / 2);
  return PyErr_Occurred() ? -1 : 0;
}

static int read_expressions(PyObject *codes, Expression *out, int limit, const char *what) {
  Py_ssize_t n = PyTuple_Size(codes);
  if (n > limit) return refuse(what);
  for (Py_ssize_t i = 0; i < n; i++)
    if (read_expression(PyTuple_GetItem(codes, i), &out[i])) return -1;
  return (int)n;
}

static int read_numbers(PyObject *numbers, unsigned *out, int limit, const char *what) {
  Py_ssize_t n = PyTuple_Size(numbers);
  if (n > limit) return refuse(what);
  for (Py_ssize_t i = 0; i < n; i++) out[i] = (unsigned)PyLong_AsUnsignedLong(PyTuple_GetItem(numbers, i));
  return PyErr_Occurred() ? -1 : (int)n;
}

// (kind, bits, is signed, type code, alignment, row major, slots of lone dimensions or -1, extents, strides)
static int read_param(PyObject *row, Param *s) {
  const char *kind;
  PyObject *slots, *dims, *strides;
  if (!PyArg_ParseTuple(row, "siiiipOOO", &kind, &s->bits, &s->is_signed, &s->code, &s->alignment, &s->row_major, &slots, &dims, &strides)) return -1;
  s->kind = kind[0];
  s->rank = read_expressions(dims, s->dims, MAX_RANK, "dimensions");
  if (s->rank < 0 || read_expressions(strides, s->strides, MAX_RANK, "dimensions") < 0) return -1;
  for (int n = 0; n < s->rank; n++) s->dim_slot[n] = (int)PyLong_AsLong(PyTuple_GetItem(slots, n));
  return PyErr_Occurred() ? -1 : 0;
}

// (parameter, type, interleave, swizzle, promotion, fill, box, steps, extents, strides), innermost dimension first
static int read_map(PyObject *row, TensorMap *m) {
  PyObject *box, *steps, *dims, *strides;
  if (!PyArg_ParseTuple(row, "iiiiiiiOOOO", &m->param, &m->workspace, &m->type, &m->interleave, &m->swizzle, &m->promotion, &m->fill, &box, &steps, &dims, &strides)) return -1;
  m->rank = read_expressions(dims, m->dims, MAP_RANK, "dimensions");
  if (m->rank < 0 || read_expressions(strides, m->strides, MAP_RANK, "dimensions") < 0) return -1;
  return read_numbers(box, m->box, MAP_RANK, "dimensions") < 0 || read_numbers(steps, m->steps, MAP_RANK, "dimensions") < 0 ? -1 : 0;
}

static int read_attributes(Entry *e, PyObject *cluster, int pdl, int cooperative) {
  Attribute *a = e->attributes;
  if (PyTuple_Size(cluster)) {
    a->id = CLUSTER_DIMENSION;
    if (read_numbers(cluster, a->value.dims, MAX_GRID, "cluster dimensions") < 0) return -1;
    a++;
  }
  if (pdl) {
    a->id = PROGRAMMATIC_STREAM_SERIALIZATION;
    a++->value.flag = 1;
  }
  if (cooperative) {
    a->id = COOPERATIVE;
    a++->value.flag = 1;
  }
  e->attribute_count = (unsigned)(a - e->attributes);
  return 0;
}

// (function, when, grid, block, shared bytes, cluster, programmatic launch, cooperative, ((source, index), ...))
static int read_entry(PyObject *row, Entry *e) {
  unsigned long long function;
  PyObject *when, *grid, *block, *cluster, *passed;
  int pdl, cooperative;
  if (!PyArg_ParseTuple(row, "KOOOIOppO", &function, &when, &grid, &block, &e->shared, &cluster, &pdl, &cooperative, &passed)) return -1;
  e->function = (void *)(uintptr_t)function;
  if (read_expression(when, &e->when) || read_expressions(grid, e->grid, MAX_GRID, "grid dimensions") < 0) return -1;
  if (read_numbers(block, e->block, MAX_GRID, "block dimensions") < 0 || read_attributes(e, cluster, pdl, cooperative)) return -1;
  Py_ssize_t n = PyTuple_Size(passed);
  if (n > 2 * MAX_PARAMS) return refuse("kernel parameters");
  if (!(e->passed = array(n, sizeof(Passed)))) return -1;
  for (; e->passed_count < n; e->passed_count++) {
    const char *source;
    Passed *x = &e->passed[e->passed_count];
    if (!PyArg_ParseTuple(PyTuple_GetItem(passed, e->passed_count), "si", &source, &x->index)) return -1;
    x->source = source[0];
  }
  return 0;
}

#define READ_ALL(rows, field, counter, limit, what, read)                                        \
  do {                                                                                           \
    Py_ssize_t n = PyTuple_Size(rows);                                                           \
    if (n < 0) return -1;                                                                        \
    if (n > (limit)) return refuse(what);                                                        \
    if (!(p->field = array(n, sizeof *p->field))) return -1;                                     \
    for (; p->counter < n; p->counter++)                                                         \
      if (read(PyTuple_GetItem(rows, p->counter), &p->field[p->counter])) {                      \
        p->counter++; /* what was read so far is freed with the plan */                          \
        return -1;                                                                               \
      }                                                                                          \
  } while (0)

static int read_driver(PyObject *addresses, Driver *out) {
  void **functions = (void **)out;
  if (PyTuple_Size(addresses) != DRIVER_FUNCTIONS) return refuse("driver functions");
  for (int i = 0; i < DRIVER_FUNCTIONS; i++) functions[i] = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, i));
  return PyErr_Occurred() ? -1 : 0;
}

static int read_plan(Plan *p, PyObject *arguments) {
  PyObject *driver, *params, *maps, *workspaces, *entries;
  unsigned long long context;
  if (!PyArg_ParseTuple(arguments, "O!iiKiiO!O!O!O!OO", &PyTuple_Type, &driver, &p->device_type, &p->device_id, &context, &p->given_count,
                        &p->slot_count, &PyTuple_Type, &params, &PyTuple_Type, &maps, &PyTuple_Type, &workspaces, &PyTuple_Type, &entries,
                        &p->exchange, &p->failed)) {
    p->exchange = p->failed = NULL;
    return -1;
  }
  Py_INCREF(p->exchange);
  Py_INCREF(p->failed);
  p->context = (void *)(uintptr_t)context;
  if (read_driver(driver, &p->driver)) return -1;
  if (p->slot_count > MAX_SLOTS) return refuse("dimensions");
  READ_ALL(params, params, param_count, MAX_PARAMS, "parameters", read_param);
  READ_ALL(maps, maps, map_count, MAX_MAPS, "tensor maps", read_map);
  READ_ALL(workspaces, workspaces, workspace_count, MAX_WORKSPACES, "workspaces", read_expression);
  READ_ALL(entries, entries, entry_count, MAX_ENTRIES, "launches", read_entry);
  return 0;
}

static void free_expressions(Expression *e, int count) {
  for (int i = 0; i < count; i++) PyMem_Free(e[i].code);
}

static void free_plan(Plan *p) {
  for (int i = 0; i < p->param_count; i++) {
    free_expressions(p->params[i].dims, MAX_RANK);
    free_expressions(p->params[i].strides, MAX_RANK);
  }
  for (int i = 0; i < p->map_count; i++) {
    free_expressions(p->maps[i].dims, MAP_RANK);
    free_expressions(p->maps[i].strides, MAP_RANK);
  }
  for (int i = 0; i < p->entry_count; i++) {
    free_expressions(&p->entries[i].when, 1);
    free_expressions(p->entries[i].grid, MAX_GRID);
    PyMem_Free(p->entries[i].passed);
  }
  if (p->workspaces) free_expressions(p->workspaces, p->workspace_count);
  for (int i = 0; i < p->known_count; i++) {
    Py_DECREF(p->known[i].type);
    Py_XDECREF(p->known[i].is_lazy);
  }
  PyMem_Free(p->params);
  PyMem_Free(p->maps);
  PyMem_Free(p->workspaces);
  PyMem_Free(p->entries);
  Py_XDECREF(p->exchange);
  Py_XDECREF(p->failed);
}
