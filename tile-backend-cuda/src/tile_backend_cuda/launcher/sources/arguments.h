// Arguments of a call into values and slots. Anything that is not plainly right is a miss: Python then looks and says what is wrong.
#pragma once
#include "plan.h"

typedef union {
  void *pointer;
  int64_t integer; // little endian: a narrower parameter is its low bytes
  float single;
  double real;
} Value;

typedef struct {
  Value values[MAX_PARAMS];
  int64_t slots[MAX_SLOTS];
  uint64_t bound[MAX_SLOTS / 64];
  Tensor tensors[MAX_PARAMS];
  const Tensor *first; // the first tensor, and whose stream it is
  const Exchange *api;
} Call;

enum { HIT = 0, MISS = 1, RAISED = -1 };

static const Known *known_type(Plan *p, PyTypeObject *type) {
  for (int i = 0; i < p->known_count; i++)
    if (p->known[i].type == type) return &p->known[i];
  static const Known unknown = {0};
  if (p->known_count == MAX_TYPES) return &unknown;
  PyObject *found = PyObject_CallFunctionObjArgs(p->exchange, (PyObject *)type, NULL); // None, or (capsule, function or None)
  if (!found) return NULL;
  Known made = unknown;
  if (found != Py_None) {
    made.api = PyCapsule_GetPointer(PyTuple_GetItem(found, 0), EXCHANGE_NAME);
    made.is_lazy = PyTuple_GetItem(found, 1);
    if (made.is_lazy == Py_None) made.is_lazy = NULL;
    if (made.api && (made.api->major != 1 || !made.api->view || !made.api->stream)) made.api = NULL;
  }
  if (!PyErr_Occurred() && p->known_count < MAX_TYPES) { // other threads may have run meanwhile
    Known *k = &p->known[p->known_count++];
    *k = made;
    Py_INCREF(k->type = type);
    Py_XINCREF(k->is_lazy);
    Py_DECREF(found);
    return k;
  }
  Py_DECREF(found);
  return PyErr_Occurred() ? NULL : &unknown;
}

// Views whose memory is not their value (torch's negative bit) are strided, or have one element: others need no question.
static int may_be_lazy(const Known *k, PyObject *object, const Tensor *t) {
  if (!k->is_lazy || (is_row_major(t) && element_count(t) > 1)) return 0;
  PyObject *said = PyObject_CallFunctionObjArgs(k->is_lazy, object, NULL);
  int lazy = said != Py_False;
  Py_XDECREF(said);
  return lazy;
}

static int bind_slot(Call *c, int slot, int64_t value) {
  uint64_t bit = (uint64_t)1 << (slot & 63), *word = &c->bound[slot >> 6];
  if (*word & bit) return c->slots[slot] == value ? HIT : MISS;
  *word |= bit;
  c->slots[slot] = value;
  return HIT;
}

static int fits(const Param *s, int64_t value) {
  if (s->bits == 64) return s->is_signed || value >= 0;
  int64_t low = s->is_signed ? -((int64_t)1 << (s->bits - 1)) : 0;
  int64_t high = ((int64_t)1 << (s->bits - s->is_signed)) - 1;
  return low <= value && value <= high;
}

static int take_tensor(Plan *p, int i, PyObject *object, Call *c) {
  const Param *s = &p->params[i];
  Tensor *t = &c->tensors[i];
  const Known *k = known_type(p, Py_TYPE(object));
  if (!k || !k->api || k->api->view(object, t)) {
    PyErr_Clear();
    return MISS;
  }
  if (t->device_type != p->device_type || t->device_id != p->device_id) return MISS;
  if (may_be_lazy(k, object, t)) {
    PyErr_Clear();
    return MISS;
  }
  if (!c->first) {
    c->first = t;
    c->api = k->api;
  }
  uint64_t address = (uint64_t)(uintptr_t)tensor_address(t);
  c->values[i].pointer = (void *)(uintptr_t)address;
  if (bind_slot(c, i, (int64_t)address)) return MISS;
  if (s->kind == POINTER) return HIT;
  if (t->code != s->code || t->bits != s->bits || t->lanes != 1 || t->ndim != s->rank) return MISS;
  if (address % (uint64_t)s->alignment && !has_zero_extent(t)) return MISS;
  if (s->row_major && !is_row_major(t)) return MISS;
  for (int n = 0; n < s->rank; n++)
    if (s->dim_slot[n] >= 0 && bind_slot(c, s->dim_slot[n], t->shape[n])) return MISS;
  return HIT;
}

static int read_number(const Param *s, PyObject *object, Value *value, int64_t *slot) {
  if (s->kind == FLOAT32 || s->kind == FLOAT64) {
    if (!PyFloat_Check(object) && !PyLong_Check(object)) return MISS;
    double number = PyFloat_AsDouble(object);
    if (s->kind == FLOAT32) value->single = (float)number;
    else value->real = number;
    return HIT;
  }
  if (s->kind == RAW || !PyLong_Check(object)) return MISS;
  *slot = value->integer = PyLong_AsLongLong(object);
  return (s->kind == POINTER ? *slot >= 0 : fits(s, *slot)) ? HIT : MISS;
}

