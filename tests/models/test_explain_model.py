"""``explain model.onnx``: what is told of each node, and its page, also in a browser."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import helper, numpy_helper

from pyonednn_q.commands import cli
from pyonednn_q.compose import Plan
from pyonednn_q.native import runtime
from pyonednn_q.report.graph_drawing import Box, drawing
from support.browser import FITS, asked, needs_browser

Made = Callable[[str, str], Path]


def explained(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert cli.main(["explain", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
@pytest.mark.parametrize("network", ["resnet", "unet", "transformer"])
def test_every_node_of_the_model_is_told_once(
    network: str, form: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    if (network, form) == ("unet", "dynamic"):
        pytest.skip("onnxruntime's dynamic quantizer leaves transposed convolutions alone")
    path = made(network, form)
    told = explained(capsys, path)
    names = [each.name for each in onnx.load(path).graph.node if each.op_type != "Constant"]
    found = [name for node in told["nodes"] for name in node["originals"]]
    # A DequantizeLinear of a weight, or of codes that several read, belongs to each of them.
    assert set(found) <= set(names)
    layers = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
    for each in onnx.load(path).graph.node:
        if each.op_type in layers or each.op_type.startswith("QLinear"):
            assert found.count(each.name) == 1
    for node in told["nodes"]:
        precision = node["how"].split()[0]
        assert bool(node["why"]) == (precision in {"reference", "floats", "FP32"})
        is_layer = precision in {"INT8", "FP32"}
        assert bool(node["implementation"]) == is_layer
        if is_layer:
            assert node["kind"] in {"jit", "gemm"}
            plan = Plan.from_json(json.dumps(node["plan"]))
            assert len(node["post_ops"]) == len(plan.post_ops)
            assert node["exactness"] == str(plan.exactness)


def saturating(most: int) -> onnx.ModelProto:
    """Return one convolution of u8 codes; each pair of its products is 2 · 255 · `most`."""
    codes = {"s": np.float32(0.1), "z": np.uint8(0), "ws": np.float32(0.01), "wz": np.int8(0)}
    codes["w"] = np.full((3, 4, 1, 1), most, np.int8)
    make = helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"], "quantize"),
        make("DequantizeLinear", ["q", "s", "z"], ["r"], "real"),
        make("DequantizeLinear", ["w", "ws", "wz"], ["wr"], "weights"),
        make("Conv", ["r", "wr"], ["c"], "conv"),
        make("QuantizeLinear", ["c", "s", "z"], ["d"], "store"),
        make("DequantizeLinear", ["d", "s", "z"], ["y"], "</script><b>end & out"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, ["batch", 4, 5, 5])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in codes.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize(("most", "wrong"), [(127, 3), (64, 0)])
def test_saturation_is_told_for_each_instruction_set(
    most: int, wrong: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """255 · (127 + 127) is beyond 16 bits, 255 · (64 + 64) is not; with VNNI there are none."""
    path = tmp_path / "one.onnx"
    onnx.save(saturating(most), path)
    told = explained(capsys, path, "--dims", "batch=2")
    layers = [node for node in told["nodes"] if node["implementation"]]
    if wrong and not runtime.isa().has_vnni():
        (conv,) = layers  # in floats, and it says why
        assert conv["how"] == "FP32 convolution"
        assert conv["why"].startswith("its weights may saturate without VNNI")
        return
    (conv,) = layers
    flagged = {each["isa"]: each["flagged"] for each in conv["saturation"]}
    for isa in ("SSE41", "AVX2", "AVX512_CORE"):
        assert flagged[isa] == wrong
    for isa in ("AVX2_VNNI", "AVX512_CORE_VNNI", "AVX512_CORE_AMX"):
        assert flagged[isa] == 0
    assert conv["reads"][0]["type"] == "uint8[2, 4, 5, 5]"
    assert cli.main(["explain", str(path), "--dims", "x=2x4x5x5"]) == 0
    table = capsys.readouterr().out
    assert ("3/3" in table) == bool(wrong)
    assert ("never" in table) == (not wrong)


def test_trace_tells_all_of_each_node(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(made("unet", "QDQ")), "--trace"]) == 0
    out = capsys.readouterr().out
    for word in ("stands for", "reads", "implementation", "saturation", "absorb_affine_in_acc"):
        assert word in out


@pytest.mark.parametrize("seed", range(20))
def test_no_box_lies_on_another(seed: int) -> None:
    """Of random graphs, with long ways, too: every box is below those that it reads."""
    rng = np.random.default_rng(seed)
    boxes: list[Box] = []
    for at in range(int(rng.integers(2, 90))):
        count = min(at, int(rng.integers(0, 4)))
        reads = {int(each) for each in rng.integers(max(0, at - 8), at, count)} if at else set()
        if at and rng.integers(5) == 0:
            reads.add(int(rng.integers(at)))
        boxes.append(Box(f"kind {at}", "<&>", "int8", '"tip"', tuple(reads)))
    svg = ET.fromstring(drawing(boxes))
    found = svg.findall("g")
    assert [each.get("data-at") for each in found] == [str(at) for at in range(len(boxes))]
    sides = ("x", "y", "width", "height")
    rects = [rect for each in found for rect in each.findall("rect")]
    places = [tuple(float(rect.get(side) or 0) for side in sides) for rect in rects]
    _, _, width, height = map(float, (svg.get("viewBox") or "").split())
    for at, (x, y, w, h) in enumerate(places):
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
        assert all(places[src][1] + h < y for src in boxes[at].reads)
        for left, top, _, _ in places[:at]:
            assert abs(left - x) >= w or abs(top - y) >= h
    assert len(svg.findall("path")) == sum(len(box.reads) for box in boxes)


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    path, page = tmp_path / "one.onnx", tmp_path / "page.html"
    onnx.save(saturating(64), path)
    assert cli.main(["explain", str(path), "--dims", "batch=1", "--html", str(page)]) == 0
    text = page.read_text()
    assert not re.search(r"https?:|@import|url\((?!#)|fetch\(|XMLHttp|\s(?:src|href)=", text)
    assert text.count("</script>") == 1
    assert "<b>end" not in text
    assert "&lt;/script&gt;&lt;b&gt;end &amp; out" in text
    assert text.count("<style>") == 2  # the page's, and that of all plans
    ET.fromstring(re.findall(r"<svg.*?</svg>", text, re.DOTALL)[0])


ASK = """
const seen = () => [...document.querySelectorAll("section")].filter(each => each.offsetHeight > 0);
const name = section => section.querySelector("h2").innerText;
const all = [...document.querySelectorAll(".box")];
const said = {first: seen().map(name), clicked: [], overlaps: 0};
for (const box of all) {
  box.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  const [one, ...more] = seen();
  const plan = one.querySelector(".onednn-plan");
  said.clicked.push([name(one), more.length, box.getAttribute("aria-pressed"),
                     plan !== null && plan.offsetHeight > 0]);
}
said.pressed = document.querySelectorAll("[aria-pressed=true]").length;
all[0].focus();
all[0].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
said.entered = seen().map(name);
all[0].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
said.down = [seen().map(name), all.indexOf(document.activeElement)];
const rects = all.map(box => box.querySelector("rect").getBoundingClientRect());
rects.forEach((a, i) => rects.slice(0, i).forEach(b => {
  said.overlaps += a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}));
