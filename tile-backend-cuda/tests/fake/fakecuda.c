// A CUDA driver that runs nothing on a device: it keeps what it was asked, and "kernels" known by name work on host memory.
// Contexts belong to threads as the real ones do; a failure can be ordered for any function.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { DEVICES = 2, CONTEXT = 0x1000, NAME = 64 };

typedef struct { unsigned grid[3], block[3], shared; void *stream; struct { int id, pad; unsigned value[16]; } *attributes; unsigned count; } Config;
typedef struct { uint64_t address, dims[5], strides[5]; unsigned box[5], rank, type, swizzle, promotion, fill; char pad[8]; } Map; // 128 bytes
typedef struct { char name[NAME]; int shared_limit; } Kernel;

static struct { long launches, encodes, allocations, releases, contexts_set; unsigned grid[3], block[3], shared; void *stream, *context; int attributes[3][4]; unsigned count; } seen;
static struct { char name[NAME]; int code; } ordered;
static unsigned delay;
static int kernel_threads = 1024, kernel_registers = 32, kernel_shared = 0;
static _Thread_local void *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int failing(const char *name) { return strcmp(ordered.name, name) ? 0 : ordered.code; }
#define ENTER do { int e_ = failing(__func__); if (e_) return e_; } while (0)

API void fake_fail(const char *name, int code) { strncpy(ordered.name, name, NAME - 1); ordered.code = code; }
API void fake_delay(unsigned microseconds) { delay = microseconds; }
API void fake_kernel(int threads, int registers, int shared) { kernel_threads = threads; kernel_registers = registers; kernel_shared = shared; }
API void fake_reset(void) { memset(&seen, 0, sizeof seen); memset(&ordered, 0, sizeof ordered); delay = 0; fake_kernel(1024, 32, 0); current = NULL; }
API const void *fake_seen(void) { return &seen; }

API int cuInit(unsigned flags) { (void)flags; ENTER; return 0; }
API int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
API int cuDeviceGetCount(int *n) { ENTER; *n = DEVICES; return 0; }
API int cuDeviceGet(int *d, int i) { ENTER; if (i >= DEVICES) return 101; *d = i; return 0; }
API int cuDeviceGetName(char *name, int n, int d) { strncpy(name, d ? "Fake 1" : "Fake 0", n); return 0; }
API int cuDeviceGetUuid(char *u, int d) { memset(u, d, 16); return 0; }
API int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = 1 << 30; return 0; }
API int cuDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : a == 38 ? 4096 : 0; return 0; }
API int cuDevicePrimaryCtxRetain(void **c, int d) { ENTER; *c = (void *)(uintptr_t)(CONTEXT + d); return 0; }
API int cuCtxGetCurrent(void **c) { ENTER; *c = current; return 0; }
API int cuCtxSetCurrent(void *c) { ENTER; seen.contexts_set++; current = c; return 0; }
API int cuCtxSynchronize(void) { ENTER; return current ? 0 : 201; }

API int cuLibraryLoadData(void **l, const void *code, void *a, void *b, unsigned n, void *c, void *d, unsigned m) {
  (void)code, (void)a, (void)b, (void)n, (void)c, (void)d, (void)m;
  ENTER;
  *l = (void *)2;
  return 0;
}
API int cuLibraryGetKernel(void **k, void *l, const char *name) {
  (void)l;
  ENTER;
  Kernel *made = calloc(1, sizeof *made);
  strncpy(made->name, name, NAME - 1);
  *k = made;
  return 0;
}
API int cuKernelGetFunction(void **f, void *k) { ENTER; *f = k; return 0; }
API int cuKernelGetAttribute(int *v, int a, void *k, int d) { (void)k, (void)d; *v = a == 0 ? kernel_threads : a == 1 ? kernel_shared : a == 4 ? kernel_registers : 0; return 0; }
API int cuKernelSetAttribute(int a, int v, void *k, int d) { (void)d; ENTER; if (a == 8) ((Kernel *)k)->shared_limit = v; return 0; }

API int cuTensorMapEncodeTiled(Map *m, int type, unsigned rank, uint64_t address, const uint64_t *dims, const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  (void)steps, (void)interleave;
  ENTER;
  if ((uintptr_t)m % 64 || address % 16) return 1;
  for (unsigned k = 0; k + 1 < rank; k++) if (strides[k] % 16) return 1;
  pthread_mutex_lock(&lock); seen.encodes++; pthread_mutex_unlock(&lock);
  memset(m, 0, 128);
  m->address = address, m->rank = rank, m->type = type, m->swizzle = swizzle, m->promotion = promotion, m->fill = fill;
  for (unsigned k = 0; k < rank; k++) { m->dims[k] = dims[k]; m->box[k] = box[k]; if (k) m->strides[k] = strides[k - 1]; }
  return 0;
}

