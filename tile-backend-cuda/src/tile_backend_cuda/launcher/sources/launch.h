// The launches of a call: grids, tensor maps and workspaces, then the driver with the interpreter's lock released.
#pragma once
#include "arguments.h"

enum { GRID_X = 0x7fffffff, GRID_YZ = 65535 }; // CUDA C++ Programming Guide, Compute Capabilities

typedef struct {
  int64_t grids[8][MAX_GRID]; // by entry; a zero: not launched
  _Alignas(64) char maps[MAX_MAPS][MAP_BYTES];
  void *workspaces[MAX_WORKSPACES];
  int64_t workspace_bytes[MAX_WORKSPACES];
  uint32_t workspace_maps; // a bit for each map that is made when its workspace is there
} Launch;

enum { MAX_ENTRIES = sizeof(((Launch *)0)->grids) / sizeof(((Launch *)0)->grids[0]) };

static int raise_driver(Plan *p, int error, const char *what) {
  PyObject *done = PyObject_CallFunction(p->failed, "is", error, what);
  Py_XDECREF(done);
  if (done) PyErr_Format(PyExc_RuntimeError, "%s: error %d", what, error);
  return RAISED;
}

static int evaluate_grids(const Plan *p, const Call *c, Launch *l) {
  for (int e = 0; e < p->entry_count; e++)
    for (int k = 0; k < MAX_GRID; k++) {
      int64_t *g = &l->grids[e][k];
      if (evaluate(&p->entries[e].grid[k], c->slots, g)) return MISS;
      if (*g < 0) *g = 0;
      if (*g > (k ? GRID_YZ : GRID_X)) return MISS;
    }
  return HIT;
}

static int is_launched(const Plan *p, int e, const Call *c, const Launch *l, int *out) {
  int64_t wanted = 1;
  if (p->entries[e].when.count && evaluate(&p->entries[e].when, c->slots, &wanted)) return MISS;
  *out = wanted && l->grids[e][0] && l->grids[e][1] && l->grids[e][2];
  return HIT;
}

// Drops entries that are not launched, encodes the maps of the others and sizes workspaces. Gives how many are launched.
static int prepare(Plan *p, const Call *c, Launch *l) {
  uint32_t made = 0;
  l->workspace_maps = 0;
  int count = 0, runs;
  for (int e = 0; e < p->entry_count; e++) {
    if (is_launched(p, e, c, l, &runs)) return raise_driver(p, 0, "a condition cannot be computed");
    if (!runs) {
      l->grids[e][0] = 0;
      continue;
    }
    count++;
    for (int i = 0; i < p->entries[e].passed_count; i++) {
      Passed x = p->entries[e].passed[i];
      if (x.source != 'm' || made >> x.index & 1) continue;
      made |= 1u << x.index;
      if (p->maps[x.index].param < 0) {
        l->workspace_maps |= 1u << x.index;
        continue;
      }
      int error = tensor_map(&p->driver, &p->maps[x.index], c->slots, l->maps[x.index]);
      if (error) return raise_driver(p, error < 0 ? 0 : error, "cuTensorMapEncodeTiled");
    }
  }
  for (int w = 0; w < p->workspace_count; w++)
    if (evaluate(&p->workspaces[w], c->slots, &l->workspace_bytes[w])) return raise_driver(p, 0, "a workspace's size cannot be computed");
  return count;
}

static int launch_entry(const Plan *p, const Entry *e, const int64_t *grid, Call *c, Launch *l, void *stream) {
  void *parameters[2 * MAX_PARAMS];
  for (int i = 0; i < e->passed_count; i++) {
    Passed x = e->passed[i];
    switch (x.source) {
    case 'm': parameters[i] = l->maps[x.index]; break;
    case 'w': parameters[i] = &l->workspaces[x.index]; break;
    default: parameters[i] = &c->values[x.index];
    }
  }
  Config config = {{(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]},
                   {e->block[0], e->block[1], e->block[2]},
                   e->shared,
                   stream,
                   (void *)e->attributes,
                   e->attribute_count};
  int error = p->driver.launch(&config, e->function, parameters, NULL);
  if (error == CUDA_ERROR_INVALID_CONTEXT && !p->driver.set_context(p->context)) // a thread that has no context yet
    error = p->driver.launch(&config, e->function, parameters, NULL);
  return error;
}

static int map_workspaces(const Plan *p, const Call *c, Launch *l) {
  for (int m = 0; m < p->map_count; m++) {
    if (!(l->workspace_maps >> m & 1)) continue;
    int error = workspace_map(&p->driver, &p->maps[m], l->workspaces[p->maps[m].workspace], c->slots, l->maps[m]);
    if (error) return error < 0 ? CUDA_ERROR_INVALID_VALUE : error;
  }
  return 0;
}

static int run_entries(const Plan *p, Call *c, Launch *l, void *stream, const char **what) {
  int error = 0, allocated = 0;
  *what = "cuMemAllocAsync";
  for (; allocated < p->workspace_count && !error; allocated++) {
    size_t bytes = l->workspace_bytes[allocated] > 0 ? (size_t)l->workspace_bytes[allocated] : 1;
    error = p->driver.allocate(&l->workspaces[allocated], bytes, stream);
  }
  if (error) allocated--;
  else {
    *what = "cuTensorMapEncodeTiled";
    error = map_workspaces(p, c, l);
    if (!error) *what = "cuLaunchKernelEx";
  }
  for (int e = 0; e < p->entry_count && !error; e++)
    if (l->grids[e][0]) error = launch_entry(p, &p->entries[e], l->grids[e], c, l, stream);
  for (int w = 0; w < allocated; w++) {
    int released = p->driver.release(l->workspaces[w], stream);
    if (released && !error) {
      error = released;
      *what = "cuMemFreeAsync";
    }
  }
  return error;
}

// The driver waits when its queue is full: other threads run meanwhile, and may use the plan. All that is read here is the call's own.
static int run_in_context(const Plan *p, Call *c, Launch *l, void *stream, const char **what) {
  void *before = p->context;
  int error = 0;
  if (stream_has_no_device(stream) || p->workspace_count) {
    *what = "cuCtxSetCurrent";
    error = p->driver.get_context(&before);
    if (!error && before != p->context) error = p->driver.set_context(p->context);
  }
  if (!error) error = run_entries(p, c, l, stream, what);
  if (before != p->context) p->driver.set_context(before);
  return error;
}

static int run(Plan *p, Call *c, Launch *l, void *stream) {
  int count = prepare(p, c, l);
  if (count <= 0) return count;
  const char *what = "";
  PyThreadState *state = PyEval_SaveThread();
  int error = run_in_context(p, c, l, stream, &what);
  PyEval_RestoreThread(state);
  return error ? raise_driver(p, error, what) : HIT;
}
