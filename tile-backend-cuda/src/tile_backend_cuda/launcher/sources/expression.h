// Expressions over dimensions, addresses and integer parameters: a small stack machine with Python's meaning of // and %.
#pragma once
#include <stdint.h>
#include <stdlib.h>

enum { STACK = 16 };

// The numbers of expressions.py.
enum { CONSTANT, SLOT, ADD, SUB, MUL, FLOORDIV, MOD, MIN, MAX, TRUNCDIV, TRUNCMOD, LT, LE, GT, GE, EQ, NE, AND, NEG, SELECT };

typedef struct {
  int count;
  int64_t *code; // pairs: operation, operand
} Expression;

static int divided(int64_t op, int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return -1;
  int64_t q = a / b, r = a % b;
  int rounds_up = r != 0 && (r < 0) != (b < 0);
  switch (op) {
  case FLOORDIV: *out = q - rounds_up; return 0;
  case MOD: *out = rounds_up ? r + b : r; return 0;
  case TRUNCDIV: *out = q; return 0;
  default: *out = r; return 0;
  }
}

static int binary(int64_t op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case ADD: return __builtin_add_overflow(a, b, out);
  case SUB: return __builtin_sub_overflow(a, b, out);
  case MUL: return __builtin_mul_overflow(a, b, out);
  case FLOORDIV: case MOD: case TRUNCDIV: case TRUNCMOD: return divided(op, a, b, out);
  case MIN: *out = a < b ? a : b; return 0;
  case MAX: *out = a > b ? a : b; return 0;
  case LT: *out = a < b; return 0;
  case LE: *out = a <= b; return 0;
  case GT: *out = a > b; return 0;
  case GE: *out = a >= b; return 0;
  case EQ: *out = a == b; return 0;
  case NE: *out = a != b; return 0;
  case AND: *out = a && b; return 0;
  default: return -1;
  }
}

// 0, or not 0 where 64 bits do not hold the value or something is divided by zero. The depth was checked when it was made.
static int evaluate(const Expression *e, const int64_t *slots, int64_t *out) {
  int64_t stack[STACK];
  int top = 0;
  for (int i = 0; i < e->count; i++) {
    int64_t op = e->code[2 * i], operand = e->code[2 * i + 1];
    switch (op) {
    case CONSTANT: stack[top++] = operand; break;
    case SLOT: stack[top++] = slots[operand]; break;
    case NEG:
      if (stack[top - 1] == INT64_MIN) return -1;
      stack[top - 1] = -stack[top - 1];
      break;
    case SELECT: // condition, then, otherwise
      top -= 2;
      stack[top - 1] = stack[top - 1] ? stack[top] : stack[top + 1];
      break;
    default:
      top--;
      if (binary(op, stack[top - 1], stack[top], &stack[top - 1])) return -1;
    }
  }
  *out = stack[0];
  return 0;
}
