"""On which convolutions the faults of windows that are laid anew show, and where they end."""

from __future__ import annotations

from typing import Any

from pyonednn_q.faults.guards import lowered
from pyonednn_q.primitive.problem import ConvProblem
from support.guard_borders.make import PLAIN, Border, conv, deconv


def floats(dtype: str) -> dict[str, Any]:
    return {"src": dtype, "wei": dtype, "dst": "f32"}


def plane(channels: int, columns: int, depth: int = 1, groups: int = 1, **more: Any) -> ConvProblem:
    """A kernel of two planes on a source of one."""
    wei = (4, channels, 2, 1, columns) if groups == 1 else (groups, 4, channels, 2, 1, columns)
    padding = ((1, 0), (0, 0), (0, 0))
    src = (1, channels * groups, depth, 3, 9)
    return ConvProblem.of(src, wei, **{"dst": "s32", "padding": padding, **more})


def steps(
    channels: int, kernel: int, width: int, stride: int | None = None, **more: Any
) -> ConvProblem:
    """A row of columns in steps of the kernel's length, unless another is given."""
    stride = kernel if stride is None else stride
    wei = (16, channels, 1, kernel)
    return ConvProblem.of((1, channels, 2, width), wei, **{"stride": (1, stride), **more})


BEHIND = ((0, 1), (0, 0), (0, 0))  # the first plane of a kernel alone meets src

