"""Operator: weights and settings made ready once, called on sources of any size.

What a call costs: one look at whether the source is the same kind of array as last time, and the
primitive. A source of another shape makes, or finds, another primitive over the same weights; those
used longest ago go (`limit_shapes`).
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, cast

from pyonednn_q.argument import integers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError
from pyonednn_q.expr.steps import Chain
from pyonednn_q.native.runtime import HotCallable
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.on_groups import OnGroups
from pyonednn_q.ops.on_primitives import OnPrimitives
from pyonednn_q.ops.requantized import Requantized
from pyonednn_q.ops.settings import Settings
from pyonednn_q.ops.source import codes_for
from pyonednn_q.qparams import QParams
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from typing_extensions import Self

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.dtypes import DType
    from pyonednn_q.native import Prepared
    from pyonednn_q.native.program import Pass
    from pyonednn_q.ops.planned import Planned

Dims = tuple[int, ...]


class Operator(HotCallable, OnPrimitives, Told, hot=True):
    """Base of `Conv`, `Deconv`, `InnerProduct` and `MatMul`. Safe from many threads at once.

    Attributes
    ----------
    settings : Settings
        Settings of the operator.
    weights : Weights
        Codes, scale and zero point of the weights, in oneDNN's dims.
    bias : ndarray or None
        One value per output channel: real values if floating, else in units of the accumulator.
    """

    def __init__(self, wei: object, bias: object, options: dict[str, Any]) -> None:
        wei_q, dst_q = options.pop("wei_q"), options["dst_q"]
        if options["dst"] is None:
            options["dst"] = dst_q.dtype if isinstance(dst_q, QParams) else "f32"
        if options["post"] is None:
            options["post"] = Chain()
        settings = Settings(**options)
        wei_array, groups = as_array("wei", wei), self.groups
        super().__init__(wei_array, bias, wei_q, settings)
        self._runner: Requantized | OnGroups | None = None
        if isinstance(wei_q, QParams) and wei_q.block:
            self._runner = OnGroups(wei_q)
        elif settings.requantize is None:
            self._compose_ahead()
        else:
            assert wei_q is not None
            self._runner = Requantized(self, wei_array, wei_q, groups)
        self._hot = None

    def __call__(
        self,
        /,  # so that a leaf may be called self
        src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
        *,
        out: Any = None,  # noqa: ANN401
        residual: Any = None,  # noqa: ANN401
        **operands: Any,  # noqa: ANN401
    ) -> Array:
        """Run on one source.

        Parameters
        ----------
        src : ndarray, CPU tensor with __dlpack__, or buffer
            Codes or floats in logical order, (N, C, spatial), (..., M, K) for a matmul. Channels
            last is read where it lies; other strides are copied first.
        out : the same, optional
            Written in place and returned. Without residual, it holds what a Sum of the chain reads.
        residual : the same, optional
            Tensor that a Sum reads; it is not changed.
        **operands : the same
            The chain's leaves, by name.

        Returns
        -------
        ndarray
            dst, or `out`. Its memory goes back to a pool when the last array over it is gone.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, LayoutError, AliasError
            Naming the argument, what came and what would do.
        UnsupportedError
            A shape that no implementation takes, with the reasons.
        """
        # Arrays that fit the last primitive as they are went straight there.
        array = as_array("src", src)
        if self._runner is None:
            ready = self._ready_for(array.shape, self._src_dtype(array))
            dst, hot = self._run(ready, array, out, residual, operands)
        else:
            dst, hot = self._runner(self, array, out, residual, operands)
        self._hot = hot or self._hot
        return cast("Array", dst if out is None else out)

    def prepare(self, src_dims: Dims, src_dtype: DType | None = None) -> Planned:
        """Make the primitive for a shape ahead of its first call, and return it.

        Parameters
        ----------
        src_dims : tuple of int
            Dims of the source.
        src_dtype : data type, optional
            Data type of a floating source; by default that of the weights.
        """
        if src_dtype is None:
            src_q = self.settings.src_q
            src_dtype = src_q.dtype if src_q else self.weights.dtype
        dims = integers("src_dims", src_dims)
        if min(dims, default=0) < 0:
            raise ShapeError("src_dims", str(dims), "no negative dimension")
        if self._runner is None:
            return self._ready_for(dims, src_dtype)
        return self._runner.prepare(self, dims, src_dtype)

    def making_codes(self, src_dims: Dims) -> tuple[Prepared, Pass, list[int]] | None:
        """Return the primitive of a dynamic source, and a pass of C++ that makes what it reads.

        Parameters
        ----------
        src_dims : tuple of int
            The dims of the source.

        Returns
        -------
        (Prepared, Pass, list of int) or None
            Primitive, its pass, and bytes of the pass's dst: at which each input of the primitive
            begins (0 for an operand), and how many there are. None without a dynamic source, and
            where Python does more.
        """
        dynamic = self.settings.dynamic
        if dynamic is None or self._runner is not None:
            return None
        ready = self._ready_for(src_dims, dynamic.dtype)
        rows = 1 if dynamic.extent == "per_tensor" else self._rows(src_dims)
        dims = src_dims, self._dst_dims(src_dims, ready)
        return codes_for(ready, dynamic, self.weights.parts, rows, dims)

    @property
    def in_groups(self) -> bool:
        """Whether its weights share scales in groups: it has no primitive, and no plan."""
        return isinstance(self._runner, OnGroups)

    def group_pass(self, src_dims: Dims) -> Pass | None:
        """Return the step of a program that is all of it, of weights in groups and float32 rows.

        Parameters
        ----------
        src_dims : tuple of int
            Dims of the source, which has no gaps.
        """
        return self._runner.as_pass(self, src_dims) if isinstance(self._runner, OnGroups) else None

    def clear(self) -> None:
        """Let go of primitives and packed weights; calls that come make them again."""
        self._hot = None
        self._ready.clear()
        self._compositions.clear()
        self._as_u8 = False
        if self._runner is not None:
            self._runner.clear()

    def plan(self, src_dims: Dims) -> Plan:
        """Return the plan for a shape: what was folded where, what was refused, how exact it is."""
        return self.prepare(src_dims).plan

    def products(self, src_dims: Dims) -> tuple[Operator, ...]:
        """Return the operators whose primitives run for a shape: this one, unless it requantizes.

        Parameters
        ----------
        src_dims : tuple of int
            Dims of the source.
        """
        runner = self._runner
        return runner.products(self, src_dims) if isinstance(runner, Requantized) else (self,)

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for."""
        if self._runner is None:
            return tuple(dims for dims, _ in self._ready)
        return self._runner.shapes

    @property
    def notes(self) -> tuple[str, ...]:
        """Deviations from the request that the plan does not mention."""
        done = () if self._runner is None else self._runner.notes
        return done or tuple(filter(None, [self.weights.note]))

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights, over all layouts that primitives asked for."""
        if self._runner is not None:
            return self._runner.wei_bytes
        compositions = tuple(self._compositions.values())  # other threads may add some
        packed = {id(one.packed): one.packed for one in compositions}
        return sum(one.nbytes for one in packed.values())

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_runner": copy(self._runner)})
        return twin

    def __getstate__(self) -> dict[str, Any]:
        of_process = ("_ready", "_compositions", "_as_u8", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in of_process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()
        self._hot = None

    def __repr__(self) -> str:
        dims = " x ".join(map(str, self.weights.dims))
        return f"<{type(self).__name__} {dims} of {self.weights.dtype}, {len(self.shapes)} ready>"
