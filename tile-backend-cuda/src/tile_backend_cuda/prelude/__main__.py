"""Prints every helper's signature by family: ``python -m tile_backend_cuda.prelude [family ...]``."""

from __future__ import annotations

import sys

from . import find, names


def main(families: list[str]) -> None:
    last = ""
    for name in names():
        helper = find(name)
        if helper is None or (families and helper.family not in families):
            continue
        if helper.family != last:
            last = helper.family
            print(f"# {last}")
        suffix = "a" if helper.exact else ""
        print(f"{helper.signature};  // sm_{helper.since}{suffix}, PTX ISA: {helper.isa}")


if __name__ == "__main__":
    main(sys.argv[1:])
