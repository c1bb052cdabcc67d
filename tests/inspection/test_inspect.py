"""inspect: what it says is what the library, the plan and a count by hand say."""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import re
import subprocess
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import native
from pyonednn_q.native.creation import creation
from pyonednn_q.primitive.isa import InstructionSet, classify
from support.fault import filled
from support.faults import FAULTS

RNG = np.random.default_rng(9)
Q: dict[str, Any] = {"src_q": pq.QParams(0.5, 2, "u8"), "wei_q": pq.QParams(0.25, 0, "s8")}
PLAIN = Q | {"src_q": pq.QParams(0.5, 0, "s8")}
RELU = pq.Chain(pq.Eltwise("relu"))


def codes(*dims: int) -> Any:
    """Even: without VNNI, kernels for s8 sources lose the last bit."""
    return 2 * RNG.integers(-2, 3, dims).astype(np.int8)


OPERATORS = {
    "conv": (pq.Conv(codes(16, 8, 3, 3), **Q, padding=1, stride=2, post=RELU), (2, 8, 9, 7)),
    "grouped": (pq.Conv(codes(16, 4, 3, 3), **Q, groups=2, post=RELU), (1, 8, 6, 5)),
    "deconv": (pq.Deconv(codes(16, 8, 2, 2), **PLAIN, stride=2), (1, 8, 5, 4)),
    "inner product": (pq.InnerProduct(codes(16, 8), **PLAIN), (3, 8)),
    "matmul": (pq.MatMul(codes(8, 16), **Q, dst_q=pq.QParams(2, 1, "u8"), post=RELU), (3, 8)),
    "batch of matmuls": (pq.MatMul(codes(8, 16), **Q), (2, 3, 8)),
}  # fmt: skip


@pytest.fixture(params=OPERATORS)
def made(request: pytest.FixtureRequest) -> tuple[Any, pq.inspection.Inspection]:
    operator, dims = OPERATORS[request.param]
    return operator.prepare(dims), pq.inspect(operator, dims)


def test_it_is_what_was_prepared(made: tuple[Any, pq.inspection.Inspection]) -> None:
    planned, found = made
    primitive = planned.primitive
    assert (found.implementation, found.kind) == (primitive.impl, classify(primitive.impl))
    assert found.problem == primitive.problem.text()
    assert found.attributes == primitive.attr.text()
    assert {f.tensor: f.layout for f in found.formats} == primitive.layouts
    assert found.packed_bytes == primitive.wei_bytes > 0
    assert found.scratchpad_bytes == primitive.scratchpad_bytes
    assert found.benchdnn.split() == planned.plan.benchdnn(primitive.problem).split()
    assert found.exactness == str(planned.plan.exactness)


def test_the_library_says_the_same(made: tuple[Any, pq.inspection.Inspection]) -> None:
    """Its own line names the implementation, the types, the post-ops and the lengths."""
    planned, found = made
    assert found.verbose is not None
    assert f",{found.implementation}," in found.verbose
    assert ("eltwise_relu" in found.verbose) == ("eltwise_relu" in found.attributes)
    problem = planned.primitive.problem
    assert f"src:{problem.src.dtype}:" in found.verbose
    assert f"dst:{problem.dst.dtype}:" in found.verbose
    sizes = re.findall(r"\d+", found.verbose.split(",")[-2])
    assert {str(d) for d in problem.src.dims if d > 1} <= set(sizes)
    assert {f.tensor for f in found.formats if f.tag} >= {"src", "wei", "dst"}


@pytest.mark.parametrize("name", ["conv", "grouped", "deconv"])
def test_work_is_counted_as_by_hand(name: str) -> None:
    """Every tap of a window counts, those on padding too."""
    operator, dims = OPERATORS[name]
    oc, per_group, *kernel = operator.weights.values.shape
    planned = operator.prepare(dims)
    points = dims if name == "deconv" else planned.primitive.problem.dst.dims
    taps = len(list(itertools.product(*map(range, points[2:]), *map(range, kernel))))
    found = pq.inspect(operator, dims)
    assert found.macs == dims[0] * oc * per_group * taps
    assert found.ops == 2 * found.macs


def test_work_of_products() -> None:
    for name, macs in (("inner product", 3 * 8 * 16), ("batch of matmuls", 2 * 3 * 8 * 16)):
        assert pq.inspect(*OPERATORS[name]).macs == macs


def test_copies_are_those_that_calls_make() -> None:
    """A row-major source of a convolution is copied, and so is its result; a matrix is not."""
    operator, dims = OPERATORS["conv"]
    found = pq.inspect(operator, dims)
    assert [(r.tensor, r.origin, r.target) for r in found.reorders] == [
        ("wei", "row-major", "packed"),
        ("src", "row-major", "channels last"),
        ("dst", "channels last", "row-major"),
    ]
    assert all(r.us > 0 for r in found.reorders)
    planned = operator.prepare(dims)
    ways = [planned.primitive, planned.row_major().primitive]
    assert set(ways[1].copied) == {"src", "dst"}
    operator(np.zeros(dims, np.uint8))
    assert [set(way.copies.values()) for way in ways] == [{0}, {0}]  # none in Python
    assert [r.tensor for r in pq.inspect(*OPERATORS["matmul"]).reorders] == ["wei"]
    last = pq.Conv(codes(16, 8, 3, 3), **Q, layout="channels_last")
    assert [r.tensor for r in pq.inspect(last, (1, 8, 5, 5)).reorders] == ["wei", "src"]
    only = pq.inspect(operator.prepare(dims))
    assert [r.tensor for r in only.reorders] == ["wei", "src"]


