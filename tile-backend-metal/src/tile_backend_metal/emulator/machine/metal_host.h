// The words of the Metal Shading Language for the host: what `#include <metal_stdlib>` brings. One address space for all.
#pragma once
#include "metal_types.h"
#include "metal_math.h"
#include "metal_atomic.h"
#include "metal_simd.h"

#define device
#define threadgroup
#define thread
#define constant const
