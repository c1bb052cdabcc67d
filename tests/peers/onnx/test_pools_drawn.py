"""Pools with drawn attributes, in every form in which they run here, beside the standard's text.

pytest tests/peers/onnx/test_pools_drawn.py --drawn-pools 20000 -s
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.network import Network, Node, Pool
from support.pools.cases import PoolCase, draw
from support.pools.text import IGNORED_SINCE
from support.pools.verdict import judged

pytestmark = pytest.mark.executed


def _given(case: PoolCase, name: str, default: Any = None) -> Any:
    return case.given.get(name, default)


def _rooms(case: PoolCase) -> list[tuple[int, int, int, int]]:
    """Return for each dim what is left behind the first window, stride, length, and pad before."""
    count = case.x.ndim - 2
    pads = _given(case, "pads", [0] * 2 * count)
    steps, by = (_given(case, name, [1] * count) for name in ("strides", "dilations"))
    rows = zip(case.x.shape[2:], pads, pads[count:], case.attributes["kernel_shape"], steps, by,
               strict=False)  # fmt: skip
    return [(n + lo + hi - (k - 1) * d - 1, s, n, lo) for n, lo, hi, k, s, d in rows]


def _rounds_up_valid(case: PoolCase) -> bool:
    is_so = _given(case, "auto_pad") == "VALID" and bool(_given(case, "ceil_mode"))
    return is_so and any(room % s for room, s, _, _ in _rooms(case))


def _begins_behind(case: PoolCase) -> bool:
    is_ceiled = bool(_given(case, "ceil_mode")) and _given(case, "auto_pad", "NOTSET") == "NOTSET"
    rows = _rooms(case)
    behind = any(-(-room // s) * s >= n + lo for room, s, n, lo in rows)
    return is_ceiled and case.opset < IGNORED_SINCE and behind


def _shares_dilated(case: PoolCase) -> bool:
    is_shared = str(_given(case, "auto_pad", "")).startswith("SAME")
    return is_shared and bool(max(_given(case, "dilations", [1])) > 1)


def _divides_by_all(case: PoolCase) -> bool:
    of_ceil = bool(_given(case, "ceil_mode")) and bool(_given(case, "count_include_pad"))
    return case.form == "qlinear" and of_ceil


def _of_pads_alone(case: PoolCase) -> bool:
    """Tell whether a window has no element of the source, in any of its dims."""
    steps, kernel = (
        _given(case, "dilations", [1] * len(_rooms(case))),
        case.attributes["kernel_shape"],
    )
    return any(
        not any(0 <= at * s - lo + tap * d < n for tap in range(k))
        for (room, s, n, lo), k, d in zip(_rooms(case), kernel, steps, strict=True)
        for at in range(-(-room // s) + 1 if _given(case, "ceil_mode") else room // s + 1)
    )


# Where onnxruntime has something else than the text.
THEIRS: Mapping[str, Callable[[PoolCase], bool]] = MappingProxyType(
    {
        "VALID with ceil_mode is rounded up": _rounds_up_valid,
        "windows behind the source are left out before opset 22": _begins_behind,
        "SAME of dilated windows has other dims": _shares_dilated,
        "QLinearAveragePool counts what ceil_mode adds behind pads": _divides_by_all,
    }
)
# Where we refuse what the text has: onnx's own inference of dims, or every runtime, has otherwise.
REFUSED: Mapping[str, Callable[[PoolCase], bool]] = MappingProxyType(
    {
        "VALID with ceil_mode": _rounds_up_valid,
        "windows that begin behind the source": _begins_behind,
        "where the standard has": _of_pads_alone,
    }
)
# What has no tensor, or no kernel, in a form: it runs in others.
_ELSEWHERE = ("oneDNN has no tensors of", "only reference loops take it", "wanted less than")


def test_drawn_pools(pytestconfig: pytest.Config) -> None:
    tally: Counter[str] = Counter()
    faults = []
    for seed in range(pytestconfig.getoption("--drawn-pools")):
        case = draw(seed)
        verdict = judged(case)
        faults += [f"{case}: {each}" for each in verdict.faults]
        tally.update(f"{case.form}: {name}" for name in verdict.ran)
        tally["open"] += bool(verdict.open)
        for name, why in verdict.refused.items():
            known = [words for words, holds in REFUSED.items() if words in why and holds(case)]
            elsewhere = any(each in why for each in _ELSEWHERE)
            # On AVX2, oneDNN has no kernel for maxima of codes of some small tensors.
            has_maxima = runtime.isa().has_avx512() or name != "emulate" or case.form == "float"
            elsewhere &= case.pool != "MaxPool" or "reference loops" not in why or not has_maxima
            if not (verdict.open or known or elsewhere):
                faults.append(f"{case}: {name} refuses, {why}")
            tally.update(f"refused: {words}" for words in known[:1])
        if verdict.theirs not in {"right", ""} and not verdict.theirs.startswith("refused"):
            words = [words for words, holds in THEIRS.items() if holds(case)]
            if not (verdict.open or words):
                faults.append(f"{case}: onnxruntime has {verdict.theirs}")
            tally.update(f"onnxruntime: {each}" for each in words[:1] if not verdict.open)
        tally["onnxruntime agrees"] += verdict.theirs == "right"
    print(*(f"{count:6} {what}" for what, count in sorted(tally.items())), sep="\n")  # noqa: T201
    assert not faults, "\n".join(faults[:30])


CASES = {
    # 11 - 4 = 7 is no multiple of 4: two windows by the text, three by onnx's inference and theirs.
    "VALID with ceil_mode": PoolCase(
        0, "MaxPool", 21, "float", np.arange(11, dtype=np.float32).reshape(1, 1, 11),
        {"kernel_shape": [4], "strides": [4], "auto_pad": "VALID", "ceil_mode": 1},
    ),
    # The third window begins at 6, behind 4 elements and no pad before them.
    "windows that begin behind the source": PoolCase(
        0, "AveragePool", 21, "float", np.arange(4, dtype=np.float32).reshape(1, 1, 4),
        {"kernel_shape": [1], "strides": [3], "pads": [0, 1], "ceil_mode": 1},
    ),
    "runtimes disagree": PoolCase(
        0, "MaxPool", 21, "float", np.arange(3, dtype=np.float32).reshape(1, 1, 3),
        {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_UPPER"},
    ),
    # Taps at -1 and 2 of two elements.
    "windows of pads alone": PoolCase(
        0, "MaxPool", 21, "float", np.arange(2, dtype=np.float32).reshape(1, 1, 2),
        {"kernel_shape": [2], "dilations": [3], "pads": [1, 1]},
    ),
    "there is no room": PoolCase(
        0, "AveragePool", 21, "float", np.arange(2, dtype=np.float32).reshape(1, 1, 2),
        {"kernel_shape": [3]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", CASES)
def test_what_is_refused(why: str) -> None:
    verdict = judged(CASES[why])
    assert verdict.faults == []
    assert why in verdict.refused["node in Python"]
    assert {"run", "network"} <= set(verdict.refused)


def test_shared_sides_of_dilated_windows_are_the_texts() -> None:
    """Of 14 elements and stride 2 the text has 7 windows; onnxruntime 5."""
    x = np.arange(14, dtype=np.float32).reshape(1, 1, 14)
    given = {"kernel_shape": [4], "strides": [2], "dilations": [2], "auto_pad": "SAME_UPPER"}
    verdict = judged(PoolCase(0, "MaxPool", 21, "float", x, given))
    assert (verdict.faults, verdict.refused) == ([], {})
    assert "[1, 1, 5] where [1, 1, 7]" in verdict.theirs


def test_means_are_of_elements_and_pads_alone() -> None:
    """A last window of 1 element and 1 place behind the pads: its mean is the element."""
    x = np.array([[[4, 6, 10]]], np.uint8)
    given = {"kernel_shape": [2], "strides": [2], "ceil_mode": 1, "count_include_pad": 1}
    case = PoolCase(0, "AveragePool", 21, "qlinear", x, given, scales=(1.0, 1.0))
    verdict = judged(case)
    assert (verdict.faults, verdict.refused) == ([], {})
    assert "as 5 where 10..10 is right" in verdict.theirs


@pytest.mark.parametrize("alg", ["max", "avg_exclude_padding"])
def test_a_pool_of_padding_alone_is_refused(alg: str) -> None:
    network = Network(["x"], [Node("y", Pool(alg, 2, padding=((2, 0),)), ("x",))], ["y"])
    with pytest.raises(ShapeError, match=r"padding: .*an element of the source in every window"):
        network(np.ones((1, 16, 4), np.float32))
    of_pads = Pool("avg_include_padding", 2, padding=((2, 0),))
    network = Network(["x"], [Node("y", of_pads, ("x",))], ["y"])
    y = network(np.ones((1, 16, 4), np.float32))["y"]
    np.testing.assert_array_equal(y[0, 0], [0, 0.5, 1, 1, 1])
