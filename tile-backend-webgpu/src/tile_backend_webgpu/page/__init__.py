"""A compiled kernel as a web page: takes WGSL and its launch specification, gives HTML, a loader and data."""
