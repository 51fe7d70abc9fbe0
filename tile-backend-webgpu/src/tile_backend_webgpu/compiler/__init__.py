"""WGSL text to artifacts: nothing is compiled here, but Chromium's compiler may look at the text."""
