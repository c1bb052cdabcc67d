"""Stages: what primitives of their own compute, steps left over and float values to codes.

Each stage of steps left over is one binary primitive, x · 1, that carries as many steps as post-ops
as it may: binary takes nearly all of them on generated code.

- a residual and operands of other types are converted to f32 first (a reorder each);
- prelu per channel, which binary does not take, is max(x, 0) + slope · min(x, 0): exact, as one of
  the two is 0;
- u8, s8 and f32 are stored by the last stage, everything else by a cast from f32; a comparison
  ends a stage before u8, as AVX2 kernels store it wrong.

Tensors are flat, (rows, channels) or (before, channels, after): with more dimensions before the
channels, oneDNN 3.7 takes operands per channel on reference loops only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyonednn_q.compose.absorb import RIGHT_END
from pyonednn_q.compose.lower import Lowered, lower
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Leaf, PRelu, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import COMPARISONS
from pyonednn_q.primitive.problem import BinaryProblem, ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import Acc, Dst, Takes

# Names of values, beside those of the leaves.
SRC, DST, RESIDUAL = "src", "dst", "residual"

_STORED = ("f32", "u8", "s8")  # what a binary primitive stores on generated code


@dataclass(frozen=True, slots=True)
class Stage:
    """One primitive, and where its inputs come from.

    Attributes
    ----------
    problem : BinaryProblem or ReorderProblem
        Problem whose ``src1``, if it has one, is the number 1.
    attr : Attr
        Post-ops.
    values : tuple of (str, Vec)
        Constants, by run-time name.
    inputs : tuple of (str, str)
        Run-time names (``src``, ``post_op_0``), and names of the values they take.
    output : str
        Name of the value it makes.
    """

    problem: BinaryProblem | ReorderProblem
    attr: Attr
    values: tuple[tuple[str, Vec], ...]
    inputs: tuple[tuple[str, str], ...]
    output: str

    def spec(self, name: str) -> TensorSpec:
        """Return dims and data type of an input, by its run-time name."""
        if name in self.problem.tensors:
            return self.problem.tensors[name]
        post_op = self.attr.post_ops[int(name.removeprefix("post_op_"))]
        spec: TensorSpec = getattr(post_op, "src1")  # noqa: B009 - only binary has inputs
        return spec


def stages(
    chain: Chain, dims: tuple[int, ...], dst: str, *, residual: str | None = None
) -> tuple[Stage, ...]:
    """Compute a chain on f32 values by primitives of its own.

    Parameters
    ----------
    chain : Chain
        The steps.
    dims : (rows, channels) or (before, channels, after)
        Dims of the value, row-major. The rows of a leaf are not these, where there are batches of
        them or they lie otherwise in memory: it comes with all dims.
    dst : str
        Data type to store at the end: rounded to nearest even and saturated, if it is an integer
        type.
    residual : str, optional
        Data type of what a Sum reads, where it does not say so itself.

    Returns
    -------
    tuple of Stage
        The first takes `SRC`, the last makes `DST`.

    Examples
    --------
    >>> for stage in stages(Chain(Sum(0.5), Affine([1.0, 2.0])), (6, 2), "u8", residual="s8"):
    ...     print(stage.problem.kind, stage.attr.text(), dict(stage.inputs), stage.output)
    reorder  {'src': 'residual'} stage_0
    binary eltwise_linear:0.5:0.0 {'src': 'stage_0'} stage_1
    binary binary_add:f32:6x2 binary_mul:f32:1x2 {'src': 'src', 'post_op_0': 'stage_1'} dst
    """
    if len(dims) not in (2, 3):
        raise ShapeError("dims", str(dims), "(rows, channels) or (before, channels, after)")
    builder = _Builder(dims, residual, _prefix(chain))
    for step in chain:
        builder.take(step)
    builder.store(dst)
    return tuple(builder.stages)


def _prefix(chain: Chain) -> str:
    """Return what no leaf's name begins with, for the names of what stages make."""
    operands = [step.operand for step in chain if isinstance(step, Binary)]
    names = {operand.name for operand in operands if isinstance(operand, Leaf)}
    for name in names & {SRC, DST, RESIDUAL}:
        raise ArgumentError("chain", f"a leaf called {name!r}", "another name: this one is taken")
    prefix = "stage_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _is_comparison(step: Step) -> bool:
    return isinstance(step, Binary) and step.alg in COMPARISONS


