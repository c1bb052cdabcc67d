"""saturation: where pairs of 8-bit products leave 16 bits on CPUs without VNNI.

`pairing` says which products meet, `pairs` which channels are exact whatever the source holds,
`verdict` counts on data, `emulation` gives the sums as such a kernel computes them, `repair` the
weights that cannot saturate.
"""

from __future__ import annotations

# What may become of a model's layers whose weights may saturate: `onnx.fuse`. Here, as commands are
# parsed where NumPy does not load.
SATURATIONS = ("f32", "narrow", "allow", "refuse")
