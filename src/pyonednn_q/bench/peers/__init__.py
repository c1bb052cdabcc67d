"""Other runtimes on the same arrays: onnxruntime, torch and OpenVINO, the extra ``peers``.

`PEERS` names them. Each has a module with `ready`, which makes a layer ready to run there, or says
why it cannot. Peers are imported when they are asked for, each in a process of its own.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from pyonednn_q.bench.peers.peer_layer import PeerError, PeerLayer, PeerRun

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PEERS", "PeerError", "PeerLayer", "PeerRun", "ready", "require"]

# Name, and the packages without which it cannot be used.
PEERS = {
    "onnxruntime": ("onnxruntime", "onnx"),
    "openvino": ("openvino",),
    "torch": ("torch",),
}
_MODULES = {
    "onnxruntime": "onnx_session",
    "openvino": "openvino_graph",
    "torch": "torch_operators",
}


def ready(peer: str, layer: PeerLayer, threads: int) -> PeerRun:
    """Make a layer ready to run by a peer.

    Raises
    ------
    PeerError
        The peer cannot compute it; the message says why.
    """
    module = importlib.import_module(f"{__name__}.{_MODULES[peer]}")
    make: Callable[[PeerLayer, int], PeerRun] = module.ready
    return make(layer, threads)


def require(peers: tuple[str, ...]) -> None:
    """Refuse peers that are not installed.

    Raises
    ------
    PeerError
        Naming the packages and the extra.
    """
    for peer in peers:
        for package in PEERS[peer]:
            if importlib.util.find_spec(package) is None:
                problem = "is" if package == peer else f"needs {package}, which is"
                why = f"{problem} not installed: pip install {' '.join(PEERS[peer])}"
                raise PeerError(peer, why)
