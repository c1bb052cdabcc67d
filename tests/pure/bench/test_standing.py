"""Other runtimes in a run and in its report, and what the command refuses of them."""

from __future__ import annotations

import importlib.util

import pytest

from pyonednn_q.bench import report
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.measure import Request
from pyonednn_q.bench.peers import PEERS, PeerError, require
from pyonednn_q.bench.row import Rival, Row
from pyonednn_q.commands import bench as command
from pyonednn_q.commands import cli
from pyonednn_q.errors import ArgumentError
from support.bench_runs import METADATA, row, run, samples


def rival(name: str, median_us: float | None, way: str = "call", refused: str = "") -> Rival:
    return Rival(name, way, 4, () if median_us is None else samples(median_us), refused)


def raced(line: str, dtype: str, ours: float, theirs: float | None, refused: str = "") -> Row:
    rivals = (rival("pyonednn_q", ours), rival("pyonednn_q", ours - 1, "loop"))
    return row(line, dtype, ours - 1, rivals=(*rivals, rival("torch", theirs, refused=refused)))


RACED = run(
    raced("a", "f32", 10.0, 20.0),
    raced("a", "u8s8u8", 5.0, 40.0),
    raced("b", "f32", 10.0, 5.0),
    raced("b", "u8s8u8", 5.0, None, "has no such operator"),
    metadata=METADATA | {"torch": "2.13.0"},
)


def test_columns_of_time_and_ratio() -> None:
    lines = report.text(RACED).splitlines()
    assert "call us  torch us  over torch  implementation" in lines[2]
    assert lines[3].split()[-4:] == ["10.0", "20.0", "2.00x", "brgemm:avx2"]
    assert lines[4].split()[-4:] == ["5.0", "40.0", "8.00x", "brgemm:avx2"]
    assert lines[5].split()[-4:] == ["10.0", "5.0", "0.50x", "brgemm:avx2"]
    assert lines[6].split()[-3:] == ["5.0", "-", "brgemm:avx2"]


def test_totals_and_reasons() -> None:
    for text in (report.text(RACED), report.markdown(RACED)):
        assert "f32 over torch: 1.00x (geometric mean of 2; faster in 1, slower in 1" in text
        assert "u8s8u8 over torch: 8.00x (geometric mean of 1; faster in 1, slower in 0" in text
        assert "torch has no such operator (1 row)" in text
        assert "(torch 2.13.0)" in text


def test_nobody_asked_nobody_mentioned() -> None:
    text = report.text(run(row("a", "f32", 10.0), row("a", "u8s8u8", 5.0)))
    assert "call us" not in text
    assert "torch" not in text


def test_json_keeps_rivals() -> None:
    assert Run.from_json(RACED.to_json()) == RACED
    lead = RACED.rows[1].lead("torch")
    assert lead is not None
    assert lead.value == pytest.approx(8.0)
    loop = RACED.rows[0].rival("pyonednn_q", "loop")
    assert loop is not None
    assert loop.median_us == pytest.approx(9.0)
    assert RACED.rows[0].rival("openvino") is None


def test_json_of_before_there_were_peers_is_read() -> None:
    made = run(row("a", "f32", 10.0))
    old = made.to_json().replace('\n   "rivals": [],', "")
    assert "rivals" not in old
    assert Run.from_json(old) == made


def asked(*words: str) -> Request:
    words = ("ip 1x8 8x8", "--threads", "2", *words)
    return command.request(cli.parser("bench").parse_args(["bench", *words]))


def test_peers_by_name() -> None:
    assert asked().peers == ()
    assert asked("--peers", "torch,onnxruntime").peers == ("torch", "onnxruntime")
    with pytest.raises(SystemExit):
        asked("--peers", "tensorflow")


@pytest.mark.parametrize("word", ["--cold", "--isa=AVX2"])
def test_what_peers_do_not_go_with(word: str) -> None:
    with pytest.raises(ArgumentError, match="peers: got --"):
        asked("--peers", "torch", word)


@pytest.mark.parametrize("peer", PEERS)
def test_a_missing_peer_says_how_to_get_it(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    wanted = rf"^{peer} .*not installed: pip install {' '.join(PEERS[peer])}$"
    with pytest.raises(PeerError, match=wanted):
        require((peer,))


def test_the_command_says_it_before_it_measures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(command, "measured", lambda *_: pytest.fail("it measured"))
    assert cli.main(["bench", "ip 1x8 8x8", "--threads", "2", "--peers", "torch"]) == 2
    assert "torch is not installed" in capsys.readouterr().err


def test_the_extra_holds_all_that_peers_need() -> None:
    from pyonednn_q.bench.peers import peer_layer

    assert {package for packages in PEERS.values() for package in packages} == {
        "onnx", "onnxruntime", "openvino", "torch"
    }  # fmt: skip
    assert peer_layer.PeerError("torch", "is slow").why == "is slow"