said.letters = all.filter(box => {
  const outer = box.querySelector("rect").getBoundingClientRect();
  return [...box.querySelectorAll("text")].some(
    text => text.getBoundingClientRect().width > outer.width);
}).length;
said.colours = new Set(all.map(box => getComputedStyle(box.querySelector("rect")).stroke)).size;
return said;
"""
MOVE = """
const graph = document.querySelector(".graph"), search = document.querySelector("#search");
const press = value => document.querySelector(`button[value=${value}]`).click();
const wide = () => document.querySelector(".box rect").getBoundingClientRect().width;
const shown = () => document.querySelector("section:not([hidden]) h2").innerText;
const type = text => { search.value = text; search.dispatchEvent(new Event("input")); };
const key = key => search.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const inSight = () => {
  const box = document.querySelector("[aria-pressed=true]").getBoundingClientRect();
  const outer = graph.getBoundingClientRect();
  return box.left >= outer.left && box.right <= outer.right && box.top >= outer.top
    && box.bottom <= outer.bottom;
};
const said = {};
press("whole"); said.whole = wide();
press("in"); said.larger = wide();
press("out"); press("out"); said.smaller = wide();
press("fit"); said.fit = [graph.scrollWidth - graph.clientWidth <= 1,
                          graph.scrollHeight - graph.clientHeight <= 1];