static int take_number(const Param *s, PyObject *object, Value *value, int64_t *slot) {
  int found = read_number(s, object, value, slot);
  if (!PyErr_Occurred()) return found;
  PyErr_Clear(); // more bits than there are
  return MISS;
}

static int take_argument(Plan *p, int i, PyObject *object, Call *c) {
  const Param *s = &p->params[i];
  if (s->kind == TENSOR || (s->kind == POINTER && !PyLong_Check(object))) return take_tensor(p, i, object, c);
  return take_number(s, object, &c->values[i], &c->slots[i]);
}

// Extents that are numbers or expressions, and strides, once all dimensions that stand alone are known.
static int check_shape(const Param *s, const Tensor *t, const Call *c) {
  int64_t wanted;
  for (int n = 0; n < s->rank; n++)
    if (s->dim_slot[n] < 0 && (evaluate(&s->dims[n], c->slots, &wanted) || wanted != t->shape[n])) return MISS;
  if (s->row_major) return HIT;
  int dense = is_row_major(t); // then strides of extents 0 and 1 say nothing
  int64_t step = 1;
  for (int n = s->rank - 1; n >= 0; n--) {
    int64_t have = dense ? step : t->strides[n];
    if (s->strides[n].count && t->shape[n] > 1 && (evaluate(&s->strides[n], c->slots, &wanted) || wanted != have)) return MISS;
    step *= t->shape[n];
  }
  return HIT;
}

static int take_arguments(Plan *p, PyObject *arguments, Call *c) {
  if (PyTuple_Size(arguments) != p->given_count) return MISS;
  for (int i = 0; i < p->given_count; i++)
    if (take_argument(p, i, PyTuple_GetItem(arguments, i), c)) return MISS;
  for (int i = 0; i < p->given_count; i++)
    if (p->params[i].kind == TENSOR && check_shape(&p->params[i], &c->tensors[i], c)) return MISS;
  for (int i = p->given_count; i < p->param_count; i++) { // dimensions
    if (!(c->bound[i >> 6] >> (i & 63) & 1) || !fits(&p->params[i], c->slots[i])) return MISS;
    c->values[i].integer = c->slots[i];
  }
  return c->first ? HIT : MISS;
}

// The inputs of a call whose outputs, parameters of these numbers, are still to be allocated. Binds their dimensions.
static int take_inputs(Plan *p, PyObject *inputs, PyObject *outputs, Call *c) {
  Py_ssize_t left = PyTuple_Size(outputs), given = PyTuple_Size(inputs), taken = 0, next = 0;
  if (left < 0 || given + left != p->given_count) return MISS;
  for (int i = 0; i < p->given_count; i++) {
    if (next < left && PyLong_AsLong(PyTuple_GetItem(outputs, next)) == i) next++; // in order
    else if (taken == given || take_argument(p, i, PyTuple_GetItem(inputs, taken++), c)) return MISS;
  }
  return HIT;
}

// The shape of a tensor that is still to be allocated, or NULL, without an error where a dimension is not known.
static PyObject *shape_of(const Param *s, const Call *c) {
  PyObject *shape = PyTuple_New(s->rank);
  for (int n = 0; shape && n < s->rank; n++) {
    int64_t extent;
    int slot = s->dim_slot[n];
    int unknown = slot >= 0 && !(c->bound[slot >> 6] >> (slot & 63) & 1);
    PyObject *number = unknown || evaluate(&s->dims[n], c->slots, &extent) || extent < 0 ? NULL : PyLong_FromLongLong(extent);
    if (!number || PyTuple_SetItem(shape, n, number)) {
      Py_DECREF(shape);
      return NULL;
    }
  }
  return shape;
}

// Values that Python has checked: addresses and numbers, one for each parameter.
static int take_values(Plan *p, PyObject *values, Call *c) {
  if (PySequence_Size(values) != p->param_count) {
    PyErr_Format(PyExc_ValueError, "%d values are needed", p->param_count);
    return RAISED;
  }
  for (int i = 0; i < p->param_count; i++) {
    PyObject *object = PySequence_GetItem(values, i);
    if (!object) return RAISED;
    switch (p->params[i].kind) {
    case FLOAT32: c->values[i].single = (float)PyFloat_AsDouble(object); break;
    case FLOAT64: c->values[i].real = PyFloat_AsDouble(object); break;
    default: c->slots[i] = c->values[i].integer = (int64_t)PyLong_AsUnsignedLongLongMask(object);
    }
    Py_DECREF(object);
    if (PyErr_Occurred()) return RAISED;
  }
  return HIT;
}
