"""acc: exact sums of products of codes, and what a kernel may lose of them.

`split` says in which parts sums stay below 24 or 32 bits, and what is added to them. On CPUs
without VNNI pairs of products may leave 16 bits: `pairing` says which products are paired, and
`pairs` which channels are exact for every source. `verdict` counts on data, `emulation` has the
sums as such a kernel computes them, and `repair` the weights that cannot saturate.
"""

from __future__ import annotations

# What may become of a model's layers whose weights may saturate: `onnx.fuse`. Here, as commands are
# parsed where NumPy does not load.
SATURATIONS = ("f32", "narrow", "allow", "refuse")
