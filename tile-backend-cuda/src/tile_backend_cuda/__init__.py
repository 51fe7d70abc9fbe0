"""Backend of tile for NVIDIA GPUs through CUDA C++ and NVRTC."""
