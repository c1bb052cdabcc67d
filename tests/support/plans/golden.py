"""Write the golden texts of the known chains: `python -m support.plans.golden`.

Look at the difference before committing it: every line is a promise to users.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyonednn_q.compose.composer import compose
from pyonednn_q.explain import presets, read
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.plans import chains

FOLDER = Path(__file__).parents[2] / "pure" / "compose" / "golden"
SUBGRAPHS = FOLDER / "subgraphs"
DSTS = ("u8", "f32")


def facts(dst: str) -> PrimitiveFacts:
    """Return a convolution with scales and a known bias, on any machine."""
    channels = chains.CHANNELS
    return PrimitiveFacts(
        "convolution",
        channels,
        dst=dst,
        src_scale=0.5,
        wei_scale=Vec(np.resize([0.5, 0.25, 1.0], channels)),
        bias=Vec(np.arange(channels) - 6.5),
        wei_has_min=False,
    )


def text(name: str) -> str:
    """Return the plans of a chain, for both kinds of dst, with their traces."""
    parts = []
    for dst in DSTS:
        plan = compose(chains.chain(name, dst), facts(dst), strict=True)
        parts += [str(plan), "", plan.explain(), ""]
    return "\n".join(parts)


def subgraph_text(name: str) -> str:
    """Return the plan of a subgraph, which says itself what it stores, with its trace."""
    plan = read(presets.get(name)).plan(strict=True)
    return "\n".join([str(plan), "", plan.explain(), ""])


if __name__ == "__main__":
    SUBGRAPHS.mkdir(exist_ok=True, parents=True)
    for name in presets.names("subgraphs"):
        (SUBGRAPHS / f"{name}.txt").write_text(subgraph_text(name))
    for name in chains.NAMES:
        (FOLDER / f"{name}.txt").write_text(text(name))
