"""The fitted network and both ways of running it, made once."""

from __future__ import annotations

import pytest

from pyonednn_q.demo import experiment


@pytest.fixture(scope="session")
def models() -> experiment.Models:
    pytest.importorskip("sklearn", reason="the extra `demo` is not installed")
    return experiment.make_models()


@pytest.fixture(scope="session")
def findings(models: experiment.Models) -> experiment.Findings:
    return experiment.compare(models)
