"""Standing: other runtimes in the report, as columns, totals and what they refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyonednn_q.bench.row import OURS, Row
from pyonednn_q.bench.run import Run
from pyonednn_q.tables import Column

if TYPE_CHECKING:
    Cell = Callable[[Run, Row], str]

__all__ = ["columns", "legend", "totals"]


def columns(run: Run, time: Callable[[float], str]) -> Iterator[tuple[Column, Cell]]:
    """Yield a column of time and one of ratio for each peer, after our own call's."""
    if not run.peers:
        return
    yield Column("call us", right=True), _time(OURS, time)
    for peer in run.peers:
        yield Column(f"{peer} us", right=True), _time(peer, time)
        yield Column(f"over {peer}", right=True), _lead(peer)


def totals(run: Run) -> Iterator[str]:
    """Yield one line per type and peer: the geometric mean of ratios, and who was first."""
    for dtype in dict.fromkeys(row.dtype for row in run.rows):
        for peer in run.peers:
            rows = [row for row in run.rows if row.dtype == dtype and row.lead(peer) is not None]
            left_out = [row.name for row in rows if _is_disturbed(row, peer)]
            all_leads = [row.lead(peer) for row in rows if not _is_disturbed(row, peer)]
            leads = [lead for lead in all_leads if lead is not None]
            if left_out:
                yield f"{dtype} over {peer}: left out, being disturbed: {', '.join(left_out)}"
            if not leads:
                continue
            mean = math.exp(sum(math.log(lead.value) for lead in leads) / len(leads))
            faster = sum(lead.is_significant and lead.value > 1 for lead in leads)
            slower = sum(lead.is_significant and lead.value < 1 for lead in leads)
            yield (
                f"{dtype} over {peer}: {mean:.2f}x (geometric mean of {len(leads)}; "
                f"faster in {faster}, slower in {slower}, undecided in "
                f"{len(leads) - faster - slower})"
            )


def legend(run: Run) -> Iterator[str]:
    """Yield what the columns mean, the versions, and why a peer has no time."""
    if not run.peers:
        return
    versions = ", ".join(f"{peer} {run.metadata.get(peer, '?')}" for peer in run.peers)
    yield (
        "call us: our prepared call from Python; each runtime in a process of its own on the same "
        f"arrays, in turn, caches warm; over ...: its time in parts of ours ({versions})"
    )
    why: dict[tuple[str, str], int] = {}
    for row in run.rows:
        for rival in row.rivals:
            if rival.refused:
                key = (rival.name, rival.refused)
                why[key] = why.get(key, 0) + 1
    for (name, refused), count in why.items():
        yield f"{name} {refused} ({count} row{'s' if count > 1 else ''})"


def _time(name: str, time: Callable[[float], str]) -> Cell:
    def cell(_: Run, row: Row) -> str:
        rival = row.rival(name)
        return time(rival.median_us) if rival is not None and rival.samples_us else "-"

    return cell


def _lead(peer: str) -> Cell:
    def cell(_: Run, row: Row) -> str:
        lead = row.lead(peer)
        if lead is not None and _is_disturbed(row, peer):
            return "disturbed"
        return "" if lead is None else str(lead)

    return cell


def _is_disturbed(row: Row, peer: str) -> bool:
    rivals = (row.rival(name) for name in (OURS, peer))
    return any(rival is not None and rival.is_disturbed for rival in rivals)
