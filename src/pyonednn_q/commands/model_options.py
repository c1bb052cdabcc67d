"""Options of commands on models of ONNX."""

from __future__ import annotations

from pathlib import Path

from pyonednn_q.acc import SATURATIONS
from pyonednn_q.commands.option_table import FLAG, OF_MODELS, OptionRow
from pyonednn_q.commands.words import new_file, positive
from pyonednn_q.models.outputs_compared import CHECKED

__all__ = ["OPTIONS"]

_READ = ("explain", "bench", "run", "diff")
_FED = ("bench", "run", "diff")
_OF = dict.fromkeys(("explain", "bench"), OF_MODELS)
_NEEDED = {"quantize": "needed"}
_FILE = {"type": Path, "metavar": "FILE"}
OPTIONS = (
    OptionRow("model", ("run", "diff"), "an .onnx file", how={"type": Path, "metavar": "MODEL"}),
    OptionRow(
        "model", ("quantize",), "an .onnx file of floats", how={"type": Path, "metavar": "MODEL"}
    ),
    OptionRow(
        "--data",
        ("quantize",),
        "samples of the inputs: a .npz or .npy file, or a folder of those",
        groups=_NEEDED,
        how={"type": Path, "required": True, "metavar": "PATH"},
    ),
    OptionRow(
        "--out",
        ("quantize",),
        "file of the INT8 model, .onnx",
        groups=_NEEDED,
        how={"type": new_file, "metavar": "FILE", "required": True},
    ),
    OptionRow(
        "--dims",
        (*_READ, "quantize"),
        "open lengths of the model: of a symbol, batch=1, or an input, x=1x3x8x8; repeatable",
        only="model",
        groups=_OF,
        how={"action": "append", "default": [], "metavar": "NAME=LENGTHS"},
    ),
    OptionRow(
        "--exact-rounding",
        _READ,
        "round before a zero point is added, as ONNX does",
        only="model",
        groups=_OF,
        how=FLAG,
    ),
    OptionRow(
        "--saturation",
        _READ,
        "form of layers whose weights may saturate on CPUs without VNNI",
        only="model",
        groups=_OF,
        how={"choices": SATURATIONS, "default": "f32"},
    ),
    OptionRow(
        "--input",
        _FED,
        "inputs by name, as numpy.savez writes them (default: random ones)",
        only="model",
        groups=_OF,
        how=_FILE,
    ),
    OptionRow(
        "--input",
        ("explain",),
        "inputs by name, as numpy.savez writes them: measure time and SQNR of each node",
        only="model",
        groups=_OF,
        how=_FILE,
    ),
    OptionRow(
        "--seed",
        _FED,
        "seed of random inputs (default: %(default)s)",
        only="model",
        groups=_OF,
        how={"type": int, "default": 0},
    ),
    OptionRow(
        "--callers",
        ("bench",),
        "measure N calls at once, too, each on --threads (default: one after the other)",
        only="model",
        groups=_OF,
        how={"type": positive, "default": 1, "metavar": "N"},
    ),
    OptionRow(
        "--output",
        ("run",),
        "write outputs by name to a .npz file (default: print a line for each)",
        how={"type": new_file, "metavar": "FILE"},
    ),
    OptionRow(
        "--batch",
        ("quantize",),
        "samples of a batch (default: the model's, or 1)",
        how={"type": int, "metavar": "N"},
    ),
    OptionRow(
        "--limit",
        ("quantize",),
        "largest number of samples to calibrate on (default: %(default)s)",
        how={"type": int, "default": 300, "metavar": "N"},
    ),
    OptionRow(
        "--estimators",
        ("quantize",),
        "estimator of ranges: min_max, percentile, mse, kl, ...",
        how={"metavar": "KIND"},
    ),
    OptionRow(
        "--passes",
        ("quantize",),
        "passes before calibration, as 'equalized,rounded': renormalized, equalized, smoothed, "
        "rounded",
        how={"metavar": "NAMES"},
    ),
    OptionRow("--config", ("quantize",), "a configuration of the training tool, JSON", how=_FILE),
    OptionRow(
        "--floats",
        ("quantize",),
        "names of layers that stay in floats, as 'head*'; repeatable",
        how={"action": "append", "default": [], "metavar": "PATTERN"},
    ),
    OptionRow(
        "--within",
        ("quantize",),
        "turn layers back to floats until each output reaches this SQNR in dB, or 'cosine=0.999', "
        f"or 'top1=0.99', on the first {CHECKED} samples",
        how={"metavar": "BOUND"},
    ),
    OptionRow(
        "--form",
        ("quantize",),
        "form of quantizers in the file (default: %(default)s)",
        how={"choices": ("qdq", "fake_quantize"), "default": "qdq"},
    ),
)
