"""Other runtimes on the model that was read: its graph written again, with nothing else in it.

They never see the file: external data is inside, dims are fixed, and what `onnx.load` refuses does
not get here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import items
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, LibraryError, UnsupportedError
from pyonednn_q.onnx.model_writer import model_bytes
from pyonednn_q.shown import install, shortened, shown

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph

__all__ = ["PEERS", "checked_peers", "installed", "onnxruntime_values", "ready"]

PEERS = ("onnxruntime", "openvino")


def installed(peers: Iterable[str] = PEERS) -> tuple[str, ...]:
    """Return those of some runtimes that are installed."""
    return tuple(peer for peer in peers if find_spec(peer) is not None)


def checked_peers(argument: str, peers: Iterable[str]) -> tuple[str, ...]:
    """Return the names of runtimes, each of which is installed.

    Parameters
    ----------
    argument : str
        Name of the argument in the error message.
    peers : iterable of str
        Names of runtimes.

    Raises
    ------
    ArgumentError
        A name of none, or of one that is not installed.
    """
    names = items(argument, peers, str)
    for name in names:
        if name not in PEERS:
            raise ArgumentError(argument, shown(name), f"for a model one of {', '.join(PEERS)}")
    missing = set(names) - set(installed())
    if missing:
        raise ArgumentError(argument, ", ".join(sorted(missing)), "runtimes that are installed")
    return names


def onnxruntime_values(
    graph: Graph, inputs: Mapping[str, Array], wanted: Iterable[str]
) -> dict[str, Array]:
    """Return tensors of a model as onnxruntime computes them, with all that it fuses.

    Parameters
    ----------
    graph : Graph
        Graph that `onnx.load` returned.
    inputs : mapping of str to ndarray
        All inputs of the model.
    wanted : iterable of str
        Names; of those that the graph does not compute none are returned.

    Raises
    ------
    LibraryError
        onnxruntime is not installed.
    UnsupportedError
        The runtime cannot run the model.
    """
    if not installed(["onnxruntime"]):
        message = f"values to compare with come from onnxruntime: {install('peers')}"
        raise LibraryError(message)
    computed = {name for node in graph.nodes for name in node.outputs if name}
    names = [*graph.outputs, *(name for name in wanted if name in computed)]
    # One of its optimizers quantizes float weights: other numbers than the model has.
    session = _session(graph, names, 0, disabled_optimizers=["WeightBiasQuantization"])
    outputs = [each.name for each in session.get_outputs()]
    values = _told("onnxruntime", lambda: session.run(outputs, dict(inputs)))
    return dict(zip(outputs, values, strict=True))


def ready(
    peer: str, graph: Graph, inputs: Mapping[str, Array], threads: int
) -> Callable[[], object]:
    """Return a call of a model on arrays by another runtime, after it was called once.

    Raises
    ------
    UnsupportedError
        The runtime cannot run the model; the message says why.
    """
    run = _onnxruntime(graph, inputs, threads) if peer == "onnxruntime" else None
    run = run or _openvino(graph, inputs, threads)
    _told(peer, run)
    return run


def _onnxruntime(graph: Graph, inputs: Mapping[str, Array], threads: int) -> Callable[[], object]:
    session = _session(graph, (), threads)
    arrays = dict(inputs)
    return lambda: session.run(None, arrays)


def _session(graph: Graph, outputs: Iterable[str], threads: int, **more: Any) -> Any:  # noqa: ANN401
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    data = model_bytes(graph, outputs)
    providers = ["CPUExecutionProvider"]
    return _told(
        "onnxruntime",
        lambda: onnxruntime.InferenceSession(data, options, providers=providers, **more),
    )


def _openvino(graph: Graph, inputs: Mapping[str, Array], threads: int) -> Callable[[], object]:
    import io

    import openvino

    def compiled() -> Any:  # noqa: ANN401 - of openvino
        core = openvino.Core()
        model = core.read_model(io.BytesIO(model_bytes(graph)))
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        if not any(
            "Quantize" in node.operator or "QLinear" in node.operator for node in graph.nodes
        ):
            settings["INFERENCE_PRECISION_HINT"] = "f32"  # else bf16, where the CPU has it
        return core.compile_model(model, "CPU", settings).create_infer_request()

    request = _told("openvino", compiled)
    arrays = dict(inputs)
    return lambda: request.infer(arrays)


def _told(peer: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
    """Do some work of a peer; its own exceptions become ours."""
    try:
        return work()
    except ArgumentError:
        raise
    except Exception as error:  # of the peer, whatever it is
        detail = shortened(" ".join(str(error).split()), 200)
        raise UnsupportedError("refused", peer, "the model", detail) from None
