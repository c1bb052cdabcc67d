"""Which problems have a model: those of a class and with traits that a proof visited."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from pyonednn_q.errors import NoModelError
from pyonednn_q.faults import guards
from pyonednn_q.predict.kernel_model import kernel_model
from pyonednn_q.predict.region import Region, class_of, proofs, traits
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

conv, deconv, matmul = ConvProblem.of, DeconvProblem.of, MatMulProblem.of


def free(problem: Any, **specs: Any) -> Any:
    return replace(problem, **specs)


PLAIN = conv((1, 16, 9, 9), (16, 16, 3, 3))
PRODUCT = matmul((16, 16), (16, 16))


@pytest.mark.parametrize(
    ("problem", "wanted"),
    [
        (PLAIN, "2-D, one group"),
        (conv((1, 3, 9), (8, 3, 3)), "1-D, one group"),
        (conv((1, 3, 9, 9, 9), (8, 3, 3, 3, 3)), "3-D, one group"),
        (conv((1, 1, 9, 9), (8, 1, 3, 3)), "2-D, one channel"),
        (conv((1, 1, 9, 9), (1, 1, 3, 3)), "2-D, one channel"),
        (conv((1, 8, 9, 9), (8, 1, 1, 3, 3)), "2-D, depthwise"),
        (conv((1, 2, 9, 9), (2, 2, 1, 3, 3)), "2-D, groups of one channel"),
        (conv((1, 4, 9, 9), (2, 1, 2, 3, 3)), "2-D, groups"),
        (conv((1, 4, 9, 9), (1, 2, 4, 3, 3)), "2-D, one group"),
        (deconv((1, 4, 9, 9), (2, 1, 2, 3, 3)), "2-D, groups"),
        (InnerProductProblem.of((2, 3), 4), "plain"),
        (InnerProductProblem.of((2, 3, 5), 4), "1-D"),
        (InnerProductProblem.of((2, 3, 5, 5), 4), "2-D"),
        (matmul((2, 3), (3, 4)), "2-D"),
        (matmul((2, 2, 3), (2, 3, 4)), "3-D, batches"),
        (matmul((1, 2, 3), (1, 3, 4)), "3-D, a batch of one"),
        (matmul((2, 2, 3), (1, 3, 4)), "3-D, batches by one wei"),
        (matmul((1, 2, 3), (2, 3, 4)), "3-D, one src by batches"),
        (matmul((2, 5, 2, 3), (2, 1, 3, 4)), "4-D, batches that are repeated"),
        (matmul((2, 5, 2, 3), (2, 5, 3, 4)), "4-D, batches"),
    ],
)
def test_a_class(problem: Any, wanted: str) -> None:
    assert class_of(problem) == wanted


ONE = {"src channels in sixteens", "dst channels in sixteens"}
WINDOW = {"wider kernel", "stride 1", "no padding"}
LAST = {"src channels last", "dst channels last"}
SRC = {"src channels in sixteens"}
USUAL = {"one image", *ONE, *WINDOW, *LAST}


def test_traits_of_an_ordinary_convolution() -> None:
    assert traits(PLAIN) == USUAL


def windowed(**more: Any) -> ConvProblem:
    dims, wei = more.pop("src", (1, 16, 9, 9)), more.pop("wei", (16, 16, 3, 3))
    return conv(dims, wei, **more)


def of_one(outputs: int, groups: int = 1) -> ConvProblem:
    """A convolution of one input channel, or of groups of one."""
    wei = (outputs, 1, 3, 3) if groups == 1 else (groups, outputs, 1, 3, 3)
    return windowed(src=(1, groups, 9, 9), wei=wei)


@pytest.mark.parametrize(
    ("problem", "more", "less"),
    [
        (windowed(src=(2, 16, 9, 9)), {"several images"}, {"one image"}),
        (windowed(padding=1), {"padding"}, {"no padding"}),
        (windowed(padding=((1, 0), (0, 0))), {"padding", "padding of one side"}, {"no padding"}),
        (windowed(padding=((0, 0), (2, 2))), {"padding"}, {"no padding"}),
        (windowed(padding=((0, 0), (3, 3))), {"padding", "padding as long as the kernel"},
         {"no padding"}),
        (windowed(stride=2), {"stride 2"}, {"stride 1"}),
        (windowed(stride=3), {"stride beyond 2"}, {"stride 1"}),
        (windowed(stride=(2, 1)), {"stride 2", "strides that differ"}, {"stride 1"}),
        (windowed(stride=4), {"stride beyond 2", "kernel shorter than stride"}, {"stride 1"}),
        (windowed(dilation=2), {"dilation"}, set()),
        (windowed(wei=(16, 16, 1, 1)), {"kernel of 1"}, {"wider kernel"}),
        (windowed(wei=(16, 16, 1, 1), dilation=2), {"kernel of 1"}, {"wider kernel"}),
        (windowed(wei=(16, 16, 1, 3)), {"kernel of 1 along an axis"}, {"wider kernel"}),
        (windowed(wei=(16, 16, 7, 7)), set(), set()),
        (windowed(wei=(16, 16, 3, 8)), {"kernel beyond 7"}, set()),
        (windowed(wei=(16, 16, 3, 9)), {"kernel beyond 7", "one column of dst"}, set()),
        (windowed(src=(1, 16, 2, 9), padding=1), {"padding", "kernel longer than src"},
         {"no padding"}),
        (windowed(src=(1, 16, 3, 9), padding=1), {"padding"}, {"no padding"}),
        (windowed(src=(1, 16, 1, 9), padding=1),
         {"padding", "kernel longer than src", "one place of src along the kernel"},
         {"no padding"}),
        (windowed(src=(1, 2, 9, 9), wei=(16, 2, 3, 3)), {"src channels of 2 or 3"},
         {"src channels in sixteens"}),
        (windowed(src=(1, 4, 9, 9), wei=(16, 4, 3, 3)), {"src channels in fours"},
         {"src channels in sixteens"}),
        (windowed(src=(1, 5, 9, 9), wei=(16, 5, 3, 3)), {"src channels beside fours"},
         {"src channels in sixteens"}),
        (windowed(src=(1, 10, 9, 9), wei=(2, 16, 5, 3, 3)), {"src channels beside fours"},
         {"src channels in sixteens"}),
        (windowed(wei=(1, 16, 3, 3)), {"one dst channel"}, {"dst channels in sixteens"}),
        (windowed(wei=(24, 16, 3, 3)), {"dst channels in eights"}, {"dst channels in sixteens"}),
        (windowed(wei=(12, 16, 3, 3)), {"dst channels beside eights"},
         {"dst channels in sixteens"}),
        (windowed(wei=(48, 16, 3, 3)), set(), set()),
        (windowed(wei=(1, 16, 16, 3, 3)), {"a dimension of one group"}, set()),
        (windowed(src=(1, 24, 9, 9), wei=(24, 1, 1, 3, 3)), {"dst channels in eights"}, ONE),
        (of_one(1), {"one dst channel"}, ONE),
        (of_one(16), {"dst in a block of 16"}, SRC),
        (of_one(17), {"dst channels beside eights", "dst in two blocks"}, ONE),
        (of_one(32), {"dst in two blocks"}, SRC),
        (of_one(33), {"dst channels beside eights", "dst in another number of blocks"}, ONE),
        (of_one(48), {"dst in another number of blocks"}, SRC),
        (of_one(64), {"dst in blocks by fours"}, SRC),
        (of_one(49, 2), {"dst channels beside eights", "dst in blocks by fours"}, ONE),
        (of_one(96, 2), {"dst in another number of blocks"}, SRC),
        (windowed(layout="dense"), {"src row-major", "dst row-major"}, LAST),
        (windowed(src=(1, 1, 9, 9), wei=(1, 1, 3, 3), layout="dense"), {"one dst channel"}, ONE),
        (free(PLAIN, src=TensorSpec(PLAIN.src.dims, "u8")), {"src in any layout"},
         {"src channels last"}),
        (free(PLAIN, dst=replace(PLAIN.dst, strides=(1000, 1, 140, 20))), {"dst with gaps"},
         {"dst channels last"}),
        (free(PLAIN, wei=TensorSpec.dense(PLAIN.wei.dims, "s8")), {"wei row-major"}, set()),
        (windowed(src=(0, 16, 9, 9)), {"nothing in it", "several images"}, {"one image"}),
    ],
)  # fmt: skip
def test_traits_of_others(problem: Any, more: set[str], less: set[str]) -> None:
    assert traits(problem) == (USUAL - less) | more


def test_a_dst_beyond_the_taps() -> None:
    problem = deconv((1, 16, 4, 4), (16, 16, 3, 3), stride=2)
    longer = replace(problem, dst=TensorSpec.channels_last((1, 16, 9, 10), "u8"))
    assert traits(problem) == (USUAL - {"stride 1"}) | {"stride 2"}
    assert traits(longer) == traits(problem) | {"dst beyond the taps"}


BOTH = {"src row-major", "dst row-major"}
MATRIX = {"16 rows or more", "columns in sixteens", "columns in a block of 16", *BOTH}


@pytest.mark.parametrize(
    ("problem", "more", "less"),
    [
        (PRODUCT, set(), set()),
        (matmul((1, 16), (16, 16)), {"one row"}, {"16 rows or more"}),
        (matmul((15, 16), (16, 16)), {"up to 15 rows"}, {"16 rows or more"}),
        (matmul((16, 1), (1, 16)), {"K of 1"}, {"K in sixteens"}),
        (matmul((16, 3), (3, 16)), {"K of 2 or 3"}, {"K in sixteens"}),
        (matmul((16, 4), (4, 16)), {"K in fours"}, {"K in sixteens"}),
        (matmul((16, 33), (33, 16)), {"K beside fours"}, {"K in sixteens"}),
        (matmul((16, 16), (16, 1)), {"one column"},
         {"columns in sixteens", "columns in a block of 16"}),
        (matmul((16, 16), (16, 20)), {"columns beside eights", "columns in several blocks"},
         {"columns in sixteens", "columns in a block of 16"}),
        (free(PRODUCT, wei=TensorSpec.dense((16, 16), "s8")), {"wei row-major"}, set()),
        (free(PRODUCT, wei=TensorSpec((16, 16), "s8", (1, 16))), {"wei transposed"}, set()),
        (free(PRODUCT, src=TensorSpec((16, 16), "u8", (20, 1))), {"src with gaps"},
         {"src row-major"}),
        (free(PRODUCT, dst=TensorSpec((16, 16), "u8")), {"dst in any layout"}, {"dst row-major"}),
        (free(PRODUCT, bias=TensorSpec.dense((1, 16), "f32")), set(), set()),
        (free(PRODUCT, bias=TensorSpec.dense((16, 16), "f32")), {"bias of more than a row"}, set()),
    ],
)  # fmt: skip
def test_traits_of_products(problem: Any, more: set[str], less: set[str]) -> None:
    assert traits(problem) == ((MATRIX | {"K in sixteens"}) - less) | more


def test_traits_of_an_inner_product() -> None:
    problem = InnerProductProblem.of((2, 3, 5, 5), 40)
    wanted = {"up to 15 rows", "src channels of 2 or 3", "columns in eights"}
    assert traits(problem) == wanted | {
        "columns in several blocks", "src channels last", "dst row-major",
    }  # fmt: skip


def test_a_region_is_what_was_visited() -> None:
    region = Region.of([PLAIN, windowed(stride=2), windowed(src=(1, 1, 9, 9), wei=(8, 1, 3, 3))])
    for inside in (PLAIN, windowed(src=(1, 32, 20, 20), wei=(16, 32, 5, 5), stride=2)):
        assert region.outside(inside) == ""
    padded = windowed(padding=1, src=(2, 16, 9, 9))
    said = "no 2-D convolution of one group was compared with padding, several images"
    assert region.outside(padded) == said
    grouped = windowed(wei=(2, 8, 8, 3, 3))
    assert region.outside(grouped) == "no 2-D convolution of groups was compared"
    # Of one channel, no problem was strided.
    strided = windowed(src=(1, 1, 9, 9), wei=(8, 1, 3, 3), stride=2)
    assert "with stride 2" in region.outside(strided)
    products = Region.of([matmul((1, 16), (16, 16))])
    assert products.outside(PRODUCT) == "no 2-D matmul was compared with 16 rows or more"
    dense = Region.of([InnerProductProblem.of((1, 16), 16)])
    assert dense.outside(InnerProductProblem.of((1, 16, 2), 16)) == (
        "no 1-D inner product was compared"
    )


@pytest.mark.parametrize("version", [(3, 7, 2), (3, 13, 2)])
@pytest.mark.parametrize("isa", ["AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_AMX"])
def test_what_was_wrong_in_silence_has_no_model(
    version: tuple[int, ...], isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for the guard table's sake: nobody had compared such shapes."""
    monkeypatch.setattr(guards, "matching", lambda *_: ())
    impl = "brg_conv_fwd:avx512_core" + ("" if isa == "AVX512_CORE" else "_vnni")

    def model(problem: Any) -> object:
        return kernel_model(problem, Attr(), impl, isa, version)

    plane = conv((1, 1, 1, 6, 6), (8, 1, 3, 3, 3), dst="s32", padding=1)
    says = r"no 3-D convolution of one channel was compared with (.*, )?one place of src along"
    with pytest.raises(NoModelError, match=says):
        model(plane)
    assert model(conv((1, 1, 3, 6, 6), (16, 1, 3, 3, 3), dst="s32", padding=1))
    for src, outputs in itertools.product(("s8", "u8"), (33, 40, 48)):
        grouped = conv((1, 2, 4, 4), (2, outputs, 1, 3, 3), src=src, dst="s32")
        with pytest.raises(NoModelError, match="groups of one channel was compared with dst in an"):
            model(grouped)
        assert model(conv((1, 2, 4, 4), (2, 16, 1, 3, 3), src=src, dst="s32"))


