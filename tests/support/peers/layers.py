"""A call as the layer that peers are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.bench.peers import PeerError, PeerLayer, ready
from pyonednn_q.bench.peers.peer_layer import Residual
from pyonednn_q.expr.steps import Sum

if TYPE_CHECKING:
    from support.calls.call import Call

THREADS = 2


def run(peer: str, call: Call) -> Any:
    """Let a peer compute a call."""
    return ready(peer, layer_of(call), THREADS).result()


def refusal(peer: str, call: Call) -> str:
    """Return why a peer does not compute a call."""
    try:
        run(peer, call)
    except PeerError as error:
        return str(error)
    return ""


def layer_of(call: Call) -> PeerLayer:
    """Return the layer. The chain may hold a Sum, and a relu after it; weights one zero point."""
    assert call.src_q is not None
    assert call.wei_q is not None
    spatial = call.src.ndim - 2
    added = next((step for step in call.post if isinstance(step, Sum)), None)
    residual = None
    if added is not None:
        assert call.residual is not None
        residual = Residual(call.residual, added.scale, added.zero_point)
    has_window = call.kind in {"conv", "deconv"}
    return PeerLayer(
        {"inner_product": "ip"}.get(call.kind, call.kind),
        call.src,
        call.wei,
        call.bias,
        src_scale=float(call.src_q.scale),
        src_zero_point=int(call.src_q.zero_point),
        wei_scale=np.ravel(call.wei_q.scale),
        wei_zero_point=int(np.ravel(call.wei_q.zero_point)[0]),
        dst=call.dtype,
        dst_scale=float(call.dst_q.scale) if call.dst_q else 1.0,
        dst_zero_point=int(call.dst_q.zero_point) if call.dst_q else 0,
        stride=(call.window.get("stride", 1),) * spatial if has_window else (),
        dilation=(1,) * spatial if has_window else (),
        padding=_sides(call.window.get("padding", 0), spatial) if has_window else (),
        groups=call.window.get("groups", 1),
        relu=len(call.post) > (added is not None),
        residual=residual,
    )


def _sides(padding: Any, spatial: int) -> tuple[tuple[int, int], ...]:
    return padding if isinstance(padding, tuple) else ((padding, padding),) * spatial
