"""Write docs/reference/quantized_operators.md: which arithmetic each dialect's operators use.

python tools/pages/quantized_operators.py > docs/reference/quantized_operators.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pyonednn_q.emulate.catalogue import ARITHMETIC

HEAD = """\
# Quantized operators

Written by `tools/pages/quantized_operators.py`; do not edit.

Between the convolutions of a quantized network are sums, means and activations. Each runtime
computes them on codes in its own way, and one different code changes the results of all later
layers. `pyonednn_q.emulate` has these operators as functions from codes to codes. They take
`QParams` of sources and result, and the name of the runtime's arithmetic:

```python
import numpy as np
from pyonednn_q import QParams
from pyonednn_q import emulate as quantized

a_q, b_q, dst_q = QParams(0.5, 3, "s8"), QParams(0.25, 0, "s8"), QParams(0.5, 3, "s8")
a, b = np.array([5, 7], np.int8), np.array([2, -3], np.int8)
for dialect in ("tflite", "onnxruntime"):
    print(dialect, quantized.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect))
```

```text
tflite [6 6]
onnxruntime [6 6]
```

Dialect `onednn` runs oneDNN's primitives; the others run in NumPy. A sum, a ReLU, leaky ReLU or
PReLU, a power and a sigmoid belong into the chain of a layer, because oneDNN fuses them into its
primitive. Use these functions for operators without a layer, and for the codes of another runtime.

## One call of each

Convolutions and inner products are the calls `conv`, `deconv`, `inner_product`. They end in the
dialect of `requantize=`, or in oneDNN's arithmetic without it. The others are functions of
`emulate`.

```python
import numpy as np
from pyonednn_q import QParams, conv, deconv, inner_product
from pyonednn_q import emulate as q

s8, wei_q, unit = QParams(0.5, 3, "s8"), QParams(0.25, 0, "s8"), QParams(2**-8, -128, "s8")
codes = {"src_q": s8, "dst_q": s8}
layer = {**codes, "wei_q": wei_q, "requantize": "tflite_2step"}
x = np.arange(-16, 16, dtype=np.int8).reshape(1, 2, 4, 4)
image, vector = np.full((2, 2, 3, 3), 2, np.int8), np.full((2, 32), 1, np.int8)
two = np.array([4, -2], np.int8)  # one value for each channel
bias = np.array([40, -40], np.int32)

for name, dst in {
    "Convolution": conv(x, image, bias, padding=1, **layer),
    "Deconvolution": deconv(x, image, bias, stride=2, **layer),
    "InnerProduct": inner_product(x.reshape(1, 32), vector, bias, **layer),
    "AveragePool": q.average_pool(x, 2, **codes, dialect="tflite"),
    "mapped to Mean": q.average_pool(x, 2, src_q=s8, dst_q=wei_q, dialect="snps_caffe"),
    "Mean": q.mean(x, src_q=s8, dst_q=wei_q, dialect="tflite"),
    "BiasAdd": q.bias_add(x, two, **codes, bias_q=wei_q, dialect="onednn"),
    "Concat": q.concat([x, x], srcs_q=[s8, wei_q], dst_q=s8, dialect="onnxruntime"),
    "EltwiseSum": q.add(x, x, a_q=s8, b_q=wei_q, dst_q=s8, dialect="tflite"),
    "LeakyReLU": q.leaky_relu(x, 0.25, **codes, dialect="tflite"),
    "PReLU": q.prelu(x, two, **codes, slope_q=wei_q, dialect="tflite"),
    "Power": q.power(x, 2, **codes, scale=0.5, dialect="caffe2"),
    "ReLU": q.relu(x, **codes, dialect="tflite"),
    "ResizeBilinear": q.resize_bilinear(x, (8, 8), **codes, dialect="tflite"),
    "Sigmoid": q.sigmoid(x, src_q=s8, dst_q=unit, dialect="onednn"),
    "Softmax": q.softmax(x, src_q=s8, dst_q=unit, axis=1, dialect="tflite"),
    "Pad": q.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], src_q=s8),
}.items():
    print(f"{name:15}{dst.shape!s:15}{dst.ravel()[-5:].tolist()}")
```

