"""Misreadings, planted into what an operator runs: never into what it is compared with.

Most change the layer that is composed and prepared; the others what makes codes of a source, what
stores a result, and what another runtime's arithmetic is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.dtypes import numpy_dtype
from pyonednn_q.ops import on_primitives, requantized, ways
from pyonednn_q.ops.form import Form
from pyonednn_q.ops.planned import Planned
from pyonednn_q.ops.source import Codes
from pyonednn_q.ops.weights import Weights

if TYPE_CHECKING:
    import pytest

    from pyonednn_q.ops.asking import Asking

KINDS = ("conv", "deconv", "inner_product", "matmul")
WINDOWED = KINDS[:2]
CHANNELS = 8


@dataclass(frozen=True)
class Misreading:
    """A way to get an operator wrong.

    Attributes
    ----------
    name : str
        What is misread.
    plant : callable
        f(monkeypatch).
    options : mapping
        Options of operators on which it shows.
    kinds : tuple of str
        Where it makes sense.
    """

    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
    options: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[str, ...] = KINDS

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def weights(*dims: int) -> Any:
    """Even codes that every processor sums exactly."""
    return (2 * np.random.default_rng(3).integers(-31, 32, dims)).astype(np.int8)


def made(kind: str, options: Mapping[str, Any]) -> tuple[Any, tuple[int, ...]]:
    """Return an operator of a kind that checks itself, and dims of its source."""
    axis = 1 if kind == "matmul" else 0
    given: dict[str, Any] = {
        "src_q": pq.QParams(0.05, 7, "u8"),
        "wei_q": pq.QParams(np.linspace(0.01, 0.04, CHANNELS), 0, "s8", axis=axis),
        "dst_q": pq.QParams(0.7, 11, "u8"),
        "bias": np.linspace(-9, 30, CHANNELS).astype(np.float32),
        **options,
    }
    wei_dtype = given["wei_q"].dtype
    window: dict[str, Any] = {}
    dims: tuple[int, ...]
    src: tuple[int, ...]
    if kind in WINDOWED:
        dims, src = (CHANNELS, 8, 3, 3), (2, 8, 8, 7)
        if kind == "conv":
            window["padding"] = ((1, 0), (0, 2))
    else:
        dims = (CHANNELS, 8, 2, 2) if kind == "inner_product" else (24, CHANNELS)
        src = (5, 8, 2, 2) if kind == "inner_product" else (2, 3, 24)
        for name in ("groups", "stride", "padding", "dilation"):
            given.pop(name, None)
    groups = given.get("groups", 1)
    wei = weights(dims[0], dims[1] // groups, *dims[2:])
    if wei_dtype == "u8":
        wei = (wei.astype(np.int16) + 128).astype(np.uint8)
    if given["wei_q"].axis is not None and given["wei_q"].axis != axis:
        given["wei_q"] = pq.QParams(
            given["wei_q"].scale, given["wei_q"].zero_point, wei_dtype, axis
        )
    make = {"conv": pq.Conv, "deconv": pq.Deconv, "inner_product": pq.InnerProduct}
    call = make.get(kind, pq.MatMul)
    return call(wei, given.pop("bias"), **{**window, **given, "self_check": True}), src


def of_layer(change: Callable[[Asking], Asking]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes every layer before it is composed."""
    usual = on_primitives.OnPrimitives._asking

    def plant(patch: pytest.MonkeyPatch) -> None:
        changed = lambda *args: change(usual(*args))  # noqa: E731
        patch.setattr(on_primitives.OnPrimitives, "_asking", changed)

    return plant


