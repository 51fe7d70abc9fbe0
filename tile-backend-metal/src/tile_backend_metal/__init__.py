"""Backend of tile for Apple GPUs through the Metal Shading Language."""
