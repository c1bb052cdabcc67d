"""Write docs/quantised_operators.md: which arithmetic each dialect's operators use.

python tools/quantised_operators.py > docs/quantised_operators.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pyonednn_q.ops.quantised.catalogue import ARITHMETIC

HEAD = """\
# Quantised operators

Written by `tools/quantised_operators.py`; do not edit.

Between the convolutions of a quantised network lie sums, means, activations. Runtimes compute them
on the codes themselves, each in its own way, and a code that differs there differs in all that
follows. `pyonednn_q.ops.quantised` has them as functions from codes to codes, with `QParams` in
and out and the runtime's arithmetic by name:

```python
import numpy as np
from pyonednn_q import QParams
from pyonednn_q.ops import quantised

a_q, b_q, dst_q = QParams(0.5, 3, "s8"), QParams(0.25, 0, "s8"), QParams(0.5, 3, "s8")
a, b = np.array([5, 7], np.int8), np.array([2, -3], np.int8)
for dialect in ("tflite", "onnxruntime"):
    print(dialect, quantised.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect))
```

```text
tflite [6 6]
onnxruntime [6 6]
```

They run in NumPy. What oneDNN fuses into a primitive (a sum, ReLU, PReLU, a sigmoid) is better
given to the composer as part of a layer's chain, in oneDNN's own arithmetic; these functions are
for the codes that another runtime gives.

Convolutions and inner products end in one of the [requantisation dialects](dialects.md); what
follows is everything else. s is a scale, z a zero point, x a code less its zero point; "D2"
multiplies by 31 bits with two roundings, as there; "half up", "half away" and "even" say where
halves go. All clamp to the type last.

`tflite` is LiteRT's reference and optimised kernels, `xnnpack` those that its interpreter takes by
default: where only `tflite` is listed, the two are alike, but for bilinear resizing. `onnxruntime`
is its QLinear operators. `tests/oracles` compares both with the runtimes themselves to the last
output. `caffe2` is SNPS-Caffe's procedure and `tpu_mlir` that of BM168x (`tpu_mlir_cv18xx`:
CV18xx); they are held to their definitions in rational arithmetic (`tests/rows`).

| operator | dialect | arithmetic |
|---|---|---|
"""
TAIL = """
`max_pool` and `arg_max` take codes as they are: scales are positive, so order is kept, and no
dialect differs.

Through floats, the exponentials of `sigmoid` and `softmax` may differ from a runtime's in their
last bit. The code is then a neighbour only where the real value lies that close to a tie; none did
in 78,000 outputs of each.

Worth knowing:

- TFLite's ReLU is no clip: it multiplies by D2 even where it could copy. With scales 0.0221586861
  and 0.0749339536 code 1 becomes 1, while its real value is 0.3 of a code.
- ONNX Runtime's add keeps zero points inside the rounding and fuses its multiply-adds, b's product
  first; its local mean adds the zero point before it rounds, its global mean after.
- XNNPACK's leaky ReLU has 8-bit multipliers: one output in eleven differs from the interpreter's.
- TPU-MLIR's add on BM168x shifts each product, not their sum: 3 · 77 / 2^7 + 124 · 90 / 2^8 is 46,
  not 45.
- TPU-MLIR's mean adds the difference of the zero points, and its leaky ReLU compares with the zero
  point: both are printed otherwise (see [where the notes are
  wrong](dialects.md#where-the-notes-are-wrong)).
"""


def page() -> Iterator[str]:
    """Give the lines of the page."""
    yield from HEAD.splitlines()
    for operator, dialects in ARITHMETIC.items():
        for dialect, text in dialects.items():
            yield f"| `{operator}` | `{dialect}` | {text} |"
    yield from TAIL.splitlines()


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()) + "\n")
