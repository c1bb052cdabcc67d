"""sequential: a network of operators and operations in a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Chain, Step, Sum
from pyonednn_q.network.graph import OPERATIONS, Network, Node
from pyonednn_q.ops.operator import Operator
from pyonednn_q.shown import shown

_CARRIED = ("policy", "layout", "strict", "allow_reference", "self_check", "tune")


def sequential(*layers: Any) -> Network:  # noqa: ANN401 - operators, operations, steps
    """Return a network in which each layer reads the result of the one before.

    Parameters
    ----------
    *layers : operator, operation of this room, or step
        Layers in order. A step (an activation, or a batch norm as an Affine) joins the chain of the
        float operator before it.

    Returns
    -------
    Network
        Network from ``"x"`` to the last layer. Nodes have the names of their classes, with a
        number: ``"conv1"``, ``"pool1"``, ``"conv2"``.

    Raises
    ------
    ArgumentError
        No layers; a step without a float operator before it, or one that reads another tensor.

    Examples
    --------
    >>> import numpy as np
    >>> import pyonednn_q as pq
    >>> from pyonednn_q.network import Pool
    >>> wei = np.ones((4, 1, 3, 3), np.float32)
    >>> net = sequential(pq.Conv(wei, padding=1), pq.Eltwise("relu"), Pool("max", 2, stride=2))
    >>> [node.dst for node in net.nodes], net.outputs
    (['conv1', 'pool1'], ('pool1',))
    """
    what: list[Any] = []
    for at, layer in enumerate(layers):
        name = f"layers[{at}]"
        instance(name, layer, Operator, Step, *OPERATIONS)
        if not isinstance(layer, Step):
            what.append(layer)
            continue
        before = what[-1] if what else None
        has_chain = isinstance(before, Operator) and before.settings.src_q is None
        if not isinstance(before, Operator) or not has_chain or isinstance(layer, Sum):
            raise ArgumentError(name, shown(layer), "a step of one tensor behind a float operator")
        what[-1] = _with_chain(before, before.settings.post + Chain(layer))
    if not what:
        raise ArgumentError("layers", "none", "one at least")
    counts: Counter[str] = Counter()
    nodes: list[Node] = []
    src = "x"
    for runs in what:
        kind = type(runs).__name__.lower()
        counts[kind] += 1
        nodes.append(Node(f"{kind}{counts[kind]}", runs, src))
        src = nodes[-1].dst
    return Network(["x"], nodes, [src])


def _with_chain(operator: Operator, post: Chain) -> Operator:
    """Return a float operator with another chain."""
    groups = {"groups": operator.groups} if operator.window else {}
    options = {name: getattr(operator.settings, name) for name in ("dst", *_CARRIED)}
    make: Callable[..., Operator] = type(operator)
    wei = operator.weights.values
    return make(wei, operator.bias, **operator.window, **groups, **options, post=post)
