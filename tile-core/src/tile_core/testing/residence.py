"""Arrays where a device can reach them, as a user would have them: numpy's, or torch tensors on the device."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..hardware import Device
from .arguments import is_array


def on_host(device: Device) -> bool:
    """Whether calls on the device take arrays of numpy."""
    return device.torch in ("", "cpu")


def put(array: Any, device: Device) -> Any:
    """A copy of a numpy array of a type that torch knows too."""
    if on_host(device):
        return np.copy(array)
    torch = importlib.import_module("torch")
    return torch.from_numpy(np.copy(array)).to(torch.device(device.torch, device.index))


def get(held: Any) -> Any:
    """The array of what ``put`` made, after all work on it."""
    return held if is_array(held) else held.cpu().numpy()


def streams(device: Device) -> Any:
    """Torch's module that has the streams of the device; None if there are none."""
    if on_host(device):
        return None
    module = importlib.import_module("torch").get_device_module(device.torch)
    return module if hasattr(module, "Stream") else None
