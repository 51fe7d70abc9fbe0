// The bare loop that launches are compared with: cuLaunchKernelEx and nothing else.
#include <time.h>

typedef int (*Launch)(const void *config, void *function, void **parameters, void **extra);

// Seconds of `count` launches. `error`: the first that was not 0.
double bare(Launch launch, const void *config, void *function, void **parameters, int count, int *error) {
  struct timespec begin, end;
  *error = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; i++) {
    int e = launch(config, function, parameters, 0);
    if (e && !*error) *error = e;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