def of_settings(**change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes settings of every layer, by name."""

    def changed(layer: Asking) -> Asking:
        settings = layer.settings
        new = {name: make(getattr(settings, name)) for name, make in change.items()}
        return replace(layer, settings=replace(settings, **new))

    return of_layer(changed)


def of_post(change: Callable[..., pq.Chain]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes the chain, given its steps."""
    return of_settings(post=lambda post: change(*post))


def of_wei(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes weights, in the problem's dims."""
    return of_layer(lambda layer: replace(layer, wei=np.ascontiguousarray(change(layer.wei))))


def of_weights(**change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes what weights are worth."""

    def changed(layer: Asking) -> Asking:
        new = {name: make(getattr(layer.weights, name)) for name, make in change.items()}
        return replace(layer, weights=replace(layer.weights, **new))

    return of_layer(changed)


def of_wei_q(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes QParams of weights, before those are made s8."""
    usual = Weights.of

    def plant(patch: pytest.MonkeyPatch) -> None:
        other = lambda wei, wei_q, *more, **given: usual(wei, change(wei_q), *more, **given)  # noqa: E731
        patch.setattr(Weights, "of", other)

    return plant


def of_method(kind: type, name: str, change: Callable[..., Any]) -> Callable[[Any], None]:
    """Return what changes a method: f(the usual one, its arguments)."""
    usual = getattr(kind, name)
    return lambda patch: patch.setattr(kind, name, lambda *args: change(usual, *args))


def of_bias(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes the bias."""
    return of_layer(lambda layer: replace(layer, bias=change(layer.bias)))


def of_window(**change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes a problem's window, its dst along with it."""

    def changed(layer: Asking) -> Asking:
        problem: Any = layer.problem
        window = {
            "stride": problem.stride,
            "padding": tuple(zip(problem.padding_lo, problem.padding_hi, strict=True)),
            "dilation": problem.dilation,
        }
        window |= {name: make(window[name]) for name, make in change.items()}
        types = {name: problem.tensors[name].dtype for name in ("src", "wei", "dst")}
        bias = None if problem.bias is None else problem.bias.dtype
        dims = problem.src.dims, problem.wei.dims
        return replace(layer, problem=type(problem).of(*dims, bias=bias, **types, **window))

    return of_layer(changed)


def of_result(store: Callable[[Any, Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what stores the real result of calls itself: f(result in levels, dtype)."""
    usual = on_primitives.OnPrimitives._run

    def run(op: Any, planned: Any, src: Any, out: Any, residual: Any, operands: Any) -> Any:
        q = op.settings.dst_q
        if planned.plan.facts.dst == "f32":
            return usual(op, planned, src, out, residual, operands)
        real = copy(op)
        real.settings = replace(op.settings, dst="f32", dst_q=None, self_check=False)
        real.asked = None
        values = real(src, out=out, residual=residual, **operands)
        levels = values.astype(np.float64) / q.scale + q.zero_point
        return store(levels, numpy_dtype(planned.dst.dtype)), None

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(on_primitives.OnPrimitives, "_run", run)
        patch.setattr(Planned, "hot", None)

    return plant


def of_source(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes codes on their way to the primitive."""
    usual = on_primitives.OnPrimitives._codes

    def codes(self: Any, src: Any, made: Any) -> Any:
        return change(usual(self, src, made) or Codes(src))

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(on_primitives.OnPrimitives, "_codes", codes)
        patch.setattr(Planned, "hot", None)

    return plant


def of_floats(name: str, change: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what makes codes of float sources otherwise: f(usual, source, how, ...)."""
    usual = getattr(on_primitives, name)

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(on_primitives, name, lambda *args: change(usual, *args))

    return plant


def of_requantizer(**change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what tells another runtime's arithmetic otherwise."""
    from pyonednn_q.requantize import requantizer as usual

    def told(name: str, **given: Any) -> Any:
        return usual(name, **{**given, **{key: make(given[key]) for key, make in change.items()}})

    return lambda patch: patch.setattr(requantized, "requantizer", told)


def of_form(name: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what takes a form for the fastest, and has its weights wrong."""

    def tuned(_: Planned, make: Any, offered: Any, _layout: str) -> Any:
        found = {form.name: form for form in offered}
        return make(found[name], None)

    def plant(patch: pytest.MonkeyPatch) -> None:
        usual = Form.wei
        patch.setattr(ways, "tuned", tuned)
        patch.setattr(Form, "wei", lambda *args: np.ascontiguousarray(change(usual(*args))))

    return plant
