"""Plans are judged twice: by the formula alone, and on the library that is loaded."""

from __future__ import annotations

import pytest

from support.definitions.runs import Run, by_formula, on_primitive


@pytest.fixture(params=["formula", pytest.param("primitive", marks=pytest.mark.executed)])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a plan, either way."""
    return by_formula if request.param == "formula" else on_primitive
