"""Random graphs of several nodes, or of one of a kind."""

from __future__ import annotations

from collections.abc import Mapping

from support.onnx_graphs.draw import GraphDraw, NotHere
from support.onnx_graphs.kinds import COMPUTED, Kind
from support.onnx_graphs.layers import LAYERS
from support.onnx_graphs.moves import MOVES
from support.onnx_graphs.windows import WINDOWS

OPSETS = range(10, 24)
_TRIES = 30


def random_graph(seed: int) -> GraphDraw:
    """Return a graph of 3 to 15 nodes, of opset 10 to 23."""
    draw = GraphDraw(seed, int(OPSETS[seed % len(OPSETS)]))
    # Half of the nodes are layers and codes in some graphs, few in others.
    of_layers = draw.one(0.15, 0.5, 0.8)
    wanted = draw.whole(3, 15)
    for _ in range(_TRIES):
        if len(draw.nodes) >= wanted:
            break
        rooms: tuple[Mapping[str, Kind], ...] = (COMPUTED, MOVES, MOVES, WINDOWS)
        kinds = LAYERS if draw.maybe(of_layers) else draw.one(*rooms)
        add(draw, kinds, draw.one(*kinds))
    return draw


def add(draw: GraphDraw, kinds: Mapping[str, Kind], kind: str) -> bool:
    """Add nodes of a kind, all of them or none; tell whether that was possible."""
    before = len(draw.nodes)
    try:
        kinds[kind](draw, kind)
    except NotHere:
        for node in draw.nodes[before:]:
            for name in node.output:
                draw.types.pop(name, None)
        del draw.nodes[before:]
        return False
    return True
