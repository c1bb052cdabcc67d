"""Plans drawn at random: a problem, what its numbers mean, a chain, and how it is composed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.native import runtime
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.oracle_numbers import INTEGER_RANGES
from support.plans.chains import CHANNELS
from support.plans.problems import KINDS, problem
from support.plans.random_chains import dirty_chain, random_chain
from support.plans.runs import Layer

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan

SPREAD = 60.0  # levels that the sums are scaled to, so that both ends of u8 are met
SMOOTH = ("tanh", "elu", "logistic", "gelu_erf", "gelu_tanh", "swish", "mish", "soft_relu")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A layer, a chain, and the facts of its primitive."""

    layer: Layer
    chain: Chain
    facts: PrimitiveFacts
    scales: Any

    def plan(self, policy: Any = "real", **options: Any) -> Plan:
        return compose(self.chain, self.facts, policy, scales=self.scales, **options)


def clean(seed: int) -> Drawn:
    """Draw numbers that float32 computes exactly, in any order."""
    rng = np.random.default_rng(seed)
    layer = _layer(rng, seed, ("u8", "s8", "s32", "f32"))
    more: dict[str, Any] = {
        "src_scale": 0.5,
        "wei_scale": np.resize([0.5, 0.25, 1.0], CHANNELS),
    }
    return _drawn(rng, layer, random_chain(rng, CHANNELS), np.arange(CHANNELS) - 6.5, more)


def dirty(seed: int) -> Drawn:
    """Draw scales that are no powers of two, wide weights, and now and then a smooth step."""
    rng = np.random.default_rng(seed)
    layer = _wide(rng, _layer(rng, seed, ("u8", "s8", "u8", "s8", "f32")))
    chain = dirty_chain(rng, CHANNELS)
    if rng.random() < 0.2:
        alg = str(rng.choice(SMOOTH))
        alpha = float(rng.choice([0.5, 1.5])) if alg in {"elu", "swish", "soft_relu"} else 0.0
        at = int(rng.integers(1, len(chain)))
        chain = Chain(*chain.steps[:at], Eltwise(alg, alpha), *chain.steps[at:])
    more = _scales(rng, layer)
    if dtypes.is_integer(layer.problem.dst.dtype) and rng.random() < 0.5:
        more |= {
            "dst_scale": float(rng.uniform(0.5, 2.0)),
            "dst_zero_point": int(rng.integers(0, 100)),
        }
    one = _drawn(rng, layer, chain, rng.uniform(-20.0, 20.0, CHANNELS), more)
    return _on_a_tie(rng, one) if rng.random() < 0.5 else one


def floating(seed: int, dtype: str) -> Drawn:
    """Draw a layer of floats, stored as they are or as f32."""
    rng = np.random.default_rng(seed)
    dst = dtype if rng.random() < 0.5 else "f32"
    layer = _normal(rng, Layer.of(problem(str(rng.choice(KINDS)), dst, dtype, dtype), seed))
    more = _scales(rng, layer)
    return _drawn(rng, layer, dirty_chain(rng, CHANNELS), rng.uniform(-20.0, 20.0, CHANNELS), more)


def filled(of: Any, seed: int) -> tuple[Layer, PrimitiveFacts]:
    """Fill a problem with dirty numbers."""
    rng = np.random.default_rng(seed)
    fill = _wide if dtypes.is_integer(of.src.dtype) else _normal
    layer = fill(rng, Layer.of(of, seed))
    more = _scales(rng, layer) | {"bias": rng.uniform(-20.0, 20.0, CHANNELS)}
    return layer, PrimitiveFacts.of(of, wei=layer.wei, process=runtime.facts(), **more)


def _scales(rng: np.random.Generator, layer: Layer) -> dict[str, Any]:
    width = float(layer.acc(PrimitiveFacts.of(layer.problem)).value.std()) or 1.0
    src_scale = float(rng.uniform(0.01, 0.02))
    wei_scale = SPREAD / width / src_scale * rng.uniform(0.3, 1.5, CHANNELS)
    return {"src_scale": src_scale, "wei_scale": wei_scale}


def _layer(rng: np.random.Generator, seed: int, dsts: tuple[str, ...]) -> Layer:
    kind, dst, src = (str(rng.choice(names)) for names in (KINDS, dsts, ("u8", "s8")))
    return Layer.of(problem(kind, dst, src), seed)


def _wide(rng: np.random.Generator, layer: Layer) -> Layer:
    """Use all of src's range, and weights as wide as no instruction set overflows with."""
    is_u8 = layer.problem.src.dtype == "u8"
    low, high = (0, 256) if is_u8 else (-128, 128)
    wei = rng.integers(-32, 33, layer.wei.shape) * (1 if is_u8 else 2)
    src = rng.integers(low, high, layer.src.shape)
    return replace(layer, src=src.astype(layer.src.dtype), wei=wei.astype(layer.wei.dtype))


def _normal(rng: np.random.Generator, layer: Layer) -> Layer:
    """Fill a layer of floats with numbers that use all of their digits."""
    src, wei = (rng.normal(size=array.shape) for array in (layer.src, layer.wei))
    return replace(layer, src=src.astype(layer.src.dtype), wei=wei.astype(layer.wei.dtype))


def _on_a_tie(rng: np.random.Generator, one: Drawn) -> Drawn:
    """Shift the chain so that one result, in real numbers, is half-way between two integers."""
    dst = one.facts.dst
    if dst not in INTEGER_RANGES:
        return one
    y = one.layer.meaning(one.chain, one.facts)
    low, high = INTEGER_RANGES[dst]
    inside = y[(low < y) & (y < high)]
    if not inside.size:
        return one
    value = float(rng.choice(inside))
    shift = (math.floor(value) + 0.5 - value) * one.facts.dst_scale
    return replace(one, chain=Chain(*one.chain, Affine(1.0, shift)))


def _drawn(
    rng: np.random.Generator, layer: Layer, chain: Chain, bias: Any, more: dict[str, Any]
) -> Drawn:
    of = layer.problem
    if rng.random() < 0.2:
        gate = (2.0 ** rng.integers(-1, 2, CHANNELS)).astype(np.float32)
        rest = rng.integers(-9, 9, of.dst.dims).astype(np.int8)
        layer = replace(layer, operands={"gate": gate, "rest": rest})
        leaves = (
            Binary("mul", Leaf("gate", "f32", "per_channel")),
            Binary("add", Leaf("rest", "s8")),
        )
        at = int(rng.integers(len(chain) + 1))
        chain = Chain(*chain.steps[:at], *leaves, *chain.steps[at:])
    if not dtypes.is_integer(of.dst.dtype):
        chain = Chain(*(replace(s, zero_point=0) if isinstance(s, Sum) else s for s in chain))
    is_int8 = dtypes.is_integer(of.wei.dtype)
    if is_int8 and ACCEPTS[of.kind].src_zero_point and rng.random() < 0.25:
        more["src_zero_point"] = int(rng.integers(0, 8))
    # A scale of 16-bit weights comes before the bias, which must be known then.
    fate = rng.random() * (1.0 if is_int8 or of.wei.dtype == "f32" else 0.6)
    if fate < 0.6:
        more["bias"] = bias
    elif fate < 0.8:
        layer = replace(layer, later=Vec(bias))
    else:
        layer = replace(layer, problem=replace(of, bias=None))
    wei = layer.wei if rng.random() < 0.7 else None
    facts = PrimitiveFacts.of(layer.problem, wei=wei, process=runtime.facts(), **more)
    return Drawn(layer, chain, facts, "folded" if rng.random() < 0.8 else "separate")
