"""Backend of tile for Huawei Ascend NPUs."""
