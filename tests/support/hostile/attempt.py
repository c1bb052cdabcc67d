"""Attempt: the arguments of a call before anything is made of them, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.qparams import QParams
from support.calls.call import Call, functions, operators
from support.calls.draw import dst_dims

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

QPARAMS = ("src_q", "wei_q", "dst_q")


@dataclass
class Made:
    """An object that is made only when the call is tried: its constructor is under test, too."""

    of: Callable[..., Any]
    given: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """Make it."""
        return self.of(*map(made, self.given), **{k: made(v) for k, v in self.named.items()})


@dataclass
class Attempt:
    """Arguments to be made worse.

    settings: of the operator. call: of the call: out, residual, operands.
    functional: whether the function is called, with everything at once.
    twice: whether the same call follows, which then takes the shortest way.
    dst_dims, dst_dtype: of the result, before anything was made worse.
    wrong: what was done to it.
    """

    kind: str
    src: Any
    wei: Any
    bias: Any
    settings: dict[str, Any]
    call: dict[str, Any]
    functional: bool
    twice: bool
    dst_dims: tuple[int, ...]
    dst_dtype: str
    wrong: list[str] = field(default_factory=list)
    prepare_first: tuple[Any, ...] | None = None
    positional: tuple[Any, ...] = ()

    @classmethod
    def of(cls, call: Call, rng: np.random.Generator) -> Attempt:
        """Take a call apart."""
        settings = call.settings()
        for name in QPARAMS:
            if name in settings:
                settings[name] = _taken_apart(settings[name])
        given: dict[str, Any] = {}
        if call.residual is not None:
            given["residual"] = call.residual
        if call.operands:
            given["operands"] = dict(call.operands)
        src = call.src
        if call.src_q is not None and rng.random() < 0.15:
            values = float(call.src_q.scale) * (src.astype(np.float64) - call.src_q.zero_point)
            src = (values * rng.uniform(0.9, 1.1, src.shape)).astype(np.float32)
        return cls(
            call.kind,
            src,
            call.wei,
            call.bias,
            settings,
            given,
            functional=bool(rng.random() < 0.4),
            twice=bool(rng.random() < 0.4),
            dst_dims=dst_dims(call),
            dst_dtype=call.dtype,
        )

    def run(self) -> list[Any]:
        """Make everything, call it, and return the results."""
        settings = {name: made(value) for name, value in self.settings.items()}
        call = {name: made(value) for name, value in self.call.items()}
        tensors: tuple[Any, ...]
        if self.functional:
            one, tensors = functions()[self.kind], (self.src, self.wei, self.bias)
            call = {**settings, **call}
        else:
            one, tensors = operators()[self.kind](self.wei, self.bias, **settings), (self.src,)
            if self.prepare_first is not None:
                one.prepare(*self.prepare_first)
            call.update(call.pop("operands", {}))
        first = one(*tensors, *self.positional, **call)
        if not self.twice:
            return [first]
        kept = np.array(first, copy=True)
        return [kept, one(*tensors, *self.positional, **call)]


def made(value: Any) -> Any:
    """Return an object, made now if it was only described."""
    return value.make() if isinstance(value, Made) else value


def _taken_apart(params: QParams) -> Made:
    given = {name: getattr(params, name) for name in ("scale", "zero_point", "dtype", "axis")}
    return Made(QParams, (), given)
