"""Models as onnxruntime's quantizer writes them, made once for all tests of a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.both_ways import both_ways

__all__ = ["both_ways", "made"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return the path of a network of `support.oracles.networks` as QDQ, QOperator or dynamic.

    Beside it lies float.onnx, from which it was quantized.
    """
    from support.oracles.networks import dynamic, quantized

    paths: dict[tuple[str, str], Path] = {}

    def make(network: str, form: str) -> Path:
        if (network, form) not in paths:
            folder = tmp_path_factory.mktemp(f"{network}_{form}")
            if form == "dynamic":
                path = dynamic(network, folder, per_channel=True)
            else:
                path = quantized(network, folder, form, "u8", per_channel=True)
            paths[network, form] = path
        return paths[network, form]

    return make
