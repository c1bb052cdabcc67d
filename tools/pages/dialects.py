"""Write docs/reference/dialects.md: what each runtime's requantization is.

    python tools/pages/dialects.py

Its studies (where two notes are wrong, how often dialects differ) stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize import DIALECTS
from pyonednn_q.requantize.catalogue import Distance
from pyonednn_q.requantize.method import VERSIONS, Method, which_method
from pyonednn_q.requantize.quantize_rules import FRAMEWORKS

HEAD = """\
# Requantization dialects

Written by `tools/pages/dialects.py`, down to the [studies](#where-the-notes-are-wrong).

At its end, an INT8 layer converts each 32-bit sum to a code. Runtimes do this differently: in up to
a quarter of all outputs, codes differ by one level, seldom by two. Here the arithmetic of each
runtime has a name, and is called a dialect. In `pyonednn_q.requantize`, `requantizer(name, ...)`
makes the constants of a dialect from scales, and `requantize` computes it in NumPy.
`pyonednn_q.native.passes` runs it in C++ on the s32 result of a primitive. Attributes of oneDNN can
express the dialects `onednn*`, and `onnxruntime` with a round post-op. They cannot express the
fixed-point ones.

`requantize=` selects a dialect in a call, as in
`Conv(wei, bias, src_q=..., wei_q=..., dst_q=..., requantize="tflite_2step")`. The library computes
the products. Zero points and bias are added as integers, so sums are exact up to 2^31, and the
dialect makes the same codes as the runtime. `onnxruntime` is one primitive with a round post-op,
with the same codes, if float32 holds all sums and oneDNN has a kernel for it. A bias of integers is
in units of src_scale · wei_scale in every dialect. The dialects `onednn*` take real numbers as
well, and add either in float32, after the scales.

In all of them M = src_scale · wei_scale / dst_scale. "Half away" rounds a half away from zero,
"half up" upwards. "Off by" is the largest distance of a result from the real value acc · M + zero
point before the clamp, in levels. One rounding to the nearest is off by ½. In addition, float32 and
the bits of a multiplier may cost 2^-20 of the value. `self_check` allows no more.

## The dialects
"""
DIFFERENCE = """
## How two of them differ

```python
import numpy as np
from pyonednn_q.predict import difference_report, tie_mask
from pyonednn_q.requantize import requantize

acc = np.arange(-500, 500, dtype=np.int32)
scales = {"src_scale": 0.5, "wei_scale": 0.25, "dst_scale": 0.5}
tflite, onnx = (requantize(acc, name, **scales) for name in ("tflite_2step", "onnxruntime"))
print(difference_report(tflite, onnx, ties=tie_mask(acc, **scales)).text())
```

```text
251 of 1000 differ (251000.0 ppm), by up to 1, mean +0.125000, first at (2,), 126 at ties
```

`tie_mask` says which sums lie half way between two codes. The other 125 differ because one dialect
rounds twice. `pq.explain_difference` takes an operator and the codes of another runtime, and says
which dialect gives them: [inspect.md](../inspect.md).

## A fused clamp, and a scale for each channel

With `requantize=`, `post` may be one clip. It is a fused activation (RELU6, RELU_N1_TO_1 or RELU)
that clamps the codes at its ends, rounded half away, as TFLite does. Or it is one of SNPS-Caffe's
Saturate modes, whose bounds are codes. `dst_q` may have a scale for each channel of the result
(SNPS-Caffe's per_channel_scale_output):

```python
import numpy as np
import pyonednn_q as pq
from pyonednn_q.requantize.quantize_rules import SATURATE_MODES

rng = np.random.default_rng(0)
wei, src = rng.integers(-20, 30, (2, 8)).astype(np.int8).T, rng.integers(0, 99, (3, 8), np.uint8)
layer = {"src_q": pq.QParams(0.05, 9, "u8"), "wei_q": pq.QParams(0.03, 0, "s8")}
for title, post in (("as it is", None), ("RELU6", pq.Chain(pq.Clip(0.0, 6.0)))):
    q = pq.QParams(0.04, -100, "s8")
    codes = pq.matmul(src, wei, **layer, dst_q=q, post=post, requantize="tflite_2step")
    print(f"{title:14}", codes.tolist())
for name, mode in SATURATE_MODES.items():
    step = 2.0**-8
    ends = [end and end * step for end in (mode["lo"], mode["hi"])]
    post = None if None in ends else pq.Chain(pq.Clip(*ends))
    q = pq.QParams(step, 0, mode["dst_dtype"])
    result = pq.matmul(src, wei, **layer, dst_q=q, post=post, requantize="caffe2")
    print(f"{name:14}", result[0].tolist(), result.dtype)
q = pq.QParams([0.04, 0.2], 0, "s8", axis=-1)
print("by channel    ", pq.matmul(src, wei, **layer, dst_q=q, requantize="caffe2")[0].tolist())
```

```text
as it is       [[-128, 81], [-128, 42], [-128, 127]]
RELU6          [[-100, 50], [-100, 42], [-100, 50]]
None           [-402, 1852] int32
Signed         [-402, 1852] int32
Unsigned       [0, 1852] int32
Signed_8bit    [-128, 127] int8
Unsigned_8bit  [0, 255] uint8
by channel     [-39, 36]
```
"""
METHODS_HEAD = """
## Who uses which

`requantize.method.which_method(framework, op, ...)` answers this. The table has TFLite's kernels,
as measured, by version of the interpreter. Per tensor and per channel are the same unless a cell
says so. "U2 + D2" is U2 in whole vectors of 8 channels and D2 in the remaining channels.
`tests/others/oracles` repeats the comparison with the LiteRT of `pip install .[oracles]`, ONNX
Runtime and PyTorch. Its sums are chosen where the rules differ: each cell agrees to the last output
with its own rule and with no other.
"""
SNPS_HEAD = """
SNPS-Caffe's Saturate modes are types and bounds of a requantizer:
`requantizer(name, **saturate_mode("Signed"), ...)` keeps sums within 12 bits
(`requantize.quantize_rules.SATURATE_MODES`). In a call they are a type and a clip, as above.

SNPS-Caffe's own table for its TFLite method, which the kernels above do not follow:
"""
QUANTIZE_HEAD = """
## Floats to integers

The rules of `requantize.quantize_rules.quantize`, on float32 x and scale s, inv = f32(1/s),
before the clamp:

| rule | q |
|---|---|
| `tflite` | half away(x / s) + z |
| `tflite_optimised` | nearest even(x · inv) + z |
| `onnx` | nearest even(x / s) + z |
| `torch_per_tensor` | nearest even(fma(x, inv, z)) |
| `torch_per_channel` | nearest even(x · inv + z) |
| `torch_fake_quantize` | nearest even(x · inv) + z |
| `onednn` | nearest even(saturate(x · inv + z)) |
| `tpu_mlir` | half away(x · inv) + z |
| `stablehlo` | nearest even(saturate(x / s + z)) |

| framework | scales | M formed in | rule | halves |
|---|---|---|---|---|"""
STUDIES = "\n## Where the notes are wrong\n"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "dialects.md"
OPS = ("conv", "depthwise conv", "deconv", "inner_product")


def static_page() -> Iterator[str]:
    """Give the lines that tables of the package say."""
    yield from HEAD.splitlines()
    yield "\n| name | short | what it does | off by |\n|---|---|---|---|"
    for one in DIALECTS.values():
        yield f"| `{one.name}` | {one.alias} | {one.summary} | {_off_by(one.distance)} |"
    yield from DIFFERENCE.splitlines()
    yield from METHODS_HEAD.splitlines()
    yield from _tflite_table()
    yield from SNPS_HEAD.splitlines()
    yield "\n| scales | group 1 | depthwise | pointwise |\n|---|---|---|---|"
    for granularity in ("per_tensor", "per_channel"):
        shapes: tuple[dict[str, Any], ...] = ({}, {"depthwise": True}, {"pointwise": True})
        cells = [
            _short(which_method("snps_tflite", "conv", granularity=granularity, **shape))
            for shape in shapes
        ]
        yield f"| {granularity} | {' | '.join(cells)} |"
    yield "\nEverything else:\n\n| framework | convolution |\n|---|---|"
    for framework in ("xnnpack", "onnxruntime", "fbgemm", "torch_qnnpack", "caffe2", "onednn"):
        yield f"| `{framework}` | `{which_method(framework, 'conv').dialect}` |"
    for framework in ("tpu_mlir_bm168x", "tpu_mlir_cv18xx"):
        yield f"| `{framework}` | `{which_method(framework, 'conv').dialect}` |"
    yield from QUANTIZE_HEAD.splitlines()
    for name, constants in FRAMEWORKS.items():
        halves = constants.rounding.replace("_", " ")
        yield (
            f"| `{name}` | {constants.scale} | {constants.multiplier} | `{constants.quantize}` "
            f"| {halves} |"
        )


def _off_by(distance: Distance) -> str:
    """Return how far from the real value a result may be, before the clamp."""
    terms = [{0.5: "½", 0.75: "¾", 1.0: "1"}[distance.levels]]
    if distance.relative > Distance().relative * 2:
        terms.append(f"2^{math.log2(distance.relative):.0f} of it")
    if distance.of_acc:
        terms.append(f"2^{math.log2(distance.of_acc):.0f} of acc")
    return " + ".join(terms)


def _tflite_table() -> Iterator[str]:
    columns = [("tflite_reference", VERSIONS[-1]), ("tflite_optimised", VERSIONS[-1])]
    columns += [("tflite_optimised", version) for version in reversed(VERSIONS[:-1])]
    heads = " | ".join(f"{kernels.split('_')[1]} {version}" for kernels, version in columns)
    yield f"\n| operator | {heads} | xnnpack |"
    yield "|---|" + "---|" * (len(columns) + 1)
    for op in OPS:
        for dtype in ("s8", "u8"):
            cells = [_cell(kernels, op, dtype, version) for kernels, version in columns]
            if any(cell != "–" for cell in cells):
                cells.append(_cell("xnnpack", op, dtype, None))
                yield f"| {op} {dtype} | {' | '.join(cells)} |"


def _cell(framework: str, op: str, dtype: str, version: str | None) -> str:
    try:
        methods = [
            _short(
                which_method(
                    framework,
                    op.removeprefix("depthwise "),
                    dtype,
                    granularity,
                    depthwise=op.startswith("depthwise"),
                    version=version,
                )
            )
            for granularity in ("per_tensor", "per_channel")
        ]
    except ArgumentError:
        return "–"
    if framework == "xnnpack" and methods[0] != _short(which_method("xnnpack", "conv")):
        return f"{methods[0]}, not delegated"
    # u8 is the older scheme, per tensor only.
    if methods[0] == methods[1] or dtype == "u8":
        return methods[0]
    return f"{methods[0]}; {methods[1]} per channel"


def _short(method: Method) -> str:
    names = (method.dialect, method.tail)
    return " + ".join(DIALECTS[name].alias for name in names if name is not None)


def main() -> None:
    """Write what tables of the package say, before the studies."""
    _, studies, kept = PAGE.read_text().partition(STUDIES)
    PAGE.write_text("\n".join(static_page()) + "\n" + studies + kept)


if __name__ == "__main__":
    main()
