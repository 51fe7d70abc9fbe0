// Fibers: a stack each, and a switch that saves only what a call must preserve.
#pragma once
#include <stdint.h>
#include <stdlib.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace machine {

#if defined(__x86_64__)
extern "C" void machine_switch(void** save, void* load);
__asm__(R"(
.text
.globl machine_switch
.type machine_switch,@function
machine_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size machine_switch,.-machine_switch
)");
inline void* prepare(char* stack, size_t bytes, void (*entry)()) {
  void** top = (void**)(((uintptr_t)stack + bytes - 64) & ~(uintptr_t)15);
  *--top = nullptr;                   // where entry would return to
  *--top = (void*)entry;
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}
#elif defined(__aarch64__)
extern "C" void machine_switch(void** save, void* load);
__asm__(R"(
.text
.globl machine_switch
.type machine_switch,%function
machine_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size machine_switch,.-machine_switch
)");
inline void* prepare(char* stack, size_t bytes, void (*entry)()) {
  uint64_t* top = (uint64_t*)(((uintptr_t)stack + bytes - 64) & ~(uintptr_t)15) - 20;
  for (int i = 0; i < 20; ++i) top[i] = 0;
  top[11] = (uint64_t)entry;          // x30, where the switch returns to
  return top;
}
#else
inline void machine_switch(void** save, void* load) {
  ucontext_t mine;
  *save = &mine;
  swapcontext(&mine, (ucontext_t*)load);
}
inline void* prepare(char* stack, size_t bytes, void (*entry)()) {
  ucontext_t* context = (ucontext_t*)(stack + bytes - sizeof(ucontext_t) - 64);
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t) - 128;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}
#endif

}  // namespace machine