BORDERS: list[Border] = [
    (
        lowered.one_channel_one_plane,
        [
            (conv((1, 1, 1, 6, 6), (4, 1, 2, 3, 3), padding=1), PLAIN),
            (conv((1, 2, 1, 6, 6), (2, 4, 1, 3, 3, 3), padding=1), PLAIN),
            (conv((1, 1, 1, 6, 6), (4, 1, 2, 3, 3), padding=1, dilation=(2, 2, 1)), PLAIN),
        ],
        [
            (conv((1, 1, 2, 6, 6), (4, 1, 2, 3, 3), padding=1), PLAIN),
            (conv((1, 1, 1, 6, 6), (4, 1, 1, 3, 3)), PLAIN),
            (conv((1, 2, 1, 6, 6), (4, 2, 2, 3, 3), padding=1), PLAIN),
            (conv((1, 1, 1, 6, 6), (4, 1, 2, 3, 3), padding=1, dilation=(1, 1, 2)), PLAIN),
            (conv((1, 1, 1, 6), (4, 1, 2, 3), padding=1), PLAIN),
        ],
    ),
    (
        lowered.rows_of_taps,
        [
            (conv((1, 16, 3, 9), (4, 16, 1, 8)), PLAIN),
            (conv((1, 8, 3, 20), (4, 8, 1, 16)), PLAIN),
            (conv((1, 32, 3, 9), (2, 4, 16, 1, 8)), PLAIN),
            (conv((1, 31, 1, 64), (4, 31, 1, 64)), PLAIN),
            (conv((1, 8, 1, 8), (1, 8, 1, 8), "bf16", wei="bf16", dst="f32"), PLAIN),
        ],
        [
            (conv((1, 16, 3, 9), (4, 16, 1, 4)), PLAIN),  # a row of 64
            (conv((1, 16, 9, 9), (4, 16, 8, 6)), PLAIN),
            (conv((1, 32, 3, 9), (4, 32, 1, 8)), PLAIN),
            (conv((1, 8, 1, 8), (1, 8, 1, 8)), PLAIN),  # of bytes, a register
            (conv((1, 16, 1, 8), (1, 16, 1, 8), "bf16", wei="bf16", dst="f32"), PLAIN),
            (conv((1, 8, 1, 8), (1, 8, 1, 8), "f32", wei="f32", dst="f32"), PLAIN),
            (deconv((1, 16, 3, 9), (4, 16, 1, 8)), PLAIN),
        ],
    ),
    (
        lowered.few_channels_one_plane,
        [(plane(channels, 3), PLAIN) for channels in (1, 2, 3, 5, 7, 9, 15, 17, 31)]
        + [(plane(channels, 3, groups=3), PLAIN) for channels in (1, 31)]
        + [(plane(28, 3), PLAIN), (plane(12, 7), PLAIN)]  # rows of 84, multiples of four
        + [(plane(channels, 2, **floats("bf16")), PLAIN) for channels in (1, 3, 15)]
        + [
            (plane(3, 3, dilation=(2, 2, 1), padding=((2, 0), (1, 1), (0, 0))), PLAIN),
            (plane(3, 3, stride=(2, 1, 2)), PLAIN),
            (plane(3, 3, groups=2, padding=BEHIND), PLAIN),
            (conv((1, 3, 1, 3, 9), (17, 3, 2, 1, 3), padding=BEHIND), PLAIN),
        ],
        [(plane(channels, 3), PLAIN) for channels in (4, 8, 16, 32, 33, 47, 48, 63, 64, 65)]
        + [(plane(channels, 2, **floats("bf16")), PLAIN) for channels in (2, 4, 8, 16, 17)]
        + [(plane(16, 4), PLAIN), (plane(16, 8), PLAIN)]  # rows of one register, and of two
        + [
            (plane(3, 1), PLAIN),
            (plane(3, 3, padding=BEHIND), PLAIN),
            (conv((1, 3, 1, 3, 9), (16, 3, 2, 1, 3), padding=BEHIND), PLAIN),
            (plane(3, 3, depth=2), PLAIN),
            (plane(3, 3, dilation=(1, 1, 2)), PLAIN),
            (plane(3, 3, **floats("f32")), PLAIN),
            (conv((1, 3, 1, 9), (4, 3, 2, 3), padding=((1, 0), (0, 0))), PLAIN),
            (conv((1, 3, 1, 3, 9), (4, 3, 1, 1, 3)), PLAIN),
        ],
    ),
    (
        lowered.columns_as_channels,
        [(steps(channels, 4, 12), PLAIN) for channels in (32, 48)]
        + [(steps(channels, 8, 16), PLAIN) for channels in (16, 24, 40, 56)]
        + [
            (steps(32, 6, 18), PLAIN),
            (steps(32, 4, 12, src="s8"), PLAIN),
            (steps(16, 4, 8, **floats("bf16")), PLAIN),
            (steps(8, 8, 40, **floats("bf16")), PLAIN),
            (conv((1, 48, 3, 2, 12), (1, 48, 3, 1, 4), stride=(3, 1, 4)), PLAIN),
            (steps(48, 4, 12, padding=((0, 0), (0, 3))), PLAIN),
        ],
        [(steps(channels, 4, 12), PLAIN) for channels in (16, 31, 33, 40, 47, 49, 64, 96, 128)]
        + [(steps(48, kernel, 12), PLAIN) for kernel in (2, 3)]
        + [(steps(48, 4, 12, stride), PLAIN) for stride in (1, 2, 3)]
        + [
            (steps(48, 4, 13), PLAIN),
            (steps(48, 4, 12, dilation=(1, 2)), PLAIN),
            (steps(48, 4, 12, padding=((0, 0), (1, 0))), PLAIN),
            (steps(48, 4, 12, padding=((0, 0), (0, 4))), PLAIN),
            (steps(8, 4, 8, **floats("bf16")), PLAIN),
            (steps(8, 8, 40, **floats("f32")), PLAIN),
            (conv((1, 96, 2, 12), (2, 8, 48, 1, 4), stride=(1, 4)), PLAIN),
            (deconv((1, 48, 2, 12), (16, 48, 1, 4), stride=(1, 4)), PLAIN),
        ],
    ),
    (
        lowered.one_column_as_channels,
        [
            (steps(32, 8, 8), PLAIN),
            (steps(56, 8, 8, src="s8"), PLAIN),
            (steps(24, 4, 4, **floats("bf16")), PLAIN),
            (steps(20, 16, 16, padding=((0, 0), (0, 1))), PLAIN),
            (conv((1, 16, 1, 2, 8), (16, 16, 1, 2, 8), stride=(1, 1, 8)), PLAIN),
        ],
        [
            (steps(32, 8, 16), PLAIN),
            (steps(64, 8, 8), PLAIN),
            (steps(32, 8, 8, padding=((0, 0), (1, 0))), PLAIN),
            (conv((1, 32, 2, 4, 8), (16, 32, 1, 2, 8), stride=(1, 1, 8)), PLAIN),
        ],
    ),
    (
        lowered.rows_skipped,
        [
            (conv((1, 127, 12, 9), (1, 127, 1, 4), stride=(3, 1), dilation=(2, 2)), PLAIN),
            (conv((1, 65, 7, 6, 7), (2, 65, 1, 1, 4), stride=(2, 2, 1)), PLAIN),
            (conv((1, 32, 5, 8, 3), (2, 32, 2, 2, 2), stride=(3, 3, 1)), PLAIN),
        ],
        [
            (conv((1, 64, 12, 6), (1, 64, 3, 4), stride=(3, 1)), PLAIN),
            (conv((1, 64, 12, 6), (1, 64, 2, 4), stride=(3, 1), dilation=(2, 1)), PLAIN),
            (conv((1, 64, 12, 12), (1, 64, 3, 3), stride=(1, 4)), PLAIN),
            (conv((1, 64, 12), (1, 64, 3), stride=4), PLAIN),
        ],
    ),
]
