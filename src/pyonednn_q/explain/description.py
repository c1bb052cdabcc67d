"""Description: a layer as a user writes it down, read into a problem, facts and a chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from pyonednn_q import dtypes
from pyonednn_q.compose.composer import Scales, compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.layer_tables import KEYS, AnyLayer, DstTable
from pyonednn_q.explain.reader import at, read_table
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import codes, quantizes_to
from pyonednn_q.expr.steps import Affine, Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts
from pyonednn_q.reading import place, told
from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.ends import is_noise
from pyonednn_q.rewrite.rule import Policy, RuleSet

if TYPE_CHECKING:
    from pyonednn_q.primitive.dense_facts import DenseProblem

__all__ = ["POLICIES", "Description", "read"]

POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, slots=True)
class Description:
    """A layer: what to compose, and how.

    Attributes
    ----------
    title : str
        Title by the user.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Shapes and data types.
    facts : PrimitiveFacts
        Scales, zero points and bias of the primitive.
    chain : Chain
        The steps that follow the accumulator, the FakeQuantize of dst included.
    reading : Chain
        Chain from an element of dst to a real value; empty if it is one.
    policy, scales, exact_rounding
        Options of `compose`.
    """

    title: str
    problem: DenseProblem
    facts: PrimitiveFacts
    chain: Chain
    reading: Chain = Chain()  # noqa: RUF009 - Chain is frozen
    policy: Policy = "real"
    scales: Scales = "folded"
    exact_rounding: bool = False

    def plan(self, *, rules: RuleSet = CATALOGUE, strict: bool = False) -> Plan:
        """Compose; `strict` refuses what no post-op carries."""
        with at("", KEYS):
            return compose(
                self.chain,
                self.facts,
                self.policy,
                rules=rules,
                scales=self.scales,
                exact_rounding=self.exact_rounding,
                strict=strict,
            )

    def on(self, process: Facts | None) -> Description:
        """Return the same layer in a process of this version and instruction set."""
        return replace(self, facts=replace(self.facts, process=process))


def read(value: object) -> Description:
    """Return the layer that a TOML or JSON file describes; docs/explain.md has all keys.

    Parameters
    ----------
    value : object
        The parsed file: nested dicts, lists and values.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        Naming the key by its path, what stood there, and what would do.

    Examples
    --------
    >>> layer = read({
    ...     "op": "inner_product",
    ...     "src": {"dims": [8, 64], "scale": 0.5},
    ...     "wei": {"dims": [10, 64]},
    ...     "chain": ["relu", {"step": "multiply", "value": 3}],
    ...     "dst": "f32",
    ... })
    >>> print(layer.chain)
    relu(x) > x * 3
    >>> [op.text() for op in layer.plan().post_ops]
    ['eltwise_relu']
    """
    table = read_table(_written_out(value), AnyLayer)
    problem = table.problem()
    facts = table.facts(problem)
    steps = [step.made(f"chain[{index}]", facts.channels) for index, step in enumerate(table.chain)]
    ending, reading = _store(table.dst, facts)
    how = (table.policy, table.scales, table.exact_rounding)
    return Description(table.title, problem, facts, Chain(*steps, ending), reading, *how)


def _written_out(value: object) -> object:
    """Return the tables with those of which only a name was said: dst by its type, steps."""
    if not isinstance(value, dict):
        raise ArgumentError("description", told(value), "a table of keys")
    tables = dict(value)
    if isinstance(dst := tables.get("dst"), str):
        tables["dst"] = {"dtype": dst}
    if isinstance(chain := tables.get("chain"), list):
        tables["chain"] = [{"step": step} if isinstance(step, str) else step for step in chain]
    return tables


def _store(dst: DstTable, facts: PrimitiveFacts) -> tuple[Chain, Chain]:
    """Return the steps of dst's FakeQuantize, and what turns dst into a real value."""
    if dst.fake_quantize is None:
        scale = Vec(facts.dst_scale)
        return Chain(), _reading(scale, -scale * float(facts.dst_zero_point))
    for key in ("scale", "zero_point"):
        if getattr(dst, key) is not None:
            raise ArgumentError(place("dst", key), "a value", "nothing beside fake_quantize")
    here = "dst.fake_quantize"
    fq = dst.fake_quantize.made(here, facts.channels)
    if not dtypes.is_integer(facts.dst):
        with at(here):
            return fq.chain(), Chain()
    least, greatest = dtypes.qmin(facts.dst), dtypes.qmax(facts.dst)
    lowest, highest = fq.output_low, fq.output_low + float(fq.levels - 1)
    if quantizes_to(fq) and lowest.least >= least and highest.greatest <= greatest:
        with at(here):
            return fq.chain(), Chain()
    if fq.levels > greatest - least + 1:
        wanted = f"at most {greatest - least + 1}: dst is {facts.dst}"
        raise ArgumentError(place(here, "levels"), str(fq.levels), wanted)
    if fq.is_threshold:
        raise ArgumentError(here, str(fq), "outputs 0 and 1, or a float dst")
    fq.check_levels(f"{here}.input_low")
    return _levels(fq, signed=least < 0)


def _levels(fq: FakeQuantize, *, signed: bool) -> tuple[Chain, Chain]:
    """Cut a FakeQuantize in two: levels are stored, and whoever reads them scales them."""
    cut = codes(fq, signed=signed)
    stored = (step for step in cut.quantize if step != Affine())
    reading = cut.dequantize[0]
    assert isinstance(reading, Affine)
    return Chain(*stored), _reading(reading.scale, reading.shift)


def _reading(scale: Vec, shift: Vec) -> Chain:
    """Return scale*x + shift; if the zero point is whole but for folding, so that it is whole."""
    if not (scale.values() == 0.0).any():
        zero_point = (-shift / scale).rint()
        if is_noise(-shift / scale, zero_point):
            shift = -(zero_point * scale)
    step = Affine(scale, shift)
    return Chain() if step == Affine() else Chain(step)
