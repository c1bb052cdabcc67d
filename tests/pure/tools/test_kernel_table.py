"""What may enter the table of proven models: tools/matrix/kernel_models.py, on made-up findings."""

from __future__ import annotations

import itertools
from typing import Any

import kernel_models
from kernel_blocks import blocks, table
from pyonednn_q.predict.region import Region, read
from pyonednn_q.primitive.problem import MatMulProblem

SQUARE, BATCHED = (MatMulProblem.of((*batch, 16, 16), (*batch, 16, 16)) for batch in ((), (2,)))

TAIL = ", multiplied, zeros kept"
ORDERS = [
    f"{scales}, {fused}{TAIL}"
    for fused in ("fused", "not fused")
    for scales in ("together", "apart")
]


def row(features: list[str], *differing: int) -> dict[str, Any]:
    return {
        "features": features,
        "outputs": 10,
        "differing": dict(zip(ORDERS, differing, strict=True)),
    }


def found(**variants: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [["matmul", "u8", "x", variants]]
    part = {"version": "3.13", "runtime": "OMP", "isa": "AVX2", "rows": rows}
    return list(kernel_models.found(part))


PLAIN = row(["dst f32", "wei scale"], 0, 0, 0, 0)
SEPARATE = row(["dst f32", "wei scale", "src scale"], 5, 0, 5, 0)
SUM = row(["dst f32", "wei scale", "sum"], 0, 0, 3, 3)


def test_the_order_that_never_differs_is_found() -> None:
    (one,) = found(plain=PLAIN, separate=SEPARATE, sum=SUM)
    assert (one["together"], one["fused"], one["outputs"]) == (False, True, 30)
    assert one["features"] == ["dst f32", "src scale", "sum", "wei scale"]


def test_what_differs_in_every_order_is_not_proven() -> None:
    (one,) = found(plain=PLAIN, separate=SEPARATE, sum=row(SUM["features"], 1, 1, 1, 1))
    assert one["features"] == ["dst f32", "src scale", "wei scale"]
    assert one["open"] == ["sum"]
    assert one["outputs"] == 20


def test_a_difference_without_a_feature_of_its_own_leaves_nothing() -> None:
    assert found(plain=row(PLAIN["features"], 1, 1, 1, 1), sum=SUM) == []
    assert found(plain=row(PLAIN["features"], 1, 1, 1, 1)) == []


def test_an_order_that_was_not_decided_is_not_proven() -> None:
    (one,) = found(plain=PLAIN, sum=row([*SUM["features"], "src scale"], 0, 0, 0, 0))
    assert one["features"] == ["dst f32", "wei scale"]


def test_nor_is_it_beside_a_difference() -> None:
    odd = row(["dst u8", "wei scale", "linear"], 1, 1, 1, 1)
    fine = row(["dst f32", "wei scale", "sum"], 0, 0, 0, 0)
    (one,) = found(plain=PLAIN, odd=odd, fine=fine)
    assert one["features"] == ["dst f32", "wei scale"]


def test_dividing_by_the_destinations_scale_is_found() -> None:
    part = {"features": ["dst s8", "dst scale"], "outputs": 10}
    words = ["together, fused, multiplied, zeros kept", "together, fused, divided, zeros kept"]
    (one,) = found(only={**part, "differing": dict(zip(words, (1, 0), strict=True))})
    assert (one["divided"], one["zeros"]) == (True, "kept")
    (one,) = found(only={**part, "differing": dict(zip(words, (0, 0), strict=True))})
    assert (one["divided"], one["features"]) == (False, ["dst s8"])


def placed(rows: list[dict[str, Any]], *problems: Any) -> list[dict[str, Any]]:
    return [row | {"region": Region.of(problems)} for row in rows]


def test_the_table_says_each_fact_once() -> None:
    both = [*found(plain=PLAIN, separate=SEPARATE, sum=SUM), *found(sum=SUM)]
    first, second = placed(both, SQUARE, BATCHED)
    levels = [first | {"isa": isa, "src": src} for isa in ("AVX2", "SSE41") for src in ("u8", "s8")]
    text = "\n".join(table([*levels, first | {"impl": "y"}, second | {"impl": "z"}]))
    assert text.count("[[kernel]]") == 2
    assert "s8 u8 | x | 3.13 | AVX2 SSE41" in text
    proofs = read(text)
    assert len(proofs) == 6
    proof = proofs["matmul", "s8", "x", "SSE41", "3.13"]
    assert proof == proofs["matmul", "u8", "y", "AVX2", "3.13"]
    assert proof.features == {"dst f32", "src scale", "sum", "wei scale"}
    assert (proof.order.together, proof.order.fused) == (False, True)
    assert proof.region == Region.of([SQUARE, BATCHED])


def test_blocks_are_all_of_each_with_all_of_the_others() -> None:
    keys = [("p", src, impl, isa, "1") for src in "ab" for impl in "xy" for isa in "mn"]
    assert blocks(keys) == [["a b", "x y", "1", "m n"]]
    apart = blocks(keys[1:])
    told = [
        key for block in apart for key in itertools.product(*(words.split() for words in block))
    ]
    assert sorted(("p", src, impl, isa, version) for src, impl, version, isa in told) == keys[1:]


def test_letters_stand_for_what_is_missing() -> None:
    rows = [*found(plain=PLAIN, separate=SEPARATE, sum=SUM), *found(plain=PLAIN, sum=SUM)]
    page = "\n".join(kernel_models.page(rows)).split("\n")
    assert "50 outputs compared in all." in page
    assert "- a: src scale" in page
    assert page[-2].endswith("| apart | 30 |  |")
    assert page[-1].endswith("| together | 20 | a |")


def test_parts_of_one_process_are_one() -> None:
    head = {"version": "3.13", "runtime": "OMP"}
    parts = [
        {**head, "isa": isa, "rows": [["matmul", "u8", "x", {name: variant}]]}
        for isa, name, variant in (("AVX2", "a", PLAIN), ("SSE41", "a", PLAIN), ("AVX2", "b", SUM))
    ]
    first, second = kernel_models.joined(parts)
    assert first == {**head, "isa": "AVX2", "rows": [("matmul", "u8", "x", {"a": PLAIN, "b": SUM})]}
    assert (second["isa"], len(second["rows"])) == ("SSE41", 1)


def test_rows_of_other_processes_stay() -> None:
    head = {"version": "3.13", "runtime": "OMP"}
    parts = [
        {**head, "isa": isa, "rows": [["matmul", "u8", impl, {"a": PLAIN}]]}
        for isa, impl in (("SSE41", "old"), ("AVX2", "old"), ("AVX2", "new"))
    ]
    before = kernel_models.merged((), parts[:2])
    text, page = "\n".join(table(before)), "\n".join(kernel_models.page(before))
    assert kernel_models.rows_of(text, page) == before
    after = kernel_models.merged(kernel_models.rows_of(text, page), parts[2:])
    assert [(row["isa"], row["impl"]) for row in after] == [("AVX2", "new"), ("SSE41", "old")]
    assert [row["outputs"] for row in after] == [10, 10]


def test_a_part_may_be_of_regions_alone() -> None:
    part = {"version": "3.13", "runtime": "OMP", "isa": "AVX2"}
    before = kernel_models.merged((), [{**part, "rows": [["matmul", "u8", "x", {"a": PLAIN}]]}])
    five = "5-D, a batch of one"
    regions = [["matmul", src, "x", {five: ["K of 1", *more]}] for src, more in SEEN.items()]
    (row,) = kernel_models.merged(before, [{**part, "rows": [], "regions": regions}])
    # What both sources visited, beside what all proofs did before regions were recorded.
    assert row["region"].visited[five] == {"K of 1"}
    assert row["region"].visited.items() > before[0]["region"].visited.items()
    assert "one row" in before[0]["region"].visited["2-D"]
    (again,) = kernel_models.merged([row], [])
    assert again["region"] == row["region"]


SEEN = {"u8": ["one row"], "s8": []}
