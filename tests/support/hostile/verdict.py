"""Verdict: whether what came of an attempt is allowed: a typed error, or the right result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ArgumentError, Error, UnsupportedError
from pyonednn_q.native import runtime
from support.hostile.asked import asked
from support.hostile.far import reaches_far

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.hostile.attempt import Attempt

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """What came of an attempt.

    outcome: "right", "unknown" (right in kind; float32 may have left its range, or is not bound),
    the name of a typed error, or "WRONG".
    text: the message, or what is wrong.
    """

    outcome: str
    text: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.outcome != "WRONG"


def judge(attempt: Attempt) -> Verdict:
    """Run an attempt and judge it."""
    before = {name: _copy(value) for name, value in _given(attempt).items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = attempt.run()
    except Error as error:
        if isinstance(error, ArgumentError) and not (error.argument and error.got and error.wanted):
            return Verdict("WRONG", f"an error that does not say enough: {error!r}")
        # The text of these asks a child process for the library's reasons.
        text = error.detail if isinstance(error, UnsupportedError) else str(error)
        return Verdict(type(error).__name__, text)
    except TypeError as error:
        if _is_pythons_own(attempt, error):
            return Verdict("TypeError", str(error))
        return Verdict("WRONG", f"a bare TypeError: {error}")
    except MemoryError as error:
        return Verdict("MemoryError", str(error))
    except BaseException as error:  # this is the question
        return Verdict("WRONG", f"a bare {type(error).__name__}: {error}")
    return _judge_results(attempt, before, results)


def _is_pythons_own(attempt: Attempt, error: TypeError) -> bool:
    """Tell whether the call's arguments fit no signature.

    There are too many, an operand is called src beside the source, or an option is of another kind
    of layer. Python, or `ops.options` in its words, then names it before anything else runs.
    """
    if attempt.positional or "multiple values for argument" in str(error):
        return True
    step, ours = error.__traceback__, ""
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        ours = file if "/pyonednn_q/" in file else ours
        step = step.tb_next
    if ours and not ours.endswith("/ops/options.py"):
        return False
    return any(f"keyword argument '{name}'" in str(error) for name in attempt.settings)


def _judge_results(attempt: Attempt, before: Mapping[str, Any], results: list[Any]) -> Verdict:
    changed = _changed(attempt, before)
    if changed:
        return Verdict("WRONG", f"{changed} was changed")
    try:
        call = asked(attempt, before)
        with np.errstate(all="ignore"):
            meaning = call.meaning()
    except Exception as error:  # whatever stops the judge has no meaning
        text = f"accepted, though {type(error).__name__}: {error}"
        return Verdict("WRONG", text)
    out = attempt.call.get("out")
    if isinstance(out, np.ndarray) and not np.may_share_memory(results[-1], out):
        return Verdict("WRONG", "the result is not in out")
    if call.options.get("policy") == "fast":
        return Verdict("unknown", "bounded rewrites")
    if call.options.get("saturation") == "allow" and not runtime.isa().has_vnni():
        return Verdict("unknown", "sums that were allowed to saturate")
    for result in results:
        seen = _seen(result)  # `out` comes back as it was given
        problem = meaning.wrong(result if seen is None else seen)
        if problem and _reads_beside(attempt) and not _is_finite(attempt.src):
            return Verdict("unknown", "a float source that is not finite")
        if problem:
            is_far = reaches_far(attempt, before)  # there, folded scales may leave float32
            return Verdict("unknown" if is_far else "WRONG", problem)
    return Verdict("right" if meaning.is_known else "unknown")


def _reads_beside(attempt: Attempt) -> bool:
    """Tell whether kernels multiply places beside a window by 0: no number where these are none.

    Deconvolutions do; and convolutions of 16 bits, which take pairs of channels, of odd ones.
    """
    src = _seen(attempt.src)
    if attempt.kind != "conv" or src is None or src.ndim < 2 or src.itemsize != 2:
        return attempt.kind == "deconv"
    groups = attempt.settings.get("groups", 1)
    return bool(src.shape[1] // groups % 2) if isinstance(groups, int) and groups > 0 else False


def _is_finite(value: Any) -> bool:
    array = _seen(value)
    return array is None or bool(np.isfinite(array.astype(np.float64)).all())


def _given(attempt: Attempt) -> dict[str, Any]:
    found = {name: getattr(attempt, name) for name in ("src", "wei", "bias")}
    found |= {name: attempt.call[name] for name in ("out", "residual") if name in attempt.call}
    operands = attempt.call.get("operands")
    if isinstance(operands, dict):
        found |= {f"operand {name}": value for name, value in operands.items()}
    return found


def _copy(value: Any) -> Any:
    """Return what an argument holds now; itself, if it is no tensor, or too large to be one."""
    array = _seen(value)
    return value if array is None or array.nbytes > 2**28 else array.copy(order="K")


def _seen(value: Any) -> Array | None:
    if isinstance(value, np.ma.MaskedArray):
        return None
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if hasattr(value, "array"):  # of support.foreign
        return value.array.view(np.ndarray) if isinstance(value.array, np.ndarray) else None
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, RuntimeError):  # of NumPy, for a record with gaps
        return None


def _changed(attempt: Attempt, before: Mapping[str, Any]) -> str:
    out = _seen(attempt.call.get("out"))
    for name, value in _given(attempt).items():
        now, then = _seen(value), before[name]
        if name == "out" or now is None or not isinstance(then, np.ndarray):
            continue
        if out is not None and np.may_share_memory(out, now):
            continue
        if now.tobytes() != then.tobytes():
            return name
    return ""
