"""The cache of operators, empty for tests that count what is in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyonednn_q.ops.functional import (
    operator_cache_clear,
    operator_cache_info,
    operator_cache_limit,
)


@pytest.fixture
def empty_cache() -> Iterator[None]:
    limit = operator_cache_info().limit
    operator_cache_clear()
    yield
    operator_cache_limit(limit)
    operator_cache_clear()
