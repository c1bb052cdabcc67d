"""What every test run says about itself, and the skip for instruction sets that are not here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from hypothesis import settings

from support.isa import skip_without

ORACLES = ("ai-edge-litert", "onnxruntime", "torch")

# A deadline would measure what else the machine is doing.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_report_header() -> list[str]:
    """Name the oneDNN under test: without it a result means nothing."""
    header = [f"numpy {np.__version__}"]
    try:
        from pyonednn_q.native import library, runtime

        found = ".".join(map(str, runtime.version()))
        header.append(f"oneDNN {found} {runtime.threading_runtime()}, {library.loaded().path}")
        header.append(f"isa {runtime.isa().text()}, {runtime.get_num_threads()} threads")
    except ImportError as error:
        header.append(f"oneDNN: none, only tests/pure can pass ({error})")
    return [*header, f"oracles: {', '.join(map(_oracle, ORACLES))}"]


def _oracle(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here: without the extension, or below the ISA that a test needs."""
    if item.get_closest_marker("executed"):
        from pyonednn_q.native import runtime

        try:
            _ = runtime.core
        except ImportError as error:
            pytest.skip(f"no primitive to run on: {error}")
    for marker in item.iter_markers("needs_isa"):
        from pyonednn_q.native import runtime

        skip_without(runtime.isa(), *marker.args)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Depth of the runs whose size is a matter of patience."""
    parser.addoption(
        "--random-problems", type=int, default=400, help="problems of the differential run"
    )
    parser.addoption("--random-plans", type=int, default=2000, help="plans drawn and executed")
    parser.addoption("--random-chains", type=int, default=20_000, help="chains drawn, if slow")
    parser.addoption("--chain-seed", type=int, default=0, help="seed of these chains")
    parser.addoption(
        "--hostile-calls", type=int, default=2000, help="hostile calls; 0: until it is stopped"
    )
    parser.addoption("--hostile-seed", type=int, default=0, help="first seed of the hostile run")
    parser.addoption("--hostile-models", type=int, default=1000, help="models tampered with")
    parser.addoption("--random-graphs", type=int, default=100, help="ONNX graphs drawn and run")
    parser.addoption("--graph-seed", type=int, default=0, help="seed of the first of them")
    parser.addoption("--drawn-pools", type=int, default=1500, help="pools drawn and run")
    parser.addoption(
        "--compared-outputs",
        type=int,
        default=10_000,
        help="outputs compared with models of weights in groups and of caches, by each test",
    )
    parser.addoption("--mixed-runs", type=int, default=20, help="processes of threads that mix")
    parser.addoption(
        "--stress-seconds", type=float, default=60.0, help="of threads whose memory is measured"
    )
