"""Backend of tile for any GPU through WebGPU."""