ORDINARY = [
    conv((1, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
    conv((8, 64, 56, 56), (64, 64, 3, 3), padding=1),
    conv((8, 64, 56, 56), (128, 64, 3, 3), padding=1, stride=2),
    conv((1, 256, 56, 56), (512, 256, 1, 1), stride=2),
    conv((1, 80, 14, 14), (480, 80, 1, 1)),
    conv((1, 64, 28, 28), (64, 64, 3, 3), padding=2, dilation=2),
    conv((1, 17, 9, 9), (19, 17, 3, 3)),
    conv((1, 96, 112, 112), (96, 1, 1, 3, 3), padding=1, stride=2),
    conv((1, 40, 14, 14), (40, 1, 1, 5, 5), padding=2),
    conv((1, 128, 56, 56), (32, 4, 4, 3, 3), padding=1),
    conv((1, 1, 28, 28), (20, 1, 5, 5)),
    conv((1, 64, 100), (64, 64, 3), padding=1),
    conv((1, 16, 8, 20, 20), (32, 16, 3, 3, 3), padding=1),
    deconv((1, 64, 28, 28), (32, 64, 4, 4), stride=2, padding=1),
    deconv((2, 64, 14, 14), (64, 64, 3, 3), padding=1),
    InnerProductProblem.of((1, 512), 1000),
    InnerProductProblem.of((32, 100), 10),
    InnerProductProblem.of((4, 64, 7, 7), 128),
    matmul((1, 768), (768, 768)),
    matmul((128, 768), (768, 3072)),
    matmul((7, 33), (33, 5)),
    matmul((12, 128, 64), (12, 64, 128)),
    matmul((2, 12, 128, 64), (2, 12, 64, 128)),
]


@pytest.mark.parametrize("problem", ORDINARY, ids=lambda problem: problem.text())
def test_ordinary_shapes_were_visited_by_every_proof(problem: Any) -> None:
    of_kind = [proof for key, proof in proofs().items() if key[0] == problem.kind]
    assert len(of_kind) > 90
    assert {proof.region.outside(problem) for proof in of_kind} == {""}


def test_a_region_grows_by_another_proof() -> None:
    region = Region.of([PLAIN]).joined(Region.of([windowed(padding=1), PRODUCT]))
    assert region.outside(windowed(padding=1)) == region.outside(PLAIN) == ""
    assert region.visited["2-D, one group"] == USUAL | {"padding"}
    assert set(region.visited) == {"2-D, one group", "2-D"}


def test_equal_proofs_have_equal_hashes() -> None:
    proof = next(iter(proofs().values()))
    other = replace(proof, region=Region(dict(proof.region.visited)))
    assert proof == other
    assert hash(proof) == hash(other)