def test_refusals_come_in_the_order_of_asking() -> None:
    """The first implementation of the list was asked, refused, and is named with its reason."""
    operator, dims = OPERATORS["conv"]
    found = pq.inspect(operator, dims)
    assert found.rejected
    assert all(why for _, why in found.rejected)
    assert found.implementation not in {impl for impl, _ in found.rejected}


def test_guards_are_told() -> None:
    """Where a faulty kernel was stepped over, the row, the kernel and what runs are named."""
    for fault in FAULTS:
        arrays, values = filled(fault)
        try:
            ready = native.prepare(
                fault.problem,
                fault.attr,
                wei=arrays.get("wei"),
                bias=arrays.get("bias"),
                values=values,
            )
        except pq.UnsupportedError:
            continue
        rows = {row for entry in ready.skipped for row in entry.guards}
        if not rows:
            continue
        found = pq.inspect(ready)
        assert {met.guard for met in found.guards} == rows
        assert all(ready.impl in met.remedy and met.effect for met in found.guards)
        assert set(found.rejected) >= {(entry.impl, entry.why) for entry in ready.skipped}
        return
    pytest.skip(f"no kernel is stepped over on oneDNN {native.runtime.version()} here")


def test_the_rest_of_a_chain_is_told() -> None:
    chain = pq.Chain(*(pq.Affine(2.0, 0.5), pq.Eltwise("tanh")) * 20)
    operator = pq.MatMul(codes(8, 16), **Q, post=chain)
    found = pq.inspect(operator, (3, 8))
    assert found.after
    assert all(" on " in line for line in found.after)
    assert any("left over" in note for note in found.notes)


def test_what_was_done_instead_is_told() -> None:
    operator = pq.InnerProduct(codes(16, 8), **Q)
    found = pq.inspect(operator, (3, 8))
    assert any("runs as a matmul" in note for note in found.notes)
    is_image = any("asked as 1x1 convolution" in note for note in found.notes)
    assert found.problem.startswith("convolution" if is_image else "matmul")
    assert is_image is (not InstructionSet.of(found.isa).is_beyond_avx2())


def test_no_process_is_started_without_verbose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor by what a notebook shows: `repr`, or HTML."""
    operator, dims = OPERATORS["conv"]
    full = pq.inspect(operator, dims)

    def started(*_args: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    creation.cache_clear()
    with pytest.raises(AssertionError, match="was started"):
        pq.inspect(operator, dims)
    short = pq.inspect(operator, dims, verbose=False)
    assert short.verbose is None
    assert json.loads(short.to_json())["verbose"] is None
    assert "verbose         not asked" in str(short)
    assert (short.implementation, short.attributes) == (full.implementation, full.attributes)
    assert [form.layout for form in short.formats] == [form.layout for form in full.formats]
    assert {form.tag for form in short.formats} == {""}
    assert set(short.rejected) <= set(full.rejected)
    planned = operator.prepare(dims)
    for each in (short, operator, planned, planned.plan, planned.primitive):
        show = getattr(each, "_repr_html_", each.__repr__)
        assert show()
    cells = re.findall(r"<td>(.*?)</td><td>(.*?)</td>", html.unescape(short._repr_html_()))
    assert [f"  {name:<15} {text}" for name, text in cells] == str(short).splitlines()[1:]
    wrong: Any = 1
    with pytest.raises(pq.ArgumentError, match=r"^verbose: got 1; wanted True or False"):
        pq.inspect(operator, dims, verbose=wrong)


def test_json_holds_all_of_it() -> None:
    found = pq.inspect(*OPERATORS["conv"])
    data = json.loads(found.to_json())
    assert data.pop("schema") == 1
    assert data == json.loads(json.dumps(dataclasses.asdict(found)))
    assert hash(found) == hash(dataclasses.replace(found))
    assert found.verbose is not None
    for word in (found.verbose, found.benchdnn, found.attributes, found.implementation):
        assert word in str(found)


def test_other_primitives_have_no_work_and_no_line() -> None:
    spec = pq.primitive.TensorSpec.dense((4, 8), "f32")
    found = pq.inspect(pq.prepare(pq.primitive.EltwiseProblem(spec, spec, "relu")))
    assert (found.macs, found.benchdnn, found.packed_bytes) == (0, "", 0)
    assert found.verbose is not None
    assert ",eltwise," in found.verbose


def test_nothing_is_logged_of_nothing() -> None:
    found = pq.inspect(pq.MatMul(codes(8, 16), **Q), (0, 8))
    assert (found.implementation, found.verbose, found.macs) == ("none", "", 0)


def test_grouped_scales_are_made_again() -> None:
    problem = pq.primitive.MatMulProblem.of((8, 64), (64, 16), dst="f32")
    attr = pq.primitive.Attr(wei_scale=pq.primitive.Scale(3, "f32", (32, 1)))
    values = {"wei_scale": np.ones(32)}
    try:
        ready = pq.prepare(problem, attr, wei=codes(64, 16), values=values, allow_reference=True)
    except pq.UnsupportedError as error:
        pytest.skip(str(error))
    found = pq.inspect(ready)
    assert found.verbose is not None
    assert ready.impl in found.verbose
    assert found.benchdnn == ""  # which has words for groups that are not told here
    assert creation(problem, attr, "another:kernel").line == ""


@pytest.mark.parametrize(
    "given",
    [(3,), (OPERATORS["conv"][0], "dims"), (pq.Conv(codes(16, 8, 3, 3), **Q),)],
)
def test_what_cannot_be_inspected_is_refused(given: Any) -> None:
    with pytest.raises(pq.ArgumentError):
        pq.inspect(*given)


def test_a_settled_shape_takes_no_other() -> None:
    operator, dims = OPERATORS["matmul"]
    with pytest.raises(pq.ArgumentError, match="src_dims"):
        pq.inspect(operator.prepare(dims), dims)
