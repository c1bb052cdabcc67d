"""The peak on paper, against what vendors' manuals say of a cycle, and the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyonednn_q.bench import paper
from pyonednn_q.bench.paper import ops_a_cycle, paper_gops
from pyonednn_q.bench.probe import Limits
from pyonednn_q.primitive.isa import InstructionSet

# Operations a cycle of a core: Intel's optimization manual (Haswell: 32 in single precision;
# Skylake server: 64; AMX: 2048 in int8, 1024 in bf16), and WikiChip of Cascade Lake (VNNI: 256 in
# int8).
PUBLISHED = {
    ("AVX2", "f32"): 32,
    ("AVX512_CORE", "f32"): 64,
    ("AVX512_CORE_VNNI", "u8s8"): 256,
    ("AVX512_CORE_AMX", "u8s8"): 2048,
    ("AVX512_CORE_AMX", "bf16"): 1024,
}


@pytest.mark.parametrize(("level", "types"), PUBLISHED)
def test_published_peaks(level: str, types: str) -> None:
    assert ops_a_cycle(InstructionSet(level), types) == PUBLISHED[level, types]


def test_without_vnni_each_product_is_multiplied_twice() -> None:
    """vpmaddubsw, and vpmaddwd by ones."""
    assert ops_a_cycle(InstructionSet("AVX2"), "s8s8") * 2 == ops_a_cycle(
        InstructionSet("AVX2_VNNI"), "s8s8"
    )


@pytest.mark.parametrize("types", ["bf16", "f16"])
def test_what_has_no_instructions_is_f32(types: str) -> None:
    isa = InstructionSet("AVX512_CORE")
    assert ops_a_cycle(isa, types) == ops_a_cycle(isa, "f32")


def test_cores_and_clock_multiply() -> None:
    isa = InstructionSet("AVX2")
    assert paper_gops(isa, ["f32", "u8s8"], 4, 2.5) == (("f32", 320.0), ("u8s8", 640.0))
    assert paper_gops(isa, ["f32"], 4, 0.0) == ()
    assert Limits((), ((1, 1.0),), 1.0, paper_gops=(("u8s8", 640.0),)).paper_gops


def test_threads_of_one_core_are_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paper, "_CPUS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert paper.cores(8) == 4  # the kernel does not say: as many as there are
    for cpu in range(4):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{cpu // 2}-x\n")
    assert [paper.cores(threads) for threads in (1, 2, 8)] == [1, 2, 2]
