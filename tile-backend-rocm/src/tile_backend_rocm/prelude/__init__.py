"""Named device helpers that generated kernels call, each with a body for the device and one for the emulated machine."""
