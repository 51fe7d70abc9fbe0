// tile_backend_cuda.launcher._launch: the type Plan, made once for a kernel on a device. One file for every Python from 3.10.
#include "build.h"

enum { INTERFACE = 2 }; // the number in native.py: they change together, with what Plan takes and offers

// call(arguments, stream) -> whether it was launched. False: something is not plain, Python looks at the arguments.
static PyObject *plan_call(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  Plan *p = (Plan *)self;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "call takes the arguments and a stream");
  if (!PyTuple_Check(args[0])) return PyErr_Format(PyExc_TypeError, "the arguments are a tuple");
  Call c;
  Launch l;
  memset(c.bound, 0, sizeof c.bound);
  c.first = NULL;
  if (take_arguments(p, args[0], &c) || evaluate_grids(p, &c, &l)) Py_RETURN_FALSE;
  void *stream = NULL;
  if (args[1] != Py_None) {
    stream = PyLong_AsVoidPtr(args[1]);
    if (PyErr_Occurred()) return NULL;
  } else if (c.api->stream(p->device_type, p->device_id, &stream)) {
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  if (run(p, &c, &l, stream)) return NULL;
  Py_RETURN_TRUE;
}

// shapes(inputs, numbers of outputs) -> their shapes; None: something is not plain.
static PyObject *plan_shapes(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  Plan *p = (Plan *)self;
  if (n != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1])) return PyErr_Format(PyExc_TypeError, "shapes takes two tuples");
  Call c;
  memset(c.bound, 0, sizeof c.bound);
  memset(c.slots, 0, sizeof c.slots); // a dimension that no input gives
  c.first = NULL;
  Py_ssize_t count = PyTuple_Size(args[1]);
  PyObject *shapes = take_inputs(p, args[0], args[1], &c) ? NULL : PyTuple_New(count);
  for (Py_ssize_t i = 0; shapes && i < count; i++) {
    long number = PyLong_AsLong(PyTuple_GetItem(args[1], i));
    PyObject *shape = 0 <= number && number < p->given_count ? shape_of(&p->params[number], &c) : NULL;
    if (shape) {
      PyTuple_SetItem(shapes, i, shape);
      continue;
    }
    Py_DECREF(shapes);
    shapes = NULL;
  }
  if (shapes) return shapes;
  PyErr_Clear();
  Py_RETURN_NONE;
}

static int read_grids(Plan *p, PyObject *grids, Launch *l) {
  for (int e = 0; e < p->entry_count; e++) {
    PyObject *grid = PySequence_GetItem(grids, e);
    if (!grid) return -1;
    Py_ssize_t rank = PySequence_Size(grid);
    for (int k = 0; k < MAX_GRID; k++) {
      PyObject *extent = k < rank ? PySequence_GetItem(grid, k) : PyLong_FromLong(1);
      l->grids[e][k] = extent ? PyLong_AsLongLong(extent) : 0;
      Py_XDECREF(extent);
    }
    Py_DECREF(grid);
  }
  return PyErr_Occurred() ? -1 : 0;
}

// launch(values, grids, stream): with what Python has checked.
static PyObject *plan_launch(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  Plan *p = (Plan *)self;
  if (n != 3) return PyErr_Format(PyExc_TypeError, "launch takes values, grids and a stream");
  Call c;
  Launch l;
  memset(c.slots, 0, sizeof c.slots);
  void *stream = PyLong_AsVoidPtr(args[2]);
  if (PyErr_Occurred() || take_values(p, args[0], &c) || read_grids(p, args[1], &l)) return NULL;
  if (run(p, &c, &l, stream)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  if (keywords && PyDict_Size(keywords)) return PyErr_Format(PyExc_TypeError, "Plan takes no keywords");
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  PyObject *self = allocate(type, 0); // zeroed
  if (!self) return NULL;
  if (!read_plan((Plan *)self, arguments)) return self;
  if (!PyErr_Occurred()) PyErr_NoMemory();
  Py_DECREF(self);
  return NULL;
}

static void plan_free(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  free_plan((Plan *)self);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyMethodDef plan_methods[] = {
    {"call", (PyCFunction)(void *)plan_call, METH_FASTCALL, "call(arguments, stream) -> whether it was launched"},
    {"shapes", (PyCFunction)(void *)plan_shapes, METH_FASTCALL, "shapes(inputs, numbers of outputs) -> their shapes, or None"},
    {"launch", (PyCFunction)(void *)plan_launch, METH_FASTCALL, "launch(values, grids, stream)"},
    {0}};

static PyType_Slot plan_slots[] = {{Py_tp_doc, "A kernel on a device, and how its arguments are checked."},
                                   {Py_tp_new, plan_new},
                                   {Py_tp_dealloc, plan_free},
                                   {Py_tp_methods, plan_methods},
                                   {0}};

static PyType_Spec plan_spec = {"tile_backend_cuda.launcher._launch.Plan", sizeof(Plan), 0, Py_TPFLAGS_DEFAULT, plan_slots};

static int module_exec(PyObject *module) {
  PyObject *type = PyType_FromSpec(&plan_spec);
  if (!type) return -1;
  int failed = PyModule_AddObjectRef(module, "Plan", type);
  Py_DECREF(type);
  return failed ? failed : PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)module_exec}, {0}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_launch", "Launches of CUDA kernels.", 0, NULL, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__launch(void) { return PyModuleDef_Init(&module); }
