"""Samples of a model's inputs in files, as batches: what ``pyonednn-q quantize --data`` reads."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import islice
from pathlib import Path

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.inspection.layer_file import named_arrays
from pyonednn_q.shown import shown

__all__ = ["FORM", "SampleFiles"]

_ENDS = (".npz", ".npy")
_MOST_BYTES = 1 << 32  # of a file's arrays
FORM = """\
Samples lie in a file that numpy.savez wrote, arrays by the names of the model's inputs, or in one
that numpy.save wrote, of a model with one input; or in a folder of such files, which are read in
the order of their names. The first dim of an array runs over samples; an array that has a dim less
than the input is one sample. Files may differ in all lengths that the model leaves open. Where
inputs begin with different lengths, as states do, a file is one batch, in the model's dims."""


class SampleFiles:
    """Samples in files, read anew each time that somebody iterates.

    Parameters
    ----------
    path : Path
        A .npz or .npy file, or a folder of them.
    graph : Graph
        The model.
    batch : int, optional
        Samples of a batch. None: what the model says, or 1.

    Attributes
    ----------
    batch : int
        Samples of a batch; the last one of a file has fewer where the model leaves that open.
    is_by_file : bool
        Whether a file is one batch, as inputs begin with different lengths.

    Raises
    ------
    ArgumentError
        No such files; a batch that is not the model's.
    """

    def __init__(self, path: Path, graph: Graph, batch: int | None = None) -> None:
        self._dims: Mapping[str, tuple[int | str, ...]] = {
            name: value.lengths or value.dims or () for name, value in graph.inputs.items()
        }
        self._types = {name: value.dtype for name, value in graph.inputs.items()}
        fixed = {each[0] for each in self._dims.values() if each and isinstance(each[0], int)}
        is_open = any(each and isinstance(each[0], str) for each in self._dims.values())
        self.is_by_file = len(fixed) > 1 or (is_open and bool(fixed - {1}))
        if self.is_by_file and batch is not None:
            raise ArgumentError("--batch", str(batch), "none: a file is a batch of this model")
        self._fixed = None if self.is_by_file else next(iter(fixed), None)
        if self._fixed is not None and batch not in {None, self._fixed}:
            raise ArgumentError("--batch", str(batch), f"{self._fixed}, which the model says")
        self.batch = self._fixed or batch or 1
        self._files = _files(path)
        self._path = path
        self._most: int | None = None

    def first(self, most: int) -> SampleFiles:
        """Return the same files, of which at most so many samples are read, in whole batches."""
        fewer = copy(self)
        fewer._most = -(-most // self.batch)  # noqa: SLF001 - its own
        return fewer

    def __len__(self) -> int:
        """Return the number of batches, by the heads of the files alone."""
        count = sum(map(self._count, self._files))
        return count if self._most is None else min(count, self._most)

    def _count(self, file: Path) -> int:
        if self.is_by_file:
            return 1
        try:
            shapes = _shapes(file)
        except Exception:  # said when it is read
            return 0
        counts = [
            shape[0]
            for name, dims in self._dims.items()
            if len(shape := shapes.get(name, shapes.get("", ()))) == len(dims) > 0
        ]
        samples = max(counts, default=1)
        return samples // self._fixed if self._fixed else -(-samples // self.batch)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Give inputs by name, a batch after the other.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the file and the input; no batch at all.
        """
        is_empty = True
        for each in islice(self._all(), self._most):
            is_empty = False
            yield each
        if is_empty:
            wanted = f"at least {self.batch} samples, the model's batch, in a file"
            raise ArgumentError("--data", f"too few in {shown(str(self._path))}", wanted)

    def _all(self) -> Iterator[dict[str, Array]]:
        for file in self._files:
            arrays = self._checked(file, self._read(file))
            if self.is_by_file:
                yield arrays
                continue
            counts = {len(array) for array in arrays.values() if array.ndim}
            for start in range(0, max(counts, default=1), self.batch):
                part = {
                    name: np.ascontiguousarray(array[start : start + self.batch])
                    if array.ndim
                    else array
                    for name, array in arrays.items()
                }
                has_all = all(len(array) == self._fixed for array in part.values() if array.ndim)
                if self._fixed is None or has_all:
                    yield part

    def _read(self, file: Path) -> dict[str, Array]:
        if file.suffix == ".npz":
            return named_arrays(file, max_bytes=_MOST_BYTES)
        if len(self._dims) > 1:
            wanted = f"a .npz file with {shown(sorted(self._dims))}"
            raise ArgumentError(str(file), "one array", wanted)
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (EOFError, ValueError) as error:
            raise ArgumentError(str(file), shown(str(error)), "what numpy.save writes") from None
        if not isinstance(array, np.ndarray):
            raise ArgumentError(str(file), "several arrays", "what numpy.save writes")
        return dict.fromkeys(self._dims, np.asarray(array))

    def _checked(self, file: Path, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return the inputs of a file, each with a dim of samples."""
        known = {}
        for name, dims in self._dims.items():
            argument = f"{file}: {shown(name)}"
            if name not in arrays:
                got = f"nothing, beside {shown(sorted(arrays))}"
                raise ArgumentError(argument, got, "an array of that name, an input's")
            array = _typed(argument, arrays[name], self._types[name])
            first = 0 if self.is_by_file else 1
            if array.ndim == len(dims) - first and not self.is_by_file:
                array = array[np.newaxis]
            is_alike = array.ndim == len(dims) and all(
                isinstance(wanted, str) or length == wanted
                for length, wanted in zip(array.shape[first:], dims[first:], strict=True)
            )
            if not is_alike or not array.size:
                lead = [] if self.is_by_file else ["samples"]
                wanted = ", ".join([*lead, *(str(each) or "?" for each in dims[first:])])
                raise ShapeError(argument, str(array.shape), f"({wanted})" if dims else "a number")
            known[name] = array
        counts = {len(array) for array in known.values() if array.ndim}
        if len(counts) > 1 and not self.is_by_file:
            got = ", ".join(f"{shown(name)} {array.shape}" for name, array in known.items())
            raise ShapeError(str(file), got, "as many samples of each input")
        return known


def _files(path: Path) -> list[Path]:
    """Return the files of samples, in order."""
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in _ENDS)
        if not files:
            raise ArgumentError("--data", f"nothing of the kind in {path}", ".npz or .npy files")
        return files
    if path.suffix not in _ENDS or not path.exists():
        got = shown(str(path)) + ("" if path.exists() else ", which is not there")
        raise ArgumentError("--data", got, "a .npz or .npy file, or a folder of them")
    return [path]


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a file's arrays, of which the heads are read; "": the only array's."""
    if file.suffix == ".npy":
        return {"": np.load(file, mmap_mode="r", allow_pickle=False).shape}
    shapes = {}
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                is_first = np.lib.format.read_magic(member) == (1, 0)
                head = "read_array_header_1_0" if is_first else "read_array_header_2_0"
                shapes[name.removesuffix(".npy")] = getattr(np.lib.format, head)(member)[0]
    return shapes


def _typed(argument: str, array: Array, dtype: str) -> Array:
    """Return an array of the input's type; float64, which NumPy makes, becomes another float."""
    if array.dtype.name == dtype:
        return array
    if array.dtype == np.float64 and dtype in {"float32", "float16"}:
        return array.astype(dtype)
    raise DTypeError(argument, str(array.dtype), dtype)
