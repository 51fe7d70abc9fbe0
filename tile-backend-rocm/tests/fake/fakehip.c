// A HIP runtime that runs nothing on a device: it keeps what it was asked, and "kernels" known by name work on host memory.
// The current device belongs to a thread, as the real one's does; a failure can be ordered for any function.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { DEVICES = 2, NAME = 64 };

typedef struct { char name[NAME]; } Kernel;

static struct {
  long launches, allocations, releases, written, set_device;
  unsigned grid[3], block[3], shared;
  int device;
  void *stream;
} seen;
static struct { char name[NAME]; int code; } ordered;
static _Thread_local int current;

#define ENTER do { if (!strcmp(ordered.name, __func__)) return ordered.code; } while (0)

API void fake_fail(const char *name, int code) { strncpy(ordered.name, name, NAME - 1); ordered.code = code; }
API void fake_reset(void) { memset(&seen, 0, sizeof seen); memset(&ordered, 0, sizeof ordered); current = 0; }
API const void *fake_seen(void) { return &seen; }

API int hipInit(unsigned flags) { ENTER; return flags ? 1 : 0; }
API int hipGetDeviceCount(int *n) { ENTER; *n = DEVICES; return 0; }
API int hipDeviceGetName(char *name, int n, int d) { ENTER; strncpy(name, d ? "Fake 1" : "Fake 0", (size_t)n); return 0; }
API int hipGetDevice(int *d) { ENTER; *d = current; return 0; }
API int hipSetDevice(int d) { ENTER; if (d >= DEVICES) return 101; seen.set_device++; current = d; return 0; }
API int hipDeviceSynchronize(void) { ENTER; return 0; }
API const char *hipGetErrorString(int code) { return code == 209 ? "no kernel image is available for execution on the device" : "unspecified"; }

API int hipModuleLoadData(void **m, const void *image) { ENTER; if (memcmp(image, "\x7f""ELF", 4)) return 200; *m = (void *)1; return 0; }
API int hipModuleGetFunction(void **f, void *m, const char *name) {
  ENTER;
  if (!m) return 1;
  Kernel *made = calloc(1, sizeof *made);
  strncpy(made->name, name, NAME - 1);
  *f = made;
  return 0;
}

static int run(const char *name, void **p) {
  if (!strncmp(name, "add", 3)) {  // also a generated one: its parameters come in this order
    const float *a = *(float **)p[0], *b = *(float **)p[1];
    float *c = *(float **)p[2];
    for (int i = 0; i < *(int *)p[3]; ++i) c[i] = a[i] + b[i];
  } else if (!strcmp(name, "scalars")) {
    // out: eight bytes for each value; sizes: of the parameters behind it
    static const int sizes[] = {1, 2, 4, 8, 4, 8, 2, 1, 8, 4};
    char *out = *(char **)p[0];
    for (int i = 0; i < 10; ++i) memcpy(out + 8 * i, p[i + 1], (size_t)sizes[i]);
  } else if (!strcmp(name, "fill")) {
    float *space = *(float **)p[2], *a = *(float **)p[0];
    for (int i = 0; i < *(int *)p[1]; ++i) a[i] = space[i] = 3;
  } else if (strcmp(name, "nothing")) return 500;
  return 0;
}

API int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                              void *stream, void **parameters, void **extra) {
  ENTER;
  if (extra) return 1;
  unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  memcpy(seen.grid, grid, sizeof grid);
  memcpy(seen.block, block, sizeof block);
  seen.shared = shared;
  seen.stream = stream;
  seen.device = current;
  seen.launches++;
  return run(((Kernel *)f)->name, parameters);
}

static int make(void **p, size_t n) { seen.allocations++; *p = malloc(n); return *p ? 0 : 2; }
static int drop(void *p) { seen.releases++; free(p); return 0; }
API int hipMalloc(void **p, size_t n) { ENTER; return make(p, n); }
API int hipFree(void *p) { ENTER; return drop(p); }
API int hipMallocAsync(void **p, size_t n, void *stream) { ENTER; seen.stream = stream; return make(p, n); }
API int hipFreeAsync(void *p, void *stream) { ENTER; seen.stream = stream; return drop(p); }
API int hipMemsetAsync(void *p, int value, size_t n, void *stream) { ENTER; (void)stream; seen.written += (long)n; memset(p, value, n < 64 ? n : 64); return 0; }

API int hipEventCreate(void **e) { ENTER; *e = malloc(1); return 0; }
API int hipEventDestroy(void *e) { ENTER; free(e); return 0; }
API int hipEventRecord(void *e, void *stream) { ENTER; (void)stream; return e ? 0 : 1; }
API int hipEventSynchronize(void *e) { ENTER; return e ? 0 : 1; }
API int hipEventElapsedTime(float *ms, void *a, void *b) { ENTER; *ms = 0.25f; return a && b ? 0 : 1; }
