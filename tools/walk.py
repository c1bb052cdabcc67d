"""What a reader has to follow: the Python of the package that one call runs, counted.

    python tools/walk.py                # README's operator and layer, first calls and later ones
    python tools/walk.py --nouns        # and the classes that took part, by name
    python tools/walk.py --model m.onnx # and a float model: loaded, calibrated, fused, run

Each walk runs once, with everything imported before: calls, distinct functions (how many of those
are properties, comprehensions and generators, and how many dataclasses wrote), the files they are
in, how often a call leads from one file or room to another, and the nouns: classes of the package
that are made, or of which a method runs. Python 3.12 and later make no functions of list
comprehensions. `first use` rows are one walk over several calls: what all of them lead through.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from inspect import getattr_static
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = "pyonednn_q"
HEAD = (
    *("walk", "calls", "functions", "properties", "comprehensions", "of dataclasses"),
    *("files", "to another file", "to another room", "nouns"),
)


@dataclass
class Walk:
    """One call, followed. `nouns`: names of classes; `functions`, `properties`: by their code."""

    calls: int = 0
    functions: set[CodeType] = field(default_factory=set)
    properties: set[CodeType] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    files_left: int = 0
    rooms_left: int = 0
    nouns: set[str] = field(default_factory=set)

    def follow(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call gives
        """Run `call` and count."""
        sys.setprofile(self._see)
        try:
            return call()
        finally:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        module = _module(frame)
        if event != "call" or module is None:
            return
        self.calls += 1
        self.functions.add(frame.f_code)
        self.files.add(module)
        self._name_noun(frame)
        before = frame.f_back
        while before is not None and _module(before) is None:
            before = before.f_back
        if before is not None:
            came_from = str(_module(before))
            self.files_left += came_from != module
            self.rooms_left += _room(came_from) != _room(module)

    def _name_noun(self, frame: FrameType) -> None:
        names = frame.f_code.co_varnames[:1]
        if names not in {("self",), ("cls",)}:
            return
        of = frame.f_locals[names[0]]
        kind = of if isinstance(of, type) else type(of)
        if kind.__module__.startswith(PACKAGE):
            self.nouns.add(kind.__name__)
        if isinstance(getattr_static(kind, frame.f_code.co_name, None), property):
            self.properties.add(frame.f_code)

    def cells(self) -> tuple[int, ...]:
        """Return the numbers, in the order of `HEAD`."""
        # What is written for a dataclass has no file; what has no name of its own is in brackets.
        written = sum(code.co_filename == "<string>" for code in self.functions)
        nameless = sum(code.co_name.endswith(("comp>", "genexpr>")) for code in self.functions)
        counts = (len(self.functions), len(self.properties), nameless, written)
        left = (self.files_left, self.rooms_left)
        return (self.calls, *counts, len(self.files), *left, len(self.nouns))


def _module(frame: FrameType) -> str | None:
    """Return the module of a frame if it is the package's; what dataclasses write counts."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.partition(".")[0] == PACKAGE else None


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def model_walks(path: str) -> dict[str, Walk]:
    """Follow a float model of one input of known dims, from its file to its first run in INT8."""
    rng = np.random.default_rng(0)
    ((name, info),) = pq.onnx.load(path).inputs.items()
    x = rng.normal(0, 1, info.dims or ()).astype(info.dtype)
    by_call: dict[str, Walk] = {"a model's first use": Walk()}

    def follow(words: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        by_call[words] = Walk()
        by_call[words].follow(call)
        return by_call["a model's first use"].follow(call)

    def use(follow: Callable[[str, Callable[[], Any]], Any]) -> None:
        graph = follow("onnx.load", lambda: pq.onnx.load(path))
        found = follow("calibrate", lambda: pq.calibrate(graph, [{name: x}]))
        fused = follow("onnx.fuse", lambda: pq.onnx.fuse(found.graph))
        model = follow("onnx.Model", lambda: pq.onnx.Model(fused))
        follow("model.run, first", lambda: model.run({name: x}))

    use(lambda _, call: call())  # what is imported late is imported then
    use(follow)
    return by_call


def walks() -> dict[str, Walk]:
    """Follow README's operator and README's layer."""
    rng = np.random.default_rng(0)
    wei = rng.integers(-64, 65, (64, 32, 3, 3)).astype(np.int8)
    options: dict[str, Any] = {
        "src_q": pq.QParams(0.02, 3, "u8"),
        "wei_q": pq.QParams(rng.uniform(1e-3, 2e-3, 64), 0, "s8", axis=0),
        "dst_q": pq.QParams(0.05, 10, "u8"),
        "padding": 1,
    }
    src = rng.integers(0, 256, (1, 32, 28, 28)).astype(np.uint8)
    last = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    reals = rng.uniform(-1, 1, (1, 32, 28, 28)).astype(np.float32)

    # What a call is given is made before: by whoever calls.
    high = np.linspace(2, 8, 64)
    arguments: dict[str, Any] = {
        "problem": pq.primitive.ConvProblem.of(
            (1, 32, 28, 28), (64, 32, 3, 3), src="u8", dst="u8", padding=1
        ),
        "wei": wei * 0.01,
        "bias": rng.normal(0, 0.5, 64),
        "wei_levels": 129,
        "src_fq": pq.FakeQuantize(-1, 1.55, -1, 1.55),
        "chain": pq.Chain(pq.Affine(np.linspace(0.5, 2, 64), 0.25), pq.Eltwise("relu")),
        "dst_fq": pq.FakeQuantize(0, high, 0, high),
    }

    def layer() -> pq.compose.Layer:
        return pq.compose_layer(**arguments)

    # Once before: what is imported late is imported then.
    pq.Conv(wei[:32, :16], **{**options, "wei_q": pq.QParams(1e-3, 0, "s8")})(src[:, :16])
    pq.prepare_layer(layer())(reals)
    by_call: dict[str, Walk] = {}

    def follow(name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        by_call[name] = Walk()
        return by_call[name].follow(call)

    by_call["a first use: pq.Conv(wei, ...)(src)"] = Walk()
    by_call["a first use: pq.Conv(wei, ...)(src)"].follow(lambda: pq.Conv(wei, **options)(last))
    conv = follow("pq.Conv(wei, ...)", lambda: pq.Conv(wei, **options))
    follow("conv(src), first of a shape", lambda: conv(last))
    follow("conv(src), every next", lambda: conv(last))
    follow("conv(src), first of another size", lambda: conv(last[..., :14, :]))
    follow("conv(src), another layout, first", lambda: conv(src))
    follow("conv(src), float source, first", lambda: conv(reals))
    follow("conv(src), float source, every next", lambda: conv(reals))
    composed = follow("pq.compose_layer(...)", layer)
    prepared = follow("pq.prepare_layer(layer)", lambda: pq.prepare_layer(composed))
    prepared(reals)
    follow("prepared(src), float source, every next", lambda: prepared(reals))
    return by_call


def counts() -> dict[str, dict[str, int]]:
    """Return the numbers of README's walks, by the names in `HEAD`."""
    return {name: dict(zip(HEAD[1:], walk.cells(), strict=True)) for name, walk in walks().items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nouns", action="store_true", help="name the classes that took part")
    parser.add_argument("--model", help="follow a float ONNX model, too: its file")
    asked = parser.parse_args()
    names = asked.nouns
    by_call = walks() | ({} if asked.model is None else model_walks(asked.model))
    columns = [Column(name, right=place > 0) for place, name in enumerate(HEAD)]
    cells = [[f"`{name}`", *map(str, walk.cells())] for name, walk in by_call.items()]
    print(Table(columns, cells).markdown())
    if names:
        for name, walk in by_call.items():
            print(f"\n{name}: {', '.join(sorted(walk.nouns))}")


if __name__ == "__main__":
    main()
