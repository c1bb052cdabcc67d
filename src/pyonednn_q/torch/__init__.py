"""torch: models of PyTorch on oneDNN. Names need the package torch when they are first used.

`load` reads any model that `torch.export` takes, of floats or as torchao's PT2E makes it, and
`quantize` makes an INT8 network of a float one. `ExactQuantizer` asks torchao's PT2E for what
oneDNN computes exactly. `swap` puts oneDNN's kernels into a model that deprecated modules of
torch.ao quantize.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.torch.exact_quantizer import ExactQuantizer as ExactQuantizer
    from pyonednn_q.torch.module_calibrator import quantize as quantize
    from pyonednn_q.torch.program_reader import load as load
    from pyonednn_q.torch.swapped_layers import QuantizedLayer as QuantizedLayer
    from pyonednn_q.torch.swapped_layers import swap as swap

# Tools that look at all names of the package come here where torch is not.
_HOME = {
    "ExactQuantizer": "exact_quantizer",
    "QuantizedLayer": "swapped_layers",
    "load": "program_reader",
    "quantize": "module_calibrator",
    "swap": "swapped_layers",
}
_NEEDED = ("onnx", "onnxscript", "torch", "torchao")

__all__ = [*_HOME]  # noqa: PLE0604 (the starred names are strings)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _NEEDED:
            raise
        from pyonednn_q.errors import LibraryError
        from pyonednn_q.shown import install

        message = f"{__name__}.{name} needs the package {package}: {install('torch')}"
        raise LibraryError(message) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
