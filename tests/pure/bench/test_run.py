"""A run: what it knows of its rows, and the same after a way through JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from dataclasses import replace
from importlib import resources

import jsonschema
import pytest

from pyonednn_q.bench.bench_run import Run, joined, json_schema
from pyonednn_q.bench.comparison import compare, differences, lost, text
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.report import csv_text, markdown
from pyonednn_q.bench.row import Row
from pyonednn_q.errors import ArgumentError
from support.bench_runs import LIMITS, row, run, samples
from support.changed_json import changed

F32, INT8 = row("a", "f32", 40.0), row("a", "u8s8u8", 10.0)


def test_json_reads_back() -> None:
    made = run(F32, INT8, row("b", "u8s8u8", None), warnings=("noise",))
    assert Run.from_json(made.to_json()) == made


def test_no_noise_at_all_is_no_number_in_json() -> None:
    again = Run.from_json(run(row("a", "u8s8u8", 10.0, sqnr_db=math.inf)).to_json())
    assert again.rows[0].sqnr_db is None


@pytest.mark.parametrize(
    "other",
    ["", "[]", "{}", '{"schema": 3}', '{"schema": 2, "rows": []}', '{"schema": 3, "rows": [{}]}'],
)
def test_other_text_is_refused(other: str) -> None:
    with pytest.raises(ArgumentError):
        Run.from_json(other)


def test_a_row_that_lacks_a_field_is_refused() -> None:
    content = json.loads(run(F32).to_json())
    del content["rows"][0]["samples_us"]
    with pytest.raises(ArgumentError, match="samples_us"):
        Run.from_json(json.dumps(content))


@pytest.mark.filterwarnings("error")
def test_a_changed_text_is_a_run_or_refused() -> None:
    """What is taken can be written again, and shown and compared, or refused by name then."""
    plain = json.loads(run(F32, INT8, row("b", "u8s8u8", None), warnings=("noise",)).to_json())
    runs = refused = 0
    for seed in range(3000):
        try:
            made = Run.from_json(changed(plain, random.Random(seed)))
            assert Run.from_json(made.to_json()) == made
            assert markdown(made)
            before = run(F32, INT8)
            found = compare(before, made), lost(before, made), differences(before, made)
            assert isinstance(text(*found, threshold=0.02), str)
            runs += 1
        except ArgumentError:
            refused += 1
    assert runs > 150
    assert refused > 1000


def test_rates() -> None:
    assert F32.gops == pytest.approx(50.0, abs=1e-9)
    assert F32.intensity == pytest.approx(20.0, abs=0)
    assert F32.summary.median == pytest.approx(40.0, abs=1e-12)


def test_speed_up_is_over_the_row_of_the_same_tail_layout_and_setting() -> None:
    rows = [
        row("a", "f32", 40.0), row("a", "f32", 80.0, tail="relu"), row("b", "f32", 20.0),
        row("a", "f32", 160.0, threads=1), INT8,
        row("a", "u8s8u8", 10.0, tail="relu"), row("a", "u8s8u8", 10.0, threads=1),
        row("a", "u8s8u8", 10.0, cache="cold"),
    ]  # fmt: skip
    found = [run(*rows).over(each, "f32") for each in rows]
    assert found[:4] == [None] * 4
    values = [None if ratio is None else round(ratio.value, 6) for ratio in found[4:]]
    assert values == [4.0, 8.0, 16.0, None]


def test_nothing_is_faster_than_what_was_refused() -> None:
    assert run(row("a", "f32", None), INT8).over(INT8, "f32") is None


def test_baselines_are_the_floats_present() -> None:
    assert run(INT8, row("a", "bf16", 20.0)).baselines == ("bf16",)
    assert run(INT8, row("a", "bf16", 20.0), F32).baselines == ("f32", "bf16")


def test_floors() -> None:
    floors = LIMITS.floors_us(2_000_000, 1 << 20, Precision.parse("u8s8u8"))
    assert floors == pytest.approx({"compute": 5.0, "memory": (1 << 20) / 40e3, "call": 5.0})
    assert "compute" not in LIMITS.floors_us(1, 1, Precision.parse("bf16"))


@pytest.mark.parametrize(("nbytes", "rate"), [(1, 40.0), (1 << 21, 40.0), (1 << 22, 20.0)])
def test_bandwidth_is_that_of_the_next_larger_size(nbytes: int, rate: float) -> None:
    assert LIMITS.bandwidth(nbytes) == rate
    assert LIMITS.bandwidth(1 << 40) == 20.0


def test_runs_join() -> None:
    one, other = run(F32, warnings=("x",)), run(row("a", "f32", 9.0, isa="AVX2"), warnings=("x",))
    both = joined({"isa": "AMX"}, [one, other])
    assert both.rows == one.rows + other.rows
    assert both.metadata == {"isa": "AMX"}
    assert both.warnings == ("AVX2: x", "AVX2: x")
    assert [setting for setting, _ in both.limits] == [("", 2), ("AVX2", 2)]


def test_made_up_samples_have_their_median() -> None:
    assert samples(10.0)[10] == pytest.approx(10.0, abs=1e-12)


ROWS = (F32, INT8, row("b", "f32", 20.0, disturbed=9), row("b", "u8s8u8", None, sqnr_db=None))
SCHEMA = json.loads((resources.files("pyonednn_q.bench") / "run.schema.json").read_text())


def test_the_schema_that_comes_along_is_that_of_the_types() -> None:
    """Else: python tools/pages/bench_schema.py > src/pyonednn_q/bench/run.schema.json."""
    assert json.loads(json.dumps(json_schema())) == SCHEMA


@pytest.mark.parametrize("rows", [ROWS, ROWS[:2], ()])
def test_what_is_written_is_of_the_schema(rows: tuple[Row, ...]) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    validator.validate(json.loads(run(*rows).to_json()))


@pytest.mark.parametrize("key", ["schema", "rows", "limits", "totals"])
def test_what_is_not_of_the_schema_is_seen(key: str) -> None:
    content = json.loads(run(*ROWS).to_json())
    content[key] = 2
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(content)
    with pytest.raises(ArgumentError, match=key):
        Run.from_json(json.dumps(content))


def test_json_says_what_follows_from_the_samples() -> None:
    content = json.loads(run(*ROWS).to_json())
    first, second, third, fourth = (each["statistics"] for each in content["rows"])
    assert first["median_us"] == pytest.approx(40.0)
    assert first["lo_us"] < 40.0 < first["hi_us"]
    assert (first["of_peak"], first["of_paper"]) == pytest.approx((50 / 100, 50 / 128))
    over = second["over"]["f32"]
    assert over["value"] == pytest.approx(4.0)
    assert 3.8 < over["lo"] <= 4.0 <= over["hi"] < 4.2
    assert over["is_significant"]
    assert (second["is_disturbed"], third["is_disturbed"]) == (False, True)
    assert fourth is None
    (total,) = content["totals"]
    assert total["left_out"] == ["b"]
    assert total["ms"] == {"f32": pytest.approx(0.04)}


def test_few_samples_have_an_interval_without_an_end() -> None:
    few = row("a", "f32", 40.0, samples_us=(1.0, 2.0, 3.0))
    (written,) = json.loads(run(few).to_json())["rows"]
    assert (written["statistics"]["lo_us"], written["statistics"]["hi_us"]) == (0.0, None)


def test_csv_has_a_line_for_each_row() -> None:
    first, second, third, fourth = csv.DictReader(io.StringIO(csv_text(run(*ROWS))))
    assert first["median_us"] == "40.0"
    assert first["over_f32"] == ""
    assert float(second["over_f32"]) == pytest.approx(4.0)
    assert third["is_disturbed"] == "True"
    assert (fourth["median_us"], fourth["refused"]) == ("", "no kernel")
    assert {first["ops"], first["padded_ops"]} == {"2000000", "2400000"}


def test_a_disturbed_row_is_no_regression() -> None:
    slow = run(replace(F32, samples_us=samples(400.0), disturbed=20), INT8)
    assert [each.verdict for each in compare(run(F32, INT8), slow)] == [
        "disturbed", "not significant"
    ]  # fmt: skip
    assert "1 disturbed" in text(compare(run(F32), slow), (), (), 0.05)
