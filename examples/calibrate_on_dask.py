"""Calibrate on a data set that outgrows one process: partial states merge, Dask moves them.

    pip install 'pyonednn_q[dask]'
    python examples/calibrate_on_dask.py

A bag of batches stands for files, object storage or a table; each partition is read where it lies.
Only states travel: two numbers a sample, or the distinct values and their counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from pyonednn_q.quantize import collect, estimator, merged

Array: TypeAlias = np.ndarray[Any, Any]


def network(images: Array) -> dict[str, Any]:
    """Return the tensors that are quantized; here an input and its ReLU."""
    return {"images": images, "relu": np.maximum(images, 0.0)}


def calibrated(batches: Iterable[Any]) -> list[Any]:
    """Return the state that one partition's batches leave."""
    return [collect(network, batches, lambda: estimator("mse"), progress=False)]


def main() -> None:
    """Compare two processes with one pass."""
    data = np.random.default_rng(0).laplace(size=(1024, 3, 8, 8))
    batches = np.array_split(data, 64)
    one = collect(network, batches, lambda: estimator("mse"))
    print("one pass:", *(f"{float(end):.4f}" for end in one["images"].range()))
    try:
        import dask.bag
        from distributed import Client, LocalCluster
    except ImportError:
        print("Dask is not installed: pip install 'pyonednn_q[dask]'")
        return
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        bag = dask.bag.from_sequence(batches, npartitions=8)
        spread = bag.map_partitions(calibrated).fold(merged, initial={}).compute()
    print("two processes:", *(f"{float(end):.4f}" for end in spread["images"].range()))
    assert spread["images"].range() == one["images"].range()


if __name__ == "__main__":
    main()
