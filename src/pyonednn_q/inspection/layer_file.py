"""A layer in a file that numpy.savez writes: its codes, scales and window, by name.

It holds src and wei, src_scale and wei_scale; and, where there are any, src_zero_point,
wei_zero_point, dst_scale, dst_zero_point, bias, stride, padding, dilation, groups, relu, and
theirs, the codes that somebody else made. Weights of 3 to 5 dimensions are a convolution's unless
op says deconv, inner_product or matmul.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.native.trial import POINTS
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.ops.operator import Operator

__all__ = ["NEEDED", "arrays_of", "named_arrays", "operator_of"]

_OPERATORS: dict[str, Callable[..., Operator]] = {
    "conv": Conv,
    "deconv": Deconv,
    "inner_product": InnerProduct,
    "matmul": MatMul,
}
_WINDOW = ("stride", "padding", "dilation", "groups")
NEEDED = ("src", "wei", "src_scale", "wei_scale")
_KEYS = (*NEEDED, "theirs", "dst_scale", *POINTS, "bias", "op", *_WINDOW, "relu")
_UNREADABLE = (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def named_arrays(file: Path, *, max_bytes: int | None = None) -> dict[str, Array]:
    """Return all arrays of a file that numpy.savez wrote, by name.

    Parameters
    ----------
    file : Path
        The file.
    max_bytes : int, optional
        Largest number of bytes of all arrays together, unpacked.

    Raises
    ------
    ArgumentError
        Not what numpy.savez writes, or more than is allowed.
    OSError
        The file cannot be read.
    """
    try:
        with file.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise ArgumentError(str(file), "one array", "arrays by name, as numpy.savez writes")
            with loaded:
                total = sum(each.file_size for each in loaded.zip.infolist())
                if max_bytes is not None and total > max_bytes:
                    wanted = f"at most {max_bytes} bytes of arrays"
                    raise ArgumentError(str(file), f"{total} bytes", wanted)
                return {name: np.asarray(loaded[name]) for name in loaded.files}
    except (MemoryError, NotImplementedError, *_UNREADABLE) as problem:
        if isinstance(problem, Error):
            raise
        raise ArgumentError(str(file), shown(str(problem)), "what numpy.savez writes") from None


def arrays_of(file: Path, needed: tuple[str, ...] = NEEDED) -> dict[str, Array]:
    """Return the arrays of a layer's file, those that are needed among them.

    Raises
    ------
    ArgumentError
        Not what numpy.savez writes, an unknown name in it, or a name that is missing.
    OSError
        The file cannot be read.
    """
    arrays = named_arrays(file)
    for name in arrays:
        one_of("a name in the file", name, _KEYS)
    for name in needed:
        if name not in arrays:
            raise ArgumentError(name, "nothing", f"an array of that name in {file}")
    return arrays


def operator_of(arrays: dict[str, Array]) -> Operator:
    """Return the operator that the arrays of a file describe; its dst is f32 without theirs."""
    src, wei, theirs = arrays["src"], arrays["wei"], arrays.get("theirs")
    usual = "conv" if wei.ndim > 2 else "inner_product"
    name = str(_one(arrays, "op")) if "op" in arrays else usual
    kind = _OPERATORS[one_of("op", name, tuple(_OPERATORS))]
    options: dict[str, Any] = {
        key: arrays[key].tolist() if arrays[key].ndim else arrays[key].item()
        for key in _WINDOW
        if key in arrays
    }
    if "relu" in arrays and bool(_one(arrays, "relu")):
        options["post"] = Chain(Eltwise("relu"))
    axis = wei.ndim - 1 if name == "matmul" else 0
    if name in {"inner_product", "matmul"}:
        for key in set(_WINDOW) & set(options):
            raise ArgumentError(key, shown(options[key]), f"none: {name} has no window")
    return kind(
        wei,
        arrays.get("bias"),
        src_q=_qparams(arrays, "src", src),
        wei_q=_qparams(arrays, "wei", wei, axis),
        dst_q=None if theirs is None else _qparams(arrays, "dst", theirs),
        # It need not run fast, and weights that saturate are what may have to be found.
        allow_reference=True,
        **options,
    )


def _qparams(arrays: dict[str, Array], name: str, codes: Array, axis: int | None = None) -> QParams:
    scale = arrays[f"{name}_scale"]
    point = arrays.get(f"{name}_zero_point", np.zeros((), np.int64))
    dtype = dtypes.from_numpy(codes.dtype, "theirs" if name == "dst" else name, "u8 or s8 codes")
    scale, point = (array.reshape(()) if array.size == 1 else array for array in (scale, point))
    return QParams(scale, point, dtype, axis if scale.ndim or point.ndim else None)


def _one(arrays: dict[str, Array], name: str) -> object:
    if arrays[name].size != 1:
        raise ArgumentError(name, shown(arrays[name]), "one value")
    return arrays[name].item()