for (let at = 0; at < 30; at++) press("in");
said.most = wide();
const before = [graph.scrollLeft, graph.scrollTop];
const at = (x, y) => ({pointerType: "mouse", button: 0, clientX: x, clientY: y, bubbles: true});
graph.dispatchEvent(new PointerEvent("pointerdown", at(300, 300)));
graph.dispatchEvent(new PointerEvent("pointermove", at(280, 250)));
graph.dispatchEvent(new PointerEvent("pointerup", at(280, 250)));
said.panned = [graph.scrollLeft - before[0], graph.scrollTop - before[1]];
press("whole");
type("CONV brg"); said.found = document.querySelector("output").value;
said.hits = [];
for (let at = 0; at < 3; at++) { said.hits.push([shown(), inSight()]); key("Enter"); }
said.others = document.querySelectorAll(".box.other").length;
type("nothing has this"); said.none = document.querySelector("output").value;
key("Escape"); said.cleared = document.querySelectorAll(".box.other").length;
said.made = [...document.querySelectorAll(".made")].map(each => each.textContent);
return said;
"""


@needs_browser
@pytest.mark.parametrize(("network", "form"), [("unet", "QDQ"), ("transformer", "QOperator")])
def test_a_click_shows_a_plan_in_a_browser(
    network: str, form: str, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "told.html"
    told = explained(capsys, made(network, form), "--html", page)
    said = asked(page.read_text(), ASK, tmp_path)
    nodes = told["nodes"]
    names = ["x", *(each["name"] for each in nodes), "y"]
    has_plan = [False, *(each["plan"] is not None for each in nodes), False]
    assert said["clicked"] == [
        [name, 0, "true", plan] for name, plan in zip(names, has_plan, strict=True)
    ]
    first = next(each["name"] for each in nodes if each["how"].startswith("INT8"))
    assert said["first"] == [first]
    assert said["pressed"] == 1
    assert said["entered"] == ["x"]
    assert said["down"] == [[nodes[0]["name"]], 1]
    assert said["overlaps"] == said["letters"] == 0
    assert said["colours"] >= 4


@needs_browser
def test_a_graph_is_searched_zoomed_and_moved(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "told.html"
    nodes = explained(capsys, made("resnet", "QDQ"), "--html", page)["nodes"]
    kernels = {node["name"]: node["implementation"] for node in nodes}
    word = next(kernels[name] for name in kernels if name.startswith("conv")).partition(":")[0]
    said = asked(page.read_text(), MOVE.replace("brg", word), tmp_path)
    assert said["larger"] == pytest.approx(1.25 * said["whole"], rel=1e-3)
    assert said["smaller"] == pytest.approx(said["whole"] / 1.25, rel=1e-3)
    assert said["most"] == pytest.approx(4 * said["whole"], rel=1e-3)
    assert said["fit"] == [True, True]
    assert said["panned"] == [20, 50]
    # A product runs as a convolution where that is the only kernel, and its text says so.
    names = [name for name in kernels if word in kernels[name]]
    names = [name for name in names if name.startswith("conv") or not word.startswith("brg")]
    assert said["found"] == f"{len(names)} of {len(nodes) + 2}"
    assert said["hits"] == [[name, True] for name in names[:3]]
    assert said["others"] == len(nodes) + 2 - len(names)
    assert (said["none"], said["cleared"]) == (f"0 of {len(nodes) + 2}", 0)
    types = [node["writes"][0]["type"] for node in nodes]
    inner = [each.rstrip("]").replace("[", " ").replace(", ", "\u00d7") for each in types]
    assert said["made"] == ["float32 2\u00d73\u00d716\u00d716", *inner]


@needs_browser
@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("width", [400, 1900])
def test_the_page_fits_and_can_be_read(
    width: int,
    made: Made,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_dark: bool,
) -> None:
    page = tmp_path / "told.html"
    explained(capsys, made("transformer", "QDQ"), "--html", page)
    said = asked(page.read_text(), FITS, tmp_path, width=width, is_dark=is_dark)
    assert said["scrolls"] == 0
    assert said["count"] > 100
    assert min(said["contrasts"])[0] >= 4.5, min(said["contrasts"])


def test_nodes_are_measured_on_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SQNR as its definition has it, of a quantizer and of a convolution, in NumPy."""
    path, arrays = tmp_path / "one.onnx", tmp_path / "x.npz"
    onnx.save(saturating(64), path)
    x = np.random.default_rng(3).uniform(0, 12, (2, 4, 5, 5)).astype(np.float32)
    np.savez(arrays, x=x)
    codes = np.clip(np.rint(x.astype(np.float64) / np.float32(0.1)), 0, 255)
    weight = 64 * np.float64(np.float32(0.01))
    sums = codes.sum(1, keepdims=True).repeat(3, 1) * np.float64(np.float32(0.1)) * weight
    stored = np.clip(np.rint(sums / np.float32(0.1)), 0, 255) * np.float64(np.float32(0.1))
    floats = x.astype(np.float64).sum(1, keepdims=True).repeat(3, 1) * weight

    def sqnr(real: Any, became: Any) -> float:
        return float(10 * np.log10(np.square(real).sum() / np.square(real - became).sum()))

    nodes = explained(capsys, path, "--input", arrays)["nodes"]
    wanted = [sqnr(x, codes * np.float64(np.float32(0.1))), sqnr(floats, stored)]
    # Of float32, whose rounding moves what is printed with one decimal by less than this.
    assert [node["sqnr_db"] for node in nodes[:2]] == pytest.approx(wanted, abs=0.01)
    assert all(node["us"] >= 0 for node in nodes)
    assert any(node["us"] > 0 for node in nodes)
    page = tmp_path / "told.html"
    assert cli.main(["explain", str(path), "--input", str(arrays), "--html", str(page)]) == 0
    text = page.read_text()
    assert text.count('class="share"') == sum(node["us"] > 0 for node in nodes)
    assert f" us, {wanted[1]:.1f} dB</text>" in text
    assert "SQNR dB" in capsys.readouterr().out
    assert cli.main(["explain", str(path), "--dims", "batch=2"]) == 0
    assert "SQNR" not in capsys.readouterr().out


NOTHING = {
    "--policy": "real", "--dst": "f32", "--isa": "AVX2", "--version": "3.7", "--strict": None,
    "--list": None, "--show": None, "--benchdnn": None, "--here": None,
}  # fmt: skip


@pytest.mark.parametrize("option", NOTHING)
def test_options_of_layers_are_refused(
    option: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [option] if NOTHING[option] is None else [option, str(NOTHING[option])]
    assert cli.main(["explain", str(made("resnet", "QDQ")), *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"pyonednn-q explain: {option}: got a model")
    assert len(said.splitlines()) == 1
