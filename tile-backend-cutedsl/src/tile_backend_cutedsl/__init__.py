"""Backend of tile for NVIDIA GPUs through the CuTe DSL."""
