"""Backend of tile for AMD GPUs through HIP."""
