"""Runs WGSL on this machine through the package ``wgpu``: takes text and a launch specification, gives a kernel to call."""
