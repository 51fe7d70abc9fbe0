"""TEMPORARY until the schedule branch is merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...expr import Buffer


@dataclass(frozen=True, slots=True)
class Wait:
    token: str
    distance: int


@dataclass(frozen=True, slots=True)
class Token:
    name: str
    kind: str
    producers: tuple[str, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Step:
    op: str
    stage: int
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True)
class Schedule:
    streams: Mapping[str, tuple[Step, ...]]
    tokens: Mapping[str, Token]
    depth: Mapping[Buffer, int]
    interval: int = 0