API int cuMemAllocAsync(void **p, size_t n, void *s) { (void)s; ENTER; seen.allocations++; *p = malloc(n); return 0; }
API int cuMemFreeAsync(void *p, void *s) { (void)s; seen.releases++; free(p); return 0; }
API int cuMemAlloc_v2(void **p, size_t n) { ENTER; seen.allocations++; *p = malloc(n); return 0; }
API int cuMemFree_v2(void *p) { seen.releases++; free(p); return 0; }
API int cuMemsetD8Async(void *p, unsigned char v, size_t n, void *s) { (void)s; memset(p, v, n); return 0; }
API int cuEventCreate(void **e, unsigned f) { (void)f; ENTER; *e = malloc(8); return 0; }
API int cuEventDestroy_v2(void *e) { free(e); return 0; }
API int cuEventRecord(void *e, void *s) { (void)e, (void)s; ENTER; return 0; }
API int cuEventSynchronize(void *e) { (void)e; ENTER; return 0; }
API int cuEventElapsedTime_v2(float *ms, void *a, void *b) { (void)a, (void)b; ENTER; *ms = 0.25f; return 0; }
API int cuEventElapsedTime(float *ms, void *a, void *b) { return cuEventElapsedTime_v2(ms, a, b); }

// add(a, b, c, n): floats
static void add(void **p) {
  float *a = *(float **)p[0], *b = *(float **)p[1], *c = *(float **)p[2];
  for (int i = 0; i < *(int *)p[3]; i++) c[i] = a[i] + b[i];
}
// mapped(map of a, out): writes address, rank, extents, strides, box and the rest of the map as 64-bit numbers
static void mapped(void **p) {
  const Map *m = p[0];
  int64_t *out = *(int64_t **)p[1];
  *out++ = (int64_t)m->address, *out++ = m->rank;
  for (int k = 0; k < 3; k++) *out++ = (int64_t)m->dims[k];
  for (int k = 0; k < 3; k++) *out++ = (int64_t)m->strides[k];
  for (int k = 0; k < 3; k++) *out++ = m->box[k];
  *out++ = m->type, *out++ = m->swizzle, *out++ = m->promotion, *out++ = m->fill;
}
// scalars(out, int8, uint16, int32, int64, float, double, half, bool, pointer, dimension): their bits, each in 64
static void scalars(void **p) {
  uint64_t *out = *(uint64_t **)p[0];
  const int bytes[] = {1, 2, 4, 8, 4, 8, 2, 1, 8, 4};
  for (int i = 0; i < 10; i++) { out[i] = 0; memcpy(&out[i], p[i + 1], bytes[i]); }
}
// scratch(out, workspace): fills the workspace and sums it
static void scratch(void **p) {
  int32_t *out = *(int32_t **)p[0], *w = *(int32_t **)p[1];
  for (int i = 0; i < 8; i++) w[i] = i;
  out[0] = 0;
  for (int i = 0; i < 8; i++) out[0] += w[i];
}
// step(x): x[0] += 1, as a launch after a launch sees it
static void step(void **p) { (*(float **)p[0])[0] += 1; }

API int cuLaunchKernelEx(const Config *c, Kernel *k, void **p, void **extra) {
  (void)extra;
  ENTER;
  uintptr_t stream = (uintptr_t)c->stream;
  if (stream <= 2 && !current) return 201;
  if (c->shared > 49152 && (int)c->shared > k->shared_limit) return 1;
  if (delay) usleep(delay);
  pthread_mutex_lock(&lock);
  seen.launches++;
  memcpy(seen.grid, c->grid, sizeof seen.grid);
  memcpy(seen.block, c->block, sizeof seen.block);
  seen.shared = c->shared, seen.stream = c->stream, seen.context = current, seen.count = c->count;
  memset(seen.attributes, 0, sizeof seen.attributes);
  for (unsigned i = 0; i < c->count && i < 3; i++) { seen.attributes[i][0] = c->attributes[i].id; memcpy(&seen.attributes[i][1], c->attributes[i].value, 12); }
  pthread_mutex_unlock(&lock);
  if (!strcmp(k->name, "add")) add(p);
  if (!strcmp(k->name, "mapped")) mapped(p);
  if (!strcmp(k->name, "scalars")) scalars(p);
  if (!strcmp(k->name, "scratch")) scratch(p);
  if (!strcmp(k->name, "step")) step(p);
  return 0;
}
