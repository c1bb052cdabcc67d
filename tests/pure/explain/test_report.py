"""What is told about a layer: as text, as JSON, as a page; and the line for benchdnn."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pyonednn_q.compose.plan import Plan
from pyonednn_q.explain import presets, read
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.primitive.isa import Facts, InstructionSet
from support.browser import FITS, asked, needs_browser

VOID = {"meta", "br", "!doctype"}


class Outline(HTMLParser):
    """The elements of a page, and its text; complains about what is not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)
        assert not {"src", "href", "onclick"} & {name for name, _ in attrs}, "self-contained"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def report(name: str, **changes: Any) -> Report:
    return Report.of(read({**presets.get(name), **changes}))


def test_text_tells_layer_plan_comparison_and_trace() -> None:
    told = report("conv_bias_relu").text()
    assert told.startswith("ResNet: 3x3 convolution")
    for line in (
        "holds for every oneDNN from 3.7 on, on every instruction set",
        "no post-op; REAL; estimated cost 1.00 of the bare primitive",
        "step by step: 5 post-ops, estimated cost 1.99",
        "6 rewritten, 0 refused (--trace tells all)",
        "  + merge_clips [BITWISE]",
    ):
        assert line in told.splitlines()


def test_text_tells_refusals_with_their_reason() -> None:
    told = report("residual_elsewhere").text()
    assert "  - carry_affine_left [REAL]: residual is known only when the chain runs" in told


def test_the_whole_trace() -> None:
    made = report("conv_bias_relu")
    assert made.plan.explain() in made.text(trace=True)
    assert made.plan.explain() not in made.text()
    assert "nothing was rewritten" in report("empty").text(trace=True)


def test_text_says_where_it_holds() -> None:
    described = read(presets.get("relu")).on(Facts((3, 9, 1), InstructionSet("AVX2"), "OMP"))
    assert "holds for oneDNN 3.9.1 on AVX2" in Report.of(described).text()


def test_steps_left_over_are_told() -> None:
    sums = [{"step": "sum", "scale": 2}, "relu", {"step": "sum", "scale": 3}]
    told = report("relu", chain=sums, dst="f32").text()
    assert "left over" in told
    assert "sums_that_differ" in told
    assert "and steps left over" in told


@pytest.mark.parametrize("name", presets.names())
def test_json_holds_the_plan(name: str) -> None:
    made = report(name)
    told = json.loads(made.json())
    assert Plan.from_json(json.dumps(told["plan"])) == made.plan
    assert told["schema"] == 1
    assert told["title"] == presets.get(name)["title"]
    assert told["process"] is None
    assert (told["step_by_step"] is None) == made.description.exact_rounding


@pytest.mark.parametrize("name", presets.names())
def test_page_is_whole(name: str) -> None:
    made = report(name)
    outline = Outline(made.html())
    assert outline.found.count("table") == 1
    assert outline.found.count("tr") >= 2 + len(made.plan.post_ops)
    for record in made.plan.records:
        assert record.rule in outline.text
        assert record.reason in outline.text


def test_page_escapes_what_the_user_wrote() -> None:
    hostile = "<script>alert('x')</script> & \"quotes\""
    outline = Outline(report("relu", title=hostile).html())
    assert "script" not in outline.found
    assert outline.text.count(hostile) == 2  # title and heading


LINES = {
    "depthwise": "benchdnn --conv --dt=u8:s8:u8 --dir=FWD_B "
    "--attr-scales=wei:per_dim_01 --stag=axb --dtag=axb "
    "g64mb1ic64ih56iw56oc64oh28ow28kh3kw3sh2sw2ph0pw0",
    "deconv_fq": "benchdnn --deconv --dt=u8:s8:u8 --dir=FWD_B "
    "--attr-scales=wei:per_dim_0 --stag=axb --dtag=axb "
    "mb1ic64ih28iw28oc32oh56ow56kh4kw4sh2sw2ph1pw1",
    "classifier": "benchdnn --ip --dt=u8:s8:f32 --dir=FWD_B "
    "--attr-scales=wei:per_dim_0 mb8ic2048oc1000",
    "attention_scores": "benchdnn --matmul --dt=s8:s8:f32 "
    "--attr-scales=wei:common:0.00010849999671336263 "
    "--attr-post-ops=add:f32:7:abx --wtag=any 12x128x64:12x64x128",
    "transformer_projection": "benchdnn --matmul --dt=s8:s8:s8 --bia_dt=f32 "
    "--attr-scales=wei:per_dim_1 --wtag=any 128x768:768x768",
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_line_for_benchdnn(name: str) -> None:
    assert report(name).text(benchdnn=True).splitlines()[-1] == LINES[name]


def test_dilation_and_ranks_for_benchdnn() -> None:
    def line(**keys: Any) -> str:
        made = read({"op": "convolution", **keys})
        return made.plan().benchdnn(made.problem).rpartition(" ")[2]

    three = {"src": {"dims": [2, 3, 4, 5, 6]}, "wei": {"dims": [7, 3, 1, 2, 3]}}
    assert line(**three) == "mb2ic3id4ih5iw6oc7od4oh4ow4kd1kh2kw3sd1sh1sw1pd0ph0pw0"
    one = {"src": {"dims": [2, 3, 9]}, "wei": {"dims": [4, 3, 2]}}
    assert line(**one, dilation=3, padding=[[1, 0]]) == "mb2ic3iw9oc4ow7kw2sw1pw1dw2"


@needs_browser
@pytest.mark.parametrize("is_dark", [False, True])
def test_the_page_fits_and_can_be_read(tmp_path: Path, *, is_dark: bool) -> None:
    """On a telephone's 400 pixels, too, the chain before and after among it."""
    said = asked(report("quantized_residual").html(), FITS, tmp_path, width=400, is_dark=is_dark)
    assert said["scrolls"] == 0
    texts = [text for _, text in said["contrasts"]]
    assert {"FakeQuantize", "relu", "wei_scale", "bias", "dst_scale", "store"} <= set(texts)
    assert min(said["contrasts"])[0] >= 4.5, min(said["contrasts"])
