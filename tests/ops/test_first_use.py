"""What a first use of an operator leads a reader through: no more than it did; nothing later."""

from __future__ import annotations

import pytest

from pyonednn_q.native import runtime
from support.children import run_child
from walk import counts

# To be lowered with each step. With VNNI 251 functions, 43 files and 34 nouns were measured; AMX,
# which was not, may ask in a way more.
MOST = {"functions": 263, "files": 45, "nouns": 35}


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, int]]:
    outcome = run_child(counts)
    assert not outcome.crashed
    by_call: dict[str, dict[str, int]] = outcome.value
    return by_call


@pytest.mark.skipif(not runtime.isa().has_vnni(), reason="without VNNI it asks in more ways")
def test_a_first_use_grows_no_longer(found: dict[str, dict[str, int]]) -> None:
    (use,) = (name for name in found if name.startswith("a first use"))
    assert {what: found[use][what] for what in MOST if found[use][what] > MOST[what]} == {}


def test_a_warm_call_leads_nowhere(found: dict[str, dict[str, int]]) -> None:
    for name in ("conv(src), every next", "conv(src), float source, every next"):
        assert found[name]["calls"] == 0
