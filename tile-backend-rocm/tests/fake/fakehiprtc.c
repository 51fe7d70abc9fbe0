// A HIPRTC that asks clang to do the work, and may call itself older. As the real one does, it takes text and options, and its
// version is 9.0.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { COMPILATION = 6 };

typedef struct { char *text, *code, *log; size_t size; } Program;

static int older, ordered;
API void fake_older(int major) { older = major; }
API void fake_fail(int code) { ordered = code; }

static char *content(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  char *out = calloc(*size + 1, 1);
  if (fread(out, 1, *size, f) != *size) *size = 0;
  fclose(f);
  return out;
}

API int hiprtcVersion(int *a, int *b) { *a = 9; *b = 0; return 0; }
API int hiprtcCreateProgram(Program **p, const char *text, const char *name, int n, const char **headers, const char **names) {
  if (n || headers || names || strcmp(name, "kernel.hip")) return 3;
  *p = calloc(1, sizeof **p);
  (*p)->text = strdup(text);
  return 0;
}
API int hiprtcCompileProgram(Program *p, int n, const char **options) {
  if (ordered) { p->log = strdup("out of order"); return ordered; }
  char folder[] = "/tmp/fakehiprtcXXXXXX", path[64], command[4096];
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/k.hip", folder);
  FILE *f = fopen(path, "w");
  fputs(p->text, f);
  fclose(f);
  int at = snprintf(command, sizeof command, "cd %s && clang-19 -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib", folder);
  if (older) at += snprintf(command + at, sizeof command - (size_t)at, " -Wno-builtin-macro-redefined -D__clang_major__=%d", older);
  for (int i = 0; i < n; ++i) at += snprintf(command + at, sizeof command - (size_t)at, " '%s'", options[i]);
  snprintf(command + at, sizeof command - (size_t)at, " k.hip -o k.hsaco 2> log");
  const int failed = system(command);
  size_t length = 0;
  snprintf(path, sizeof path, "%s/log", folder);
  p->log = content(path, &length);
  snprintf(path, sizeof path, "%s/k.hsaco", folder);
  p->code = content(path, &p->size);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) return 1;
  return failed || !p->code ? COMPILATION : 0;
}
API int hiprtcGetProgramLogSize(Program *p, size_t *n) { *n = strlen(p->log) + 1; return 0; }
API int hiprtcGetProgramLog(Program *p, char *to) { strcpy(to, p->log); return 0; }
API int hiprtcGetCodeSize(Program *p, size_t *n) { *n = p->size; return 0; }
API int hiprtcGetCode(Program *p, char *to) { memcpy(to, p->code, p->size); return 0; }
API int hiprtcDestroyProgram(Program **p) { free((*p)->text); free((*p)->code); free((*p)->log); free(*p); *p = NULL; return 0; }