@dataclass(slots=True)
class _Builder:
    """Collects steps until a stage must end."""

    dims: tuple[int, ...]
    residual: str | None
    prefix: str
    value: str = SRC
    steps: list[Step] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    def take(self, step: Step) -> None:
        if isinstance(step, Sum):
            self.steps.append(Binary("add", self._addend(step)))
        elif isinstance(step, PRelu) and not step.slope.is_per_tensor:
            self._end_stage()
            below = self._run((Clip(hi=0.0), Affine(step.slope)), self.value)
            self.steps += [Clip(lo=0.0), Binary("add", Leaf(below))]
        elif isinstance(step, Binary) and isinstance(step.operand, Leaf):
            leaf = step.operand
            if leaf.extent == "per_row":
                leaf = Leaf(leaf.name, leaf.dtype)
            self.steps.append(Binary(step.alg, self._as_f32(leaf)))
        else:
            self.steps.append(step)

    def store(self, dst: str) -> None:
        # Guard comparison-in-binary.
        if dst == "u8" and any(map(_is_comparison, self.steps)):
            self._end_stage()
        if dst in _STORED:
            self._run(tuple(self.steps), self.value, dst, DST)
        else:
            self._end_stage()
            self._reorder(self.value, self.dims, "f32", dst, DST)

    def _end_stage(self) -> None:
        if self.steps:
            self.value = self._run(tuple(self.steps), self.value)
            self.steps.clear()

    def _new_name(self) -> str:
        return f"{self.prefix}{len(self.stages)}"

    def _addend(self, step: Sum) -> Leaf:
        """Return scale · (residual − zero_point) in f32."""
        dtype = step.dtype or self.residual
        if dtype is None:
            raise ArgumentError("residual", "None", "the data type of what the Sum reads")
        leaf = self._as_f32(Leaf(RESIDUAL, dtype))
        if step.scale == 1.0 and not step.zero_point:
            return leaf
        # Two steps: whole numbers less a zero point are exact.
        shift = [Affine(1.0, -float(step.zero_point))] if step.zero_point else []
        return Leaf(self._run((*shift, Affine(step.scale)), leaf.name))

    def _as_f32(self, leaf: Leaf) -> Leaf:
        if leaf.dtype == "f32":
            return leaf
        dims = self._extent(leaf.extent)
        name = self._reorder(leaf.name, dims, leaf.dtype, "f32", self._new_name())
        return Leaf(name, "f32", leaf.extent)

    def _extent(self, extent: str) -> tuple[int, ...]:
        if extent == "full":
            return self.dims
        channels = self.dims[1] if extent == "per_channel" else 1
        return (1, channels, *(1,) * (len(self.dims) - 2))

    def _reorder(self, value: str, dims: tuple[int, ...], src: str, dst: str, output: str) -> str:
        problem = ReorderProblem(TensorSpec.dense(dims, src), TensorSpec.dense(dims, dst))
        self.stages.append(Stage(problem, Attr(), (), (("src", value),), output))
        return output

    def _run(self, steps: Sequence[Step], value: str, dst: str = "f32", output: str = "") -> str:
        """Add the stages that carry the steps; return the name of what the last makes."""
        while True:
            carried = lower(steps, self._facts())
            assert carried.taken or not steps, carried.reason
            steps = steps[carried.taken :]
            if not steps:
                return self._binary(carried, value, dst, output or self._new_name())
            value = self._binary(carried, value, "f32", self._new_name())

    def _binary(self, carried: Lowered, value: str, dst: str, output: str) -> str:
        problem = BinaryProblem(
            src=TensorSpec.dense(self.dims, "f32"),
            src1=TensorSpec.dense(self._extent("per_tensor"), "f32"),
            dst=TensorSpec.dense(self.dims, dst),
            alg="mul",
        )
        values, inputs = [], [("src", value)]
        for index, carrier in enumerate(carried.carriers):
            if carrier.value is not None:
                values.append((f"post_op_{index}", carrier.value))
            if carrier.leaf is not None:
                inputs.append((f"post_op_{index}", carrier.leaf))
        attr = Attr(post_ops=carried.post_ops)
        self.stages.append(Stage(problem, attr, tuple(values), tuple(inputs), output))
        return output

    def _facts(self) -> PrimitiveFacts:
        # What `take` leaves in is what all primitives take; an inner product is the row-major one.
        return PrimitiveFacts(
            "inner_product", self.dims[1], dst="f32", ndims=len(self.dims), dst_dims=self.dims
        )


def quantizing_reorder(chain: Chain, src: TensorSpec, dst: TensorSpec) -> Stage | None:
    """Return the reorder that computes a chain and stores it, or ``None`` if it takes more.

    Parameters
    ----------
    chain : Chain
        Steps from float values to codes, for example ``Chain(*codes(fq).quantize)``.
    src, dst : TensorSpec
        f32, and an integer type; of any layouts.

    Examples
    --------
    >>> from pyonednn_q.primitive.tensor import TensorSpec
    >>> from pyonednn_q.expr.fake_quantize import FakeQuantize
    >>> chain = FakeQuantize(-0.5, 0.775, 0, 255).chain()
    >>> specs = [TensorSpec.dense((2, 3), dtype) for dtype in ("f32", "u8")]
    >>> stage = quantizing_reorder(chain, *specs)
    >>> stage.values
    (('dst_scale', Vec(0.004999999888241291)), ('dst_zero_point', Vec(100)))
    """
    steps, store = _shortened(chain, dst.dtype)
    if steps:
        return None
    values = []
    if store.scale != 1.0:
        values.append(("dst_scale", Vec(store.scale)))
    if store.zero_point:
        values.append(("dst_zero_point", Vec(float(store.zero_point))))
    constants = dict(values)
    attr = Attr(
        dst_scale=Scale() if "dst_scale" in constants else None,
        dst_zero_point=ZeroPoint() if "dst_zero_point" in constants else None,
    )
    return Stage(ReorderProblem(src, dst), attr, tuple(values), (("src", SRC),), DST)


def quantizing_chain(chain: Chain, dtype: str) -> Chain:
    """Return a chain with what the store to an integer type does anyway left out."""
    steps, store = _shortened(chain, dtype)
    last = () if store.is_plain else (Affine(1.0 / store.scale, float(store.zero_point)),)
    return Chain(*steps, *last)


def _shortened(chain: Chain, dtype: str) -> tuple[tuple[Step, ...], Dst]:
    items, _ = rewrite((Acc(), *chain, Dst(dtype)), CATALOGUE, "real")
    takes = Takes.PER_TENSOR
    store = Dst(dtype, takes_scale=takes, takes_zero_point=takes)
    items, _ = rewrite((*items[:-1], store), RIGHT_END, "real")
    last = items[-1]
    assert isinstance(last, Dst)
    return tuple(item for item in items if isinstance(item, Step)), last
