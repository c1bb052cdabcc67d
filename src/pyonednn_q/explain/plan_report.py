"""Report: a description and its plan, as text, JSON or an HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyonednn_q.argument import flag, instance
from pyonednn_q.compose.composer import NO_RULES
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.description import Description
from pyonednn_q.report.page import html_page, paragraphs
from pyonednn_q.report.told import Told

__all__ = ["Report"]

SCHEMA = 1


@dataclass(frozen=True, slots=True, repr=False)
class Report(Told):
    """Report of a layer.

    Attributes
    ----------
    description : Description
        The layer as it was described.
    plan : Plan
        Plan by the composer.
    naive : Plan or None
        The same chain lowered step by step; None where that is no alternative: rounded as ONNX
        does, the form is fixed.
    """

    description: Description
    plan: Plan
    naive: Plan | None

    @classmethod
    def of(cls, description: Description, *, strict: bool = False) -> Report:
        """Compose, and lower step by step for comparison."""
        instance("description", description, Description)
        naive = None if description.exact_rounding else description.plan(rules=NO_RULES)
        return cls(description, description.plan(strict=strict), naive)

    def text(self, *, trace: bool = False, benchdnn: bool = False) -> str:
        """Return the plan as a table, with the trace in short, or in full."""
        flag("trace", trace)
        flag("benchdnn", benchdnn)
        head = [self.description.title] if self.description.title else []
        parts = ["\n".join([*head, *self._about()]), str(self.plan)]
        became = "; ".join(map(str, self.plan.became))
        beside = [*self._beside(), *([f"what became of the chain: {became}"] if became else [])]
        parts.append("\n".join(beside))
        parts.append(self.plan.explain() if trace else "\n".join(self._events()))
        if benchdnn:
            parts.append(self._benchdnn())
        return "\n\n".join(part for part in parts if part)

    def json(self) -> str:
        """Return everything as JSON; `Plan.from_json` reads the value of ``plan``."""
        process = self.description.facts.process
        where = None if process is None else {"version": process.version, "isa": process.isa.text()}
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "title": self.description.title,
            "problem": self.description.problem.text(),
            "process": where,
            "dst_in_real_units": str(self.description.reading).replace("x", "dst"),
            "plan": json.loads(self.plan.to_json()),
            "step_by_step": None
            if self.naive is None
            else {"post_ops": len(self.naive.post_ops), "cost": self.naive.cost},
            "benchdnn": self._benchdnn(),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def html(self) -> str:
        """Return a page that needs nothing else."""
        title = self.description.title or self.plan.facts.text()
        lines = paragraphs((*self._about(), *self._beside()))
        return html_page(title, f"{lines}\n{self.plan._repr_html_()}")

    def _about(self) -> list[str]:
        process = self.description.facts.process
        if process is None:
            where = "holds for every oneDNN from 3.7 on, on every instruction set"
        else:
            version = ".".join(map(str, process.version))
            where = f"holds for oneDNN {version} on {process.isa.text()}"
        return [self.description.problem.text(), where]

    def _beside(self) -> list[str]:
        lines = []
        if self.naive is not None:
            count = len(self.naive.post_ops)
            ops = f"{count} post-op{'' if count == 1 else 's'}"
            left = "" if self.naive.is_whole else ", and steps left over"
            lines.append(f"step by step: {ops}{left}, estimated cost {self.naive.cost:.2f}")
        if self.description.reading:
            reading = str(self.description.reading).replace("x", "dst")
            lines.append(f"in real units: {reading}")
        return lines

    def _events(self) -> list[str]:
        records = self.plan.records
        fired = [record for record in records if record.fired]
        if not records:
            return ["nothing was rewritten"]
        lines = [f"{len(fired)} rewritten, {len(records) - len(fired)} refused (--trace tells all)"]
        for record in records:
            mark = "+" if record.fired else "-"
            remarks = "; ".join(text for _, text in record.remarks())
            lines.append(
                f"  {mark} {record.rule} [{record.exactness}]" + (remarks and f": {remarks}")
            )
        return lines

    def _benchdnn(self) -> str:
        try:
            return self.plan.benchdnn(self.description.problem)
        except ArgumentError as error:
            return f"benchdnn cannot say this: {error}"
