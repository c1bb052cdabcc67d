"""What every problem has in common: named tensors, parameters, one line of text."""

from __future__ import annotations

from typing import Any, ClassVar

from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.tensor import Boundary, TensorSpec, cross

_ProblemBoundary = tuple[str, dict[str, Boundary], dict[str, Any]]


class Operation:
    """Base of all problems.

    A problem is a frozen dataclass. Its fields that are `TensorSpec` are its tensors, the others
    its parameters; a tensor that is None is absent.
    """

    __slots__ = ()

    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # set by dataclass

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """The tensors that are present, by name, in the order of the fields."""
        return {
            name: value
            for name in self.__dataclass_fields__
            if isinstance(value := getattr(self, name), TensorSpec)
        }

    def params(self) -> dict[str, Any]:
        """Return the parameters as the extension names them."""
        return {}

    def boundary(self) -> _ProblemBoundary:
        """Return what the extension receives: (kind, tensors, parameters)."""
        tensors = {name: spec.boundary() for name, spec in self.tensors.items()}
        return self.kind, tensors, self.params()

    def text(self) -> str:
        """Return one readable line: kind, tensors, parameters that are not the usual ones."""
        words = [self.kind]
        words += [f"{name}:{spec.text()}" for name, spec in self.tensors.items()]
        words += [f"{name}:{_plain(value)}" for name, value in self._shown().items()]
        return " ".join(words)

    def _shown(self) -> dict[str, Any]:
        return self.params()


def tensor(argument: str, value: object) -> TensorSpec:
    """Return `value` if it is a `TensorSpec`."""
    if not isinstance(value, TensorSpec):
        raise ArgumentError(argument, type(value).__name__, "a TensorSpec")
    return value


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return cross(value)
    return str(value)
