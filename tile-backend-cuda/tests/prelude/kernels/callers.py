"""A kernel that calls one helper with operands it cannot know, so that a compiler must translate its device body."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_backend_cuda.prelude.device_function import Helper, named

SMALL = {"f16": "u16", "bf16": "u16", "e4m3": "u8", "e5m2": "u8"}
TEMPLATES = {"int R": "<64>", "int TABLE": "<0xca>"}
REGISTERS = 8


def _array(helper: Helper, name: str) -> int:
    """Elements of the parameter's array that the body names; 0 if it is a plain pointer."""
    found = [int(i) for i in re.findall(rf"\({name}\[(\d+)\]\)", helper.device)]
    if found:
        return max(found) + 1
    return REGISTERS if f"{name}[i]" in helper.device else 0


def _operand(helper: Helper, number: int, kind: str, name: str) -> tuple[str, str, str]:
    """Declarations before the call, the argument, uses after it."""
    if kind.endswith("*"):
        base = kind[:-1].replace("const ", "").strip()
        if base == "TensorMap":
            return "", "&map", ""
        if count := _array(helper, name):
            loop = f"for (int i = 0; i < {count}; ++i)"
            before = f"{base} {name}_[{count}]; {loop} {name}_[i] = ({base})in[i * 128 + threadIdx.x];"
            after = "" if "const" in kind else f"{loop} out[i * 128 + threadIdx.x] = (float){name}_[i];"
            return before, f"{name}_", after
        return "", f"({kind})out", ""
    if kind in SMALL:
        return "", f"{kind}{{({SMALL[kind]})in[{number}]}}", ""
    if kind in ("u32x2", "u32x4"):
        return "", f"{kind}{{{', '.join(f'in[{i}]' for i in range(int(kind[-1])))}}}", ""
    return "", f"({kind})in[{number}]", ""


def caller(helper: Helper) -> str:
    """The text of the kernel ``use_NAME``."""
    listed = [p for p in named(helper.parameters) if p[1] != "width"]
    operands = [_operand(helper, i, kind, name) for i, (kind, name) in enumerate(listed)]
    template = TEMPLATES.get(helper.template, f"<{REGISTERS}>" if "registers" in helper.name else "<1>")
    call = f"{helper.name}{template if helper.template else ''}({', '.join(o[1] for o in operands)})"
    if helper.name.startswith("wgmma_m64n"):
        # what defines its registers must stay before the fence
        kinds = {"float": "f32", "int": "s32", "u32": "b32"}
        arrays = [(kinds[k.split("*")[0].split()[-1]], n) for k, n in listed if k.endswith("*")]
        held = " ".join(f"hold_registers_{k}<{_array(helper, n)}>({n}_);" for k, n in arrays)
        use = f"{held} wgmma_fence(); {call}; wgmma_commit(); wgmma_wait<0>();"
    elif helper.returns == "void":
        use = f"{call};"
    elif helper.returns in SMALL:
        use = f"out[0] = (float){call}.bits;"
    elif helper.returns in ("u32x2", "u32x4"):
        use = f"out[0] = (float){call}.x;"
    else:
        use = f"out[0] = (float){'*' if helper.returns.endswith('*') else ''}{call};"
    parts = " ".join([*(o[0] for o in operands), use, *(o[2] for o in operands)])
    # ptxas must know the registers that setmaxnreg changes: those of a full block of 384 threads
    bounds = f"__launch_bounds__({384 if helper.family == 'role' else 128}, 1)"
    given = "const u32* in, float* out, const __grid_constant__ TensorMap map"
    return f'extern "C" __global__ void {bounds} use_{helper.name}({given}) {{ {parts} }}\n'


def runs_on(helper: Helper, arch: str) -> bool:
    number = int("".join(filter(str.isdigit, arch)))
    return helper.since <= number and (not helper.exact or (arch.endswith("a") and helper.since == number))


def batches(helpers: list[Helper], size: int) -> Iterator[list[Helper]]:
    for i in range(0, len(helpers), size):
        yield helpers[i : i + size]
