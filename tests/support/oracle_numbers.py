"""Data types for the oracle: NumPy images, final conversion, distance to a tie, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from support.oracle_tracked import F64

    Array = NDArray[Any]

INTEGER_RANGES = {
    "u8": (0, 255),
    "s8": (-128, 127),
    "s32": (-(2**31), 2**31 - 1),
    "s4": (-8, 7),
    "u4": (0, 15),
}
# Above this oneDNN clamps a float32 that goes to s32: the last float32 below 2**31.
S32_CEILING = 2147483520
_NORMAL = 2.0**-126
_STANDARD = {"u8": "u1", "s8": "i1", "s32": "i4", "f32": "f4", "f16": "f2"}
_EXTENDED = {"bf16": "bfloat16", "s4": "int4", "u4": "uint4"}


def short_name(dtype: object) -> object:
    """Return oneDNN's name of a data type that NumPy's name, scalar type or dtype stands for.

    What stands for none is returned as it came.
    """
    if not isinstance(dtype, (str, type, np.dtype)) or dtype in (*_STANDARD, *_EXTENDED):
        return dtype
    for name in (*_STANDARD, *_EXTENDED):
        known = numpy_dtype(name)
        is_scalar_type = isinstance(dtype, type) and issubclass(dtype, np.generic)
        if dtype == known.name or (is_scalar_type and dtype is known.type):
            return name
        if isinstance(dtype, np.dtype) and dtype == known:
            return name
    return dtype


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Map an oneDNN data type name to NumPy, through ml_dtypes where NumPy has none."""
    if name in _STANDARD:
        return np.dtype(_STANDARD[name])
    import ml_dtypes  # only the types that NumPy lacks need it

    extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _EXTENDED[name]))
    return extended


def as_float64(values: ArrayLike, dtype: str | None = None) -> F64:
    """Read values exactly; with a dtype, as the library receives them in that dtype."""
    array = np.asarray(values)
    if dtype is not None and array.dtype != numpy_dtype(dtype):
        array = array.astype(numpy_dtype(dtype))
    return array.astype(np.float64)


def convert(real: F64, dtype: str, *, exact_s32: bool = False) -> Array:
    """Store a real value: half to even and saturation for integers, a cast for floats.

    NaN has no defined integer image (kernels differ); it becomes 0 here.
    """
    if dtype not in INTEGER_RANGES:
        with np.errstate(over="ignore"):
            return real.astype(np.float32).astype(numpy_dtype(dtype))
    qmin, qmax = INTEGER_RANGES[dtype]
    if dtype == "s32" and not exact_s32:
        qmax = S32_CEILING
    whole = np.rint(np.nan_to_num(real, nan=0.0, posinf=np.inf, neginf=-np.inf))
    return np.clip(whole, qmin, qmax).astype(np.int64).astype(numpy_dtype(dtype))


def convert_ends(lo: F64, hi: F64, dtype: str, *, exact_s32: bool = False) -> tuple[Array, Array]:
    """Store the ends of an interval; what a CPU flushes to 0 on the way lies between them."""
    least, most = (convert(end, dtype, exact_s32=exact_s32) for end in (lo, hi))
    if dtype == "bf16":
        # The CPU's own conversion (AVX512_CORE_BF16 and later) stores subnormals as 0.
        least = np.where((lo > 0) & (lo < _NORMAL), np.zeros_like(least), least)
        most = np.where((hi < 0) & (hi > -_NORMAL), np.zeros_like(most), most)
    return least, most


def distance_to_tie(real: F64, dtype: str) -> F64:
    """Distance to the nearest half-way point that decides the stored integer.

    Beyond the dtype's range the last tie inside it counts; a float dst has no ties (inf).
    """
    if dtype not in INTEGER_RANGES:
        return np.full_like(real, np.inf)
    qmin, qmax = INTEGER_RANGES[dtype]
    tie = np.clip(np.floor(real) + 0.5, qmin + 0.5, qmax - 0.5)
    return np.abs(real - tie)


def kept_dims(mask: int, groups: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the run-time values of a mask: a dim where its bit is set, 1 elsewhere."""
    sizes = [size if mask >> axis & 1 else 1 for axis, size in enumerate(dims)]
    for back, group in enumerate(reversed(groups), start=1):
        if mask >> (len(dims) - back) & 1:
            sizes[-back] //= group
    return tuple(sizes)


def spread(values: F64, mask: int, groups: tuple[int, ...], dims: tuple[int, ...]) -> F64:
    """Lay the values of a mask over dims; inside a group the value repeats."""
    array = values.reshape(kept_dims(mask, groups, dims))
    for back, group in enumerate(reversed(groups), start=1):
        if mask >> (len(dims) - back) & 1 and group > 1:
            array = np.repeat(array, group, axis=len(dims) - back)
    return array
