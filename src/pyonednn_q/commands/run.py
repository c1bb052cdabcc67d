"""``pyonednn-q run``: run an ONNX model on arrays.

Inputs come from a file that numpy.savez wrote, by their names; outputs go to another. Dims that the
model leaves open are those of the inputs.

pyonednn-q run model.onnx --input x.npz --output y.npz
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.commands.words import reading_of
from pyonednn_q.dtypes import Array
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

__all__ = ["run"]

_ENDS = ("least", "mean", "greatest")


def run(options: argparse.Namespace) -> int:
    """Run the model; write its outputs, or print a line for each."""
    from pyonednn_q.models.model_file import arrays_of, inputs_of, read

    output: Path | None = options.output
    arrays = None if options.input is None else arrays_of(options.input)
    file = read(options.model, arrays, **reading_of(options))
    inputs = inputs_of(file.graph.inputs, arrays, options.seed)
    outputs = file.run(inputs)
    if output is not None:
        _write(output, outputs)
    if options.json:
        print(json.dumps([_plain(name, array) for name, array in outputs.items()], indent=1))
    elif output is None:
        print(_table(outputs).text())
    return 0


def _write(path: Path, outputs: Mapping[str, Array]) -> None:
    """Write a regular file completely or not at all; write other files directly."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            _save(stream, outputs)
        return
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=".", suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as stream:
            _save(stream, outputs)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _save(stream: Any, outputs: Mapping[str, Array]) -> None:  # noqa: ANN401 - a binary stream
    import zipfile

    # numpy.savez takes names as keywords: a model may have one called "file".
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _table(outputs: Mapping[str, Array]) -> Table:
    columns = [Column("output"), Column("type"), Column("dims")]
    columns += [Column(name, right=True) for name in _ENDS]
    cells = [
        [name, str(a.dtype), "x".join(map(str, a.shape)), *_ends(a)] for name, a in outputs.items()
    ]
    return Table(columns, [list(map(printable, row)) for row in cells])


def _plain(name: str, array: Array) -> dict[str, object]:
    ends = dict(zip(_ENDS, _numbers(array), strict=False))
    finite = {key: value if np.isfinite(value) else str(value) for key, value in ends.items()}
    return {"name": name, "dtype": str(array.dtype), "dims": list(array.shape), **finite}


def _ends(array: Array) -> list[str]:
    return [f"{each:.6g}" for each in _numbers(array)] or ["-", "-", "-"]


def _numbers(array: Array) -> list[float]:
    """Return the least value, the mean and the greatest; nothing where there are none."""
    if not array.size or array.dtype.kind not in "biuf":
        return []
    values = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return [float(each) for each in (values.min(), values.mean(), values.max())]
