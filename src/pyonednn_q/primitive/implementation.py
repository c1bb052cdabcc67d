"""What an implementation's name says."""

from __future__ import annotations

import re
from typing import Literal

from pyonednn_q.argument import instance

_Class = Literal["jit", "gemm", "reference", "unknown"]

# "brgemm" is no gemm; "ref" is a word of its own or the start of one (ref_int8).
_REFERENCE = re.compile(r"(?:^|[:+_])ref")
_GEMM = re.compile(r"(?<!br)gemm")
_JIT = re.compile(r"jit|brg|brdgmm")
_FUSED = "ref_fused_convolution:"


def classify(impl_name: str, kind: str = "") -> _Class:
    """Return what kind of code an implementation is.

    Parameters
    ----------
    impl_name : str
        As oneDNN reports it. May be empty: a 1x1 deconvolution on AVX2, when its descriptor comes
        from the library's cache.
    kind : str
        Of the problem, where it matters: a "simple" concat copies memory, a "simple" reorder goes
        from element to element.

    Returns
    -------
    {"jit", "gemm", "reference", "unknown"}
        Generated code; a matrix product with separate steps around it (about 20 times slower);
        plain loops (1 000 times and more).

    Examples
    --------
    >>> classify("brg_conv_fwd:avx512_core_amx"), classify("conv:any+x64:gemm_s8u8s32:jit")
    ('jit', 'gemm')
    >>> classify("conv:any+ref:any"), classify("ref_fused_convolution:any:brgconv_1x1:brdgmm_dw")
    ('reference', 'jit')
    """
    instance("impl_name", impl_name, str)
    instance("kind", kind, str)
    name = impl_name.removeprefix(_FUSED)  # two kernels in a row, called ref although neither is
    if _REFERENCE.search(name) or (kind == "reorder" and name.startswith("simple")):
        return "reference"
    if _GEMM.search(name):
        return "gemm"
    return "jit" if _JIT.search(name) else "unknown"
