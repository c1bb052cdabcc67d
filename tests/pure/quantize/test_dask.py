"""Calibration spread over two processes by Dask is one pass over all data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pyonednn_q.quantize import ESTIMATORS, collect, estimator, merged

pytest.importorskip("dask.bag", reason="Dask is not installed: pip install 'pyonednn_q[dask]'")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(dashboard_address=None, **options) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.parametrize("kind", sorted(ESTIMATORS))
def test_a_bag_of_batches_gives_the_range_of_one_pass(client: Any, kind: str) -> None:
    import dask.bag

    assert len(client.scheduler_info()["workers"]) == 2
    data = np.random.default_rng(0).laplace(size=(240, 3, 4))
    batches = np.array_split(data, 24)
    bag = dask.bag.from_sequence(batches, npartitions=6)

    def part(batches_of_one: Any) -> Any:
        found = collect(lambda x: {"x": x, "y": x * 2.0}, batches_of_one, lambda: estimator(kind))
        return [found]

    spread = bag.map_partitions(part).fold(merged, initial={}).compute()
    one = collect(lambda x: {"x": x, "y": x * 2.0}, batches, lambda: estimator(kind))
    for name in ("x", "y"):
        np.testing.assert_array_equal(spread[name].range(), one[name].range())
