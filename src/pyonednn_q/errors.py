"""Everything this package raises on purpose.

Nothing else of ours but `shown` may be imported here: every room, and the extension, raises from
this list. An error names what it is about, what came and what would do, and keeps them as
attributes. Its text has at most `LONGEST` characters, whatever came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyonednn_q.shown import LONGEST, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

Reasons = tuple[tuple[str, str], ...]
T = TypeVar("T")

_DETAIL = 360  # characters of a detail: room for where weights saturate, and for what to do then
_LEAST = 40  # of what is worth to be said in part

__all__ = [
    "AliasError",
    "ArgumentError",
    "DTypeError",
    "Error",
    "ForkedError",
    "KnownWrongError",
    "LayoutError",
    "LibraryError",
    "NoModelError",
    "OneDNNError",
    "OutOfMemoryError",
    "ReferenceKernelError",
    "SaturationError",
    "SelfCheckError",
    "ShapeError",
    "UnsupportedError",
    "Variant",
]


@dataclass(frozen=True, slots=True)
class Variant:
    """A problem near one that is not supported, which is.

    Attributes
    ----------
    changes : tuple of str
        Changes, nearest first.
    problem, attributes : str
        The texts of what was tried.
    implementation : str
        Implementation that would run.
    """

    changes: tuple[str, ...]
    problem: str
    attributes: str
    implementation: str

    def __str__(self) -> str:
        return f"{' and '.join(self.changes)}: {self.implementation}"


class Error(Exception):
    """Base of all errors of this package."""


class ArgumentError(Error, ValueError):
    """An argument cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument as the caller spells it.
    got : str
        Value that was passed, as text.
    wanted : str
        Description of a valid value.

    Examples
    --------
    >>> str(ArgumentError("stride", "(0, 1)", "values of at least 1"))
    'stride: got (0, 1); wanted values of at least 1'
    """

    def __init__(self, argument: str, got: str, wanted: str) -> None:
        self.argument = shortened(argument, 80)
        self.wanted = shortened(wanted, 280)
        self.got = shortened(got, LONGEST - 20 - len(self.argument) - len(self.wanted))
        super().__init__(self.argument, self.got, self.wanted)

    def __str__(self) -> str:
        return f"{self.argument}: got {self.got}; wanted {self.wanted}"


class ShapeError(ArgumentError):
    """Dimensions that do not fit: each other, the primitive, or memory."""


class LayoutError(ArgumentError):
    """Strides that no primitive can use."""


class AliasError(ArgumentError):
    """Two arrays share memory where they must not."""


class DTypeError(ArgumentError, TypeError):
    """A data type that does not fit."""


class OneDNNError(Error, RuntimeError):
    """The library refused a call.

    Parameters
    ----------
    status : str
        oneDNN's status without prefix, for example ``"invalid_arguments"``.
    call : str
        The C function that returned it.
    problem : str
        One-line text of the problem, empty when there is none.
    detail : str
        Further details.
    """

    def __init__(self, status: str, call: str, problem: str, detail: str = "") -> None:
        self.status = shortened(status, 40)
        self.call = shortened(call, 60)
        self.problem = shortened(problem, 1000)
        self.detail = shortened(detail, 1000)
        super().__init__(self.status, self.call, self.problem, self.detail)

    def __str__(self) -> str:
        return self._line(LONGEST)

    def _line(self, room: int) -> str:
        """Return at most `room` characters; the problem gives way to the detail, which advises."""
        head = f"{self.call}: {self.status}" if self.call else self.status
        parts, room = [head], room - len(head)
        for text, most in ((self.detail, _DETAIL), (self.problem, 180)):
            if text and room - 2 >= min(len(text), _LEAST):
                parts.append(shortened(text, min(most, room - 2)))
                room -= len(parts[-1]) + 2
        return "; ".join(parts)


class OutOfMemoryError(OneDNNError, MemoryError):
    """There is not enough memory for a primitive, its constants or its result.

    Parameters
    ----------
    status, call, problem, detail : str
        Arguments of `OneDNNError`; `detail` has the bytes of each tensor.
    """


class UnsupportedError(OneDNNError):
    """No implementation that may be used exists for this problem, here.

    Parameters
    ----------
    status, call, problem, detail : str
        Arguments of `OneDNNError`.
    explain, suggest : callable, optional
        Return the (implementation, reason) pairs, and the nearest variants that are supported.
        Called once, when `reasons`, `variants` or the text is first read: reasons cost a child
        process, variants some tens of descriptors, and most callers only catch.
    """

    def __init__(
        self,
        status: str,
        call: str,
        problem: str,
        detail: str = "",
        *,
        explain: Callable[[], Reasons] | None = None,
        suggest: Callable[[], tuple[Variant, ...]] | None = None,
    ) -> None:
        super().__init__(status, call, problem, detail)
        self._explain = explain
        self._suggest = suggest
        self._reasons: Reasons | None = None
        self._variants: tuple[Variant, ...] | None = None

    @property
    def reasons(self) -> Reasons:
        """Pairs (implementation, why it refused), in the library's order; empty when unknown."""
        if self._reasons is None:
            explain, self._explain = self._explain, None
            self._reasons = _answer(explain)
        return self._reasons

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Problems that would be supported, nearest first; empty when nothing near was found."""
        if self._variants is None:
            suggest, self._suggest = self._suggest, None
            self._variants = _answer(suggest)
        return self._variants

    def __str__(self) -> str:
        near = [shortened(f"  {variant}", 80) for variant in self.variants]
        if near:
            near.insert(0, "nearest variants that run here:")
        left = LONGEST - sum(len(line) + 1 for line in near) - 40
        lines = [self._line(left)]
        left -= len(lines[0])
        for at, (implementation, reason) in enumerate(self.reasons):
            line = shortened(f"  {implementation}: {reason}", 160)
            left -= len(line) + 1
            if left < 0:
                lines.append(f"  and {len(self.reasons) - at} more, in reasons")
                break
            lines.append(line)
        return "\n".join(lines + near)

    def __reduce__(self) -> tuple[Any, ...]:
        known = {"_reasons": self.reasons, "_variants": self.variants}
        state = {**self.__dict__, **known, "_explain": None, "_suggest": None}
        return _blank, (type(self), self.args), state


def _answer(question: Callable[[], tuple[T, ...]] | None) -> tuple[T, ...]:
    try:
        return tuple(question()) if question else ()
    except Exception:  # the question must never hide the error it is about
        return ()


def _blank(cls: type[UnsupportedError], args: tuple[Any, ...]) -> UnsupportedError:
    """Return an error without attributes: unpickling fills them in."""
    return cls.__new__(cls, *args)


class ReferenceKernelError(UnsupportedError):
    """Only reference kernels would run, thousands of times slower, and they were not asked for."""


class KnownWrongError(UnsupportedError):
    """Every implementation on offer is known to compute this problem wrongly, or to crash.

    Parameters
    ----------
    status, call, problem, detail, explain, suggest
        Arguments of `UnsupportedError`.
    guards : tuple of str
        Ids of the rows of the guard table that match.
    """

    def __init__(
        self,
        status: str,
        call: str,
        problem: str,
        detail: str = "",
        *,
        guards: tuple[str, ...] = (),
        explain: Callable[[], Reasons] | None = None,
        suggest: Callable[[], tuple[Variant, ...]] | None = None,
    ) -> None:
        super().__init__(status, call, problem, detail, explain=explain, suggest=suggest)
        self.guards = guards


class SaturationError(UnsupportedError):
    """Sums would not be exact: beyond 32 bits, or pairs of products beyond 16 without VNNI.

    Parameters
    ----------
    status, call, problem, detail, explain
        Arguments of `UnsupportedError`.
    channels : tuple of int
        Output channels that are not exact for every source.
    """

    def __init__(
        self,
        status: str,
        call: str,
        problem: str,
        detail: str = "",
        *,
        channels: tuple[int, ...] = (),
        explain: Callable[[], Reasons] | None = None,
    ) -> None:
        super().__init__(status, call, problem, detail, explain=explain)
        self.channels = channels


class SelfCheckError(Error, RuntimeError):
    """A new primitive computed something else than was asked for.

    Parameters
    ----------
    problem : str
        One-line text of the problem, its attributes included.
    implementation : str
        Implementation that computed it.
    place : tuple of int
        The first differing element of dst.
    got : float
        Value that the implementation computed.
    wanted : (float, float)
        The least and the greatest value that would be right.
    wrong, checked : int
        Number of elements that differ, and number of elements that were compared.
    """

    def __init__(
        self,
        problem: str,
        implementation: str,
        place: tuple[int, ...],
        got: float,
        wanted: tuple[float, float],
        wrong: int,
        checked: int,
    ) -> None:
        super().__init__(problem, implementation, place, got, wanted, wrong, checked)
        self.problem = problem
        self.implementation = implementation
        self.place = place
        self.got = got
        self.wanted = wanted
        self.wrong = wrong
        self.checked = checked

    def __str__(self) -> str:
        low, high = self.wanted
        wanted = f"{low:.9g}" if low == high else f"{low:.9g} to {high:.9g}"
        return (
            f"self_check: {self.implementation} computes dst{list(self.place)} = {self.got:.9g} on "
            f"seeded data, and {wanted} is right; {self.wrong} of {self.checked} elements differ; "
            f"{shortened(self.problem, 200)}"
        )


class NoModelError(Error, LookupError):
    """No model of an implementation is proven for what was asked.

    Parameters
    ----------
    impl, isa : str
        The implementation and the instruction set.
    why : str
        Reason why there is no proven model.
    """

    def __init__(self, impl: str, isa: str, why: str) -> None:
        self.impl = shortened(impl, 80)
        self.isa = shortened(isa, 80)
        self.why = shortened(why, 300)
        super().__init__(self.impl, self.isa, self.why)

    def __str__(self) -> str:
        return f"no model of {self.impl} on {self.isa}: {self.why}"


class LibraryError(Error, ImportError):
    """No usable oneDNN, or no usable extension.

    Parameters
    ----------
    message : str
        Description of what is missing.
    tried : tuple of (str, str)
        Each candidate and why it failed.
    """

    def __init__(self, message: str, tried: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, tried)
        self.message = message
        self.tried = tuple(tried)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {name}: {why}" for name, why in self.tried)])


class ForkedError(Error, RuntimeError):
    """The process was forked after oneDNN had been used; its worker threads are gone."""
