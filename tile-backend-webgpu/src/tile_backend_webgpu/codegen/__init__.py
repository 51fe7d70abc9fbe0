"""Plans to WGSL text: takes a plan for a WebGPU target, gives one shader module with an entry point for each launch."""
