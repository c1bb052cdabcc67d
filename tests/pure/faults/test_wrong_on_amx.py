"""What was found wrong on a Xeon with AMX and no FP16, beside what was right: rows that strike.

`data/wrong_on_amx.jsonl` has 435 findings of a hunt with oneDNN 3.7.2, each beside the row that
tells of its cause, and 150 of the convolutions of volumes that a scan found right.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyonednn_q.faults.guards import matching
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem, Problem
from pyonednn_q.primitive.tensor import TensorSpec

FILE = Path(__file__).parents[2] / "data" / "wrong_on_amx.jsonl"


def dims(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def tensor(dtype: str, shape: str, strides: str | None) -> TensorSpec:
    return TensorSpec(dims(shape), dtype, None if strides is None else dims(strides))


def problem_of(told: dict[str, Any]) -> Problem:
    specs: dict[str, Any] = {name: tensor(*told[name]) for name in ("src", "wei", "dst")}
    src, wei = specs["src"].dims, specs["wei"].dims
    types: dict[str, Any] = {name: spec.dtype for name, spec in specs.items()}
    if told["kind"] == "matmul":
        return replace(MatMulProblem.of(src, wei, **types), **specs)
    window: dict[str, Any] = {name: tuple(told["window"][name]) for name in ("stride", "dilation")}
    padding = tuple(map(tuple, told["window"]["padding"]))
    return replace(ConvProblem.of(src, wei, **types, **window, padding=padding), **specs)


def test_rows_strike_what_was_wrong_and_not_what_was_right() -> None:
    others, struck = [], Counter[str]()
    for line in FILE.read_text().splitlines():
        told = json.loads(line)
        attr = Attr(post_ops=tuple(BinaryPostOp("add", tensor(*o)) for o in told["operands"]))
        facts = Facts((3, 7, 2), InstructionSet.of(told["isa"]), "OMP")
        rows = [guard.id for guard in matching(problem_of(told), attr, facts, told["impl"])]
        if told["row"] is None and rows == []:
            struck["right"] += 1
        elif told["row"] in rows:
            struck[told["row"]] += 1
        else:
            others.append((rows, line))
    assert others == []
    assert struck == {
        "few-channels-one-plane": 397,
        "matmul-batch-of-ragged-rows": 27,
        "conv-rows-skipped": 5,
        "conv-rows-of-taps": 2,
        "conv-columns-as-channels": 2,
        "conv-pointwise-single-channel": 1,
        "conv-padding-left-over": 1,
        "right": 150,
    }
