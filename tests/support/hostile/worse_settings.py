"""Settings made worse: quantization, windows, chains, options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.requantize import DIALECTS
from support.hostile.attempt import QPARAMS, Made
from support.hostile.worse import one_of, worse

if TYPE_CHECKING:
    from support.hostile.attempt import Attempt
    from support.hostile.worse import Rng

SCALES: tuple[Any, ...] = (
    0, 0.0, -0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-45, 1e-40, 1.2e-38, 1e-30,
    1e-300, 5e-324, 1e38, 3.4e38, 3.5e38, 1e300, True, "1", "one", None, 1j, [], [1.0], [[1.0]],
    {}, np.float32(0.5), np.array(0.5), np.array([0.5]), object(), 10**400,
)  # fmt: skip
ZERO_POINTS: tuple[Any, ...] = (
    -129, 128, 255, 256, -1, 300, 2**31, 2**63, 2**70, -(2**70), 1.0, 0.5, float("nan"), True, "0",
    None, [], [0], [[0]], {}, np.int64(3), np.uint64(2**63), np.array(3), np.array([3.0]), object(),
)  # fmt: skip
DTYPES: tuple[Any, ...] = (
    "u8", "s8", "s32", "f32", "bf16", "f16", "s4", "u4", "int8", "U8", "", None, 8, np.int8, [],
    np.dtype("i1"), b"u8",
)  # fmt: skip
AXES: tuple[Any, ...] = (0, 1, -1, 2, 5, -6, 2**40, 1.0, True, "0", [], [0], None, np.int64(0))
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 7, 2**31, 2**40, 2**62, 2**63, 2**70, -(2**63), 1.0, 1.5, float("nan"), "1",
    None, True, [], (), [1], (1, 1), (1, 1, 1), (1,) * 9, [0, 0], [1, -1], [1.0, 1.0],
    [[1, 1], [1, 1]], [[0, 1]], [[1, 1], [1]], ((-1, 0), (0, 0)), {}, {1, 2}, np.array([1, 1]),
    np.int64(2), np.array([[1, 1], [1, 1]]), object(), [None, None], ["1", "1"],
)  # fmt: skip
JUNK: tuple[Any, ...] = (
    None, 0, 1, 2, "", "yes", [], {}, object(), float("nan"), b"real", ("real",), np.array([1, 2]),
    int,
)  # fmt: skip


def _params(attempt: Attempt, rng: Rng) -> dict[str, Any]:
    """Return the arguments of one QParams, drawn; those of a new one if there are none."""
    taken = {name: attempt.settings.get(name) for name in QPARAMS}
    found = [n for n, q in taken.items() if isinstance(q, Made) and q.of is QParams]
    if not found or rng.random() < 0.1:
        new = Made(QParams, (), {"scale": 0.5, "zero_point": 0, "dtype": "u8", "axis": None})
        attempt.settings[one_of(rng, QPARAMS)] = new
        return new.named
    params: dict[str, Any] = attempt.settings[one_of(rng, found)].named
    return params


def _is_vector(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.size > 0


@worse
def a_bad_scale(attempt: Attempt, rng: Rng) -> None:
    params = _params(attempt, rng)
    value = one_of(rng, SCALES)
    scale = params["scale"]
    if _is_vector(scale) and isinstance(value, float) and rng.random() < 0.7:
        copy = np.array(scale)
        copy[int(rng.integers(len(copy)))] = value
        value = copy
    params["scale"] = value


@worse
def a_bad_zero_point(attempt: Attempt, rng: Rng) -> None:
    params = _params(attempt, rng)
    value = one_of(rng, ZERO_POINTS)
    point = params["zero_point"]
    if _is_vector(point) and isinstance(value, int) and rng.random() < 0.7:
        copy = np.array(point, dtype=object)
        copy[int(rng.integers(len(copy)))] = value
        value = copy
    params["zero_point"] = value


@worse
def a_wrong_count(attempt: Attempt, rng: Rng) -> None:
    params = _params(attempt, rng)
    count = int(rng.integers(0, 40))
    name = one_of(rng, ("scale", "zero_point"))
    params[name] = np.full(count, 0.5) if name == "scale" else np.zeros(count, np.int64)
    if rng.random() < 0.7:
        params["axis"] = one_of(rng, (0, 1, -1, 3))


@worse
def another_type_of_codes(attempt: Attempt, rng: Rng) -> None:
    _params(attempt, rng)["dtype"] = one_of(rng, DTYPES)


@worse
def another_axis(attempt: Attempt, rng: Rng) -> None:
    _params(attempt, rng)["axis"] = one_of(rng, AXES)


@worse
def no_qparams(attempt: Attempt, rng: Rng) -> None:
    things: tuple[Any, ...] = (
        None,
        0.5,
        (0.5, 0),
        "u8",
        {},
        [],
        QParams,
        {"scale": 1.0, "zero_point": 0},
    )
    attempt.settings[one_of(rng, QPARAMS)] = one_of(rng, things)


@worse
def a_bad_range(attempt: Attempt, rng: Rng) -> None:
    """Ends of a range, or how a call finds them: of the source, or of the result."""
    ends: tuple[Any, ...] = (
        0.0, 1.0, -1.0, 3, True, None, "1", float("nan"), float("inf"), 3.4e38, -3.4e38, 1e-45,
        10**400, np.float32(2.0), np.array(1.0), [0.0],
    )  # fmt: skip
    if rng.random() < 0.5:
        value: Any = tuple(one_of(rng, ends) for _ in range(int(one_of(rng, (2, 2, 2, 1, 3)))))
    else:
        extents: tuple[Any, ...] = ("per_tensor", "per_row", "per_channel", "", None, 1, [])
        named = {"dtype": one_of(rng, DTYPES), "extent": one_of(rng, extents)}
        value = one_of(rng, (Made(Dynamic, (), named), Dynamic("u8"), Dynamic, "dynamic"))
    attempt.settings[one_of(rng, ("src_q", "src_q", "dst_q"))] = value


@worse
def qparams_swapped(attempt: Attempt, rng: Rng) -> None:
    one, other = (one_of(rng, QPARAMS) for _ in range(2))
    settings = attempt.settings
    settings[one], settings[other] = settings.get(other), settings.get(one)


@worse
def another_dst(attempt: Attempt, rng: Rng) -> None:
    attempt.settings["dst"] = one_of(rng, DTYPES)


@worse
def a_bad_window(attempt: Attempt, rng: Rng) -> None:
    name = one_of(rng, ("stride", "padding", "dilation", "groups"))
    attempt.settings[name] = one_of(rng, NUMBERS)


@worse
def a_bad_option(attempt: Attempt, rng: Rng) -> None:
    names = ("policy", "exact_rounding", "layout", "strict", "allow_reference", "saturation",
             "self_check", "tune")  # fmt: skip
    value = one_of(rng, JUNK)
    if rng.random() < 0.4:
        value = one_of(rng, ("fast", "real", "bitwise", True, False, "dense", "allow", "refuse"))
    attempt.settings[one_of(rng, names)] = value


@worse
def another_dialect(attempt: Attempt, rng: Rng) -> None:
    dialects: tuple[Any, ...] = (*sorted(DIALECTS), "what", "", None, 1, True, [], DIALECTS)
    attempt.settings["requantize"] = one_of(rng, dialects)


@worse
def no_chain(attempt: Attempt, rng: Rng) -> None:
    things: tuple[Any, ...] = (Round(), [Round()], "relu", 3, Chain, Eltwise, lambda x: x, {}, [])
    attempt.settings["post"] = one_of(rng, things)


@worse
def another_chain(attempt: Attempt, rng: Rng) -> None:
    channels = int(rng.integers(1, 40))
    values = rng.normal(size=channels)
    number = one_of(
        rng, (0.0, 1.0, -1.0, 1e-45, 1e-38, 1e38, 3e38, 1e300, float("nan"), float("inf"))
    )
    step = one_of(
        rng,
        (
            Made(Affine, (values, number)),
            Made(Affine, (number, values)),
            Made(Affine, (number, number)),
            Made(PRelu, (values,)),
            Made(PRelu, (number,)),
            Made(Clip, (number, -number)),
            Made(Clip, (-number, number)),
            Made(Clip, (values, values)),
            Made(Sum, (number, int(rng.integers(-200, 300)))),
            Made(Sum, (1.0, 0), {"dtype": one_of(rng, DTYPES)}),
            Made(Sum, (1.0, one_of(rng, (2**31, 2**70, -(2**31)))), {}),
            Made(
                Eltwise,
                (
                    one_of(rng, ("relu", "tanh", "log", "sqrt", "pow", "exp", "clip", "what")),
                    number,
                ),
            ),
            Made(Eltwise, ("pow", number, number)),
            Made(Eltwise, ("linear", number, number)),
            Made(Binary, (one_of(rng, ("add", "div", "mul", "eq", "what")), number)),
            Made(Binary, ("div", values)),
            Made(FakeQuantize, (0.0, number, 0.0, number)),
            Made(FakeQuantize, (values, values + 1.0, 0, 255)),
            Round(),
        ),
    )
    if isinstance(step, Made) and step.of is FakeQuantize:
        step = Made(lambda *a: FakeQuantize(*a).chain(), step.given)
    before = attempt.settings.get("post", Chain())
    attempt.settings["post"] = Made(Chain, (before, step) if rng.random() < 0.5 else (step, before))


@worse
def a_strange_leaf(attempt: Attempt, rng: Rng) -> None:
    names = (
        "src",
        "out",
        "residual",
        "self",
        "wei",
        "class",
        "r",
        "",
        "a b",
        "dst",
        "operands",
        "é",
    )
    types = ("f32", "u8", "s8", "s32", "bf16", "f16", "s4", "what", None)
    extents = ("full", "per_channel", "per_tensor", "what", None)
    leaf = Made(Leaf, (one_of(rng, names), one_of(rng, types), one_of(rng, extents)))
    binary = Made(Binary, (one_of(rng, ("add", "mul", "max", "div", "ge")), leaf))
    attempt.settings["post"] = Made(Chain, (attempt.settings.get("post", Chain()), binary))
    if rng.random() < 0.7:
        operands = attempt.call.setdefault("operands", {})
        if isinstance(operands, dict):
            operands[str(leaf.given[0])] = np.ones(one_of(rng, (1, 16, 8)), np.float32)


@worse
def a_chain_of_many(attempt: Attempt, rng: Rng) -> None:
    count = int(rng.integers(20, 60))
    steps = tuple(one_of(rng, (PRelu(0.5), Affine(-1.0, 1.0), Round())) for _ in range(count))
    attempt.settings["post"] = Chain(*steps)
