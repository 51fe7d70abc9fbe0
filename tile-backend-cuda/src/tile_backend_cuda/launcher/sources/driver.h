// The functions of the CUDA driver that a launch calls, by address: the library that was loaded in Python is the one used.
#pragma once
#include <stdint.h>

// cuda.h: CUlaunchConfig, CUlaunchAttribute
typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned attribute_count;
} Config;

typedef struct {
  int id, pad;
  union {
    unsigned dims[3];
    int flag;
    char raw[64];
  } value;
} Attribute;

enum { CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6, COOPERATIVE = 2 }; // CUlaunchAttributeID
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_INVALID_CONTEXT = 201 };

typedef struct {
  int (*launch)(const Config *, void *function, void **parameters, void **extra);                                   // cuLaunchKernelEx
  int (*encode)(void *map, int type, unsigned rank, void *address, const uint64_t *dims, const uint64_t *strides,   // cuTensorMapEncodeTiled
                const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill);
  int (*get_context)(void **);                                                                                      // cuCtxGetCurrent
  int (*set_context)(void *);                                                                                       // cuCtxSetCurrent
  int (*allocate)(void **, size_t bytes, void *stream);                                                             // cuMemAllocAsync
  int (*release)(void *, void *stream);                                                                             // cuMemFreeAsync
} Driver;

enum { DRIVER_FUNCTIONS = sizeof(Driver) / sizeof(void *) };

// A launch on the null stream, or on one of the two streams with a number of their own, goes to the thread's current context.
static int stream_has_no_device(const void *stream) { return (uintptr_t)stream <= 2; }