```text
Convolution    (1, 2, 4, 4)   [-10, -9, -7, -1, -1]
Deconvolution  (1, 2, 9, 9)   [-2, -4, 0, -3, -3]
InnerProduct   (1, 2)         [-15, -35]
AveragePool    (1, 2, 2, 2)   [-4, 3, 5, 11, 13]
mapped to Mean (1, 2, 2, 2)   [-13, -1, 3, 15, 19]
Mean           (1, 2, 1, 1)   [-23, 9]
BiasAdd        (1, 2, 4, 4)   [10, 11, 12, 13, 14]
Concat         (1, 4, 4, 4)   [9, 9, 9, 10, 11]
EltwiseSum     (1, 2, 4, 4)   [17, 18, 20, 21, 23]
LeakyReLU      (1, 2, 4, 4)   [11, 12, 13, 14, 15]
PReLU          (1, 2, 4, 4)   [11, 12, 13, 14, 15]
Power          (1, 2, 4, 4)   [11, 13, 15, 18, 21]
ReLU           (1, 2, 4, 4)   [11, 12, 13, 14, 15]
ResizeBilinear (1, 2, 8, 8)   [14, 14, 15, 15, 15]
Sigmoid        (1, 2, 4, 4)   [123, 125, 126, 127, 127]
Softmax        (1, 2, 4, 4)   [127, 127, 127, 127, 127]
Pad            (1, 2, 6, 6)   [3, 3, 3, 3, 3]
```

## Which arithmetic

Convolutions and inner products end in one of the [requantization dialects](dialects.md); the table
below has all other operators. s is a scale, z a zero point, x a code less its zero point, and r the
float32 nearest s_src / s_dst. "D2" multiplies by 31 bits with two roundings, as on that page. "Half
up", "half away" and "even" say where halves go. All clamp to the type last.

- `tflite`: LiteRT's reference kernels; `tflite_optimised`: its optimised kernels without a
  delegate; `xnnpack`: the kernels that its interpreter takes by default. Operators that are not
  listed for these two are as in `tflite`.
- `onnxruntime`: its QLinear operators. `tests/others/oracles` compares these and LiteRT's with the
  runtimes themselves, to the last output.
- `caffe2`: SNPS-Caffe's procedure; `tpu_mlir`: that of BM168x; `tpu_mlir_cv18xx`: that of CV18xx.
  They are compared with their definitions in rational arithmetic (`tests/others/definitions`).
- `tosa`: TOSA's specification, compared with its reference model (`tests/others/outside`).
- `onednn`: the named primitive, whose float32 steps are as printed. It gives the same codes on
  every instruction set from AVX2 on, in 3.7 and in 3.13 (`tests/emulate/test_quantized_onednn.py`,
  in rational arithmetic). `sigmoid`, `softmax` and powers other than 1 and 2 are within the
  measured error of the kernels. Only compiled kernels run. If the library has only a reference
  loop, as for the mean of a small image of few channels on AVX2, the call is refused.

| operator | dialect | arithmetic |
|---|---|---|
"""
TAIL = """
`max_pool` and `arg_max` take codes as they are: scales are positive, so order is kept, and no
dialect differs. oneDNN has no arg max.

In floats, the exponentials of `sigmoid` and `softmax` may differ from a runtime's in their last
bit. Then a code is off by one only if the real value lies that close to a tie; none of 78,000
outputs of each did.

Worth knowing:

- oneDNN's kernels store through 16 bits (pooling on AVX2) or 32: a mean of 255 times 129 comes out
  as 0. The functions clip before the store.
- TFLite's ReLU is no clip: it multiplies by D2 even where it could copy. With scales 0.0221586861
  and 0.0749339536 code 1 becomes 1, while its real value is 0.3 of a code.
- ONNX Runtime's add keeps zero points inside the rounding and fuses its multiply-adds, b's product
  first; its local mean adds the zero point before it rounds, its global mean after.
- LiteRT's three sets of kernels compute a mean over the image in three ways. One output in twenty
  differs between the reference and XNNPACK, one in seven between the reference and the optimised
  kernel, which rounds the zero point's share first.
- XNNPACK's leaky ReLU has 8-bit multipliers: one output in eleven differs from the interpreter's.
- TPU-MLIR's add on BM168x shifts each product, not their sum: 3 · 77 / 2^7 + 124 · 90 / 2^8 is 46,
  not 45.
- TPU-MLIR's mean adds the difference of the zero points, and its leaky ReLU compares with the zero
  point: the note has other formulas for both
  ([where the notes are wrong](dialects.md#where-the-notes-are-wrong)).
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
