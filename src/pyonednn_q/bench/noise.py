"""Is the machine quiet enough? Time that is stolen, other processes, drift of the peak."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Load", "warnings"]

_STOLEN = 0.01
BUSY = 0.1
_DRIFT = 0.1
SPREAD = 0.1
_NAMED = 6

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Load:
    """Clocks of the machine and of this process, in seconds since some time in the past.

    Attributes
    ----------
    all_s, idle_s, stolen_s : float
        Over all CPUs, as the kernel counts; 0 where it does not tell.
    own_s : float
        CPU time of this process, and of those it started that have ended.
    wall_s : float
        The wall clock.
    """

    all_s: float
    idle_s: float
    stolen_s: float
    own_s: float
    wall_s: float

    @classmethod
    def now(cls) -> Load:
        """Read the clocks."""
        times = os.times()
        try:
            first = _STAT.read_text().splitlines()[0]
        except OSError:
            first = ""
        return cls(*parse_stat(first), sum(times[:4]), time.monotonic())

    def since(self, before: Load) -> tuple[float, float]:
        """Return (stolen, others): parts of the CPUs' time since `before`.

        others is what neither idled, nor was stolen, nor was used by this process.
        """
        total = self.all_s - before.all_s
        if total <= 0:
            return 0.0, 0.0
        stolen = self.stolen_s - before.stolen_s
        own = self.own_s - before.own_s
        others = total - (self.idle_s - before.idle_s) - stolen - own
        return max(stolen / total, 0.0), max(others / total, 0.0)


def parse_stat(line: str) -> tuple[float, float, float]:
    """Return (all, idle, stolen) seconds of the first line of /proc/stat; zeros for anything else.

    Examples
    --------
    >>> parse_stat("cpu  100 0 50 800 50 0 0 25 0 0")
    (10.25, 8.5, 0.25)
    """
    words = line.split()
    if len(words) < 9 or words[0] != "cpu":
        return 0.0, 0.0, 0.0
    # user nice system idle iowait irq softirq steal; what follows is counted in user already.
    ticks = [int(word) for word in words[1:9]]
    hz = os.sysconf("SC_CLK_TCK")
    return sum(ticks) / hz, (ticks[3] + ticks[4]) / hz, ticks[7] / hz


def warnings(
    stolen: float,
    others: float,
    drift: float,
    spreads: list[float],
    disturbed: Sequence[str] = (),
    beyond_paper: Sequence[str] = (),
) -> tuple[str, ...]:
    """Give reasons to doubt the numbers, each with a remedy.

    Parameters
    ----------
    stolen, others : float
        Results of `Load.since`.
    drift : float
        Peak at the end over peak at the start, minus 1.
    spreads : list of float
        Distance of the quartiles over the median, for each row.
    disturbed : sequence of str
        Names of lines that something disturbed to the end.
    beyond_paper : sequence of str
        Rows that are faster than the peak on paper.
    """
    doubts = []
    if stolen > _STOLEN:
        doubts.append(
            f"the hypervisor took {stolen:.0%} of the CPU time (steal): other guests disturb; "
            "measure again later, or on a machine of your own"
        )
    if others > BUSY:
        doubts.append(
            f"other processes used {others:.0%} of the CPUs: stop them, or use fewer --threads"
        )
    if abs(drift) > _DRIFT:
        doubts.append(
            f"the machine's peak moved by {drift:+.0%} during the run (frequency, or a neighbour "
            "on the same core): compare rows of one line only"
        )
    if disturbed:
        named = ", ".join(disturbed[:_NAMED])
        more = f" and {len(disturbed) - _NAMED} more" if len(disturbed) > _NAMED else ""
        doubts.append(
            f"something disturbed {named}{more} each time: no ratio is given for them, and totals "
            "are without them; measure again when the machine is quiet"
        )
    if beyond_paper:
        doubts.append(
            f"{', '.join(beyond_paper[:_NAMED])} beyond the peak on paper: the clock rose above "
            "the one measured, or fewer cores are counted than ran"
        )
    wide = sum(spread > SPREAD for spread in spreads)
    if spreads and wide * 4 > len(spreads):
        doubts.append(
            f"{wide} of {len(spreads)} rows spread over more than {SPREAD:.0%} between their "
            "quartiles: raise --min-time"
        )
    return tuple(doubts)
