"""What became of a case of the standard: right, refused by a typed error, or wrong."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import pyonednn_q as pq
from support.standard.cases import StandardCase, Values, forms

Array = np.ndarray[Any, Any]
SEEDED = np.random.RandomState

# Why a case is refused: what its error says, and the words of the page.
REASONS = {
    r"onnx.reference does not look at|than onnx.reference takes": "what `onnx.reference` ignores",
    r"ignore_index below 0": "ignore_index below 0: runtimes disagree",
    r"local windows": "local windows: nobody compared them",
    r"qk_matmul_output": "qk_matmul_output: runtimes disagree",
    r"mode max": "mode max: runtimes disagree",
    r"nobody compared crops": "crops: nobody compared them",
    r"antialias of": "antialias of some kinds: runtimes disagree",
    r"random numbers of training": "random numbers of training",
    r"nobody compared": "nobody compared it with another runtime's",
    r"a subgraph; numbers": "a subgraph",
    r"a Scan of opset 8": "a Scan of opset 8",
    r"is a sequence_type": "a sequence",
    r"is a optional_type|of 'Optional'": "an optional value",
    r": text; numbers do": "text",
    r"with a NumPy dtype": "inputs of 4 bits and less",
    r"no whole length": "no whole length: runtimes disagree",
    r"half_pixel_symmetric: runtimes": "half_pixel_symmetric of the nearest: runtimes disagree",
    r"No registered implementation": "`onnx.reference` has none",
}


@dataclass
class StandardVerdict:
    """What became of a case. right, refused (by which reason) and wrong (in which words), by form.

    unknown: what is refused for no reason that is listed. alone: what `onnx.reference` makes of it.
    """

    right: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    alone: str = ""

    @property
    def reason(self) -> str:
        """Why it is refused as it is; empty where it runs."""
        return self.refused.get("as it is", "")


def judged(case: StandardCase) -> StandardVerdict:
    """Run a case in all of its forms, and by `onnx.reference` alone."""
    verdict = StandardVerdict()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form, model, feeds in forms(case):
            try:
                outputs = _run(model, feeds)
            except pq.Error as error:
                why = f"{type(error).__name__}: {error}"
                known = [words for part, words in REASONS.items() if re.search(part, why)]
                verdict.refused[form] = known[0] if known else why
                if not known:
                    verdict.unknown.append(f"{case.name}, {form}: {why}")
                continue
            except Exception as error:  # which must not be
                verdict.wrong.append(f"{case.name}, {form}: {type(error).__name__}: {error}"[:300])
                continue
            apart = _apart(case, outputs)
            if apart:
                verdict.wrong.append(f"{case.name}, {form}: {apart}")
            else:
                verdict.right.append(form)
        try:
            # onnx.reference draws anew each time, and sometimes what the case has.
            with patch("numpy.random.RandomState", lambda seed=7: SEEDED(seed)):
                outputs = ReferenceEvaluator(case.model).run(None, case.feeds)
            verdict.alone = _apart(case, outputs)
        except Exception as error:  # of onnx.reference
            verdict.alone = f"{type(error).__name__}: {error}"[:300]
    return verdict


def _run(model: onnx.ModelProto, feeds: Values) -> list[Array]:
    dims = {name: each.shape for name, each in feeds.items() if isinstance(each, np.ndarray)}
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model.SerializeToString(), dims=dims)))
    results = ready.run(feeds)
    return [results[each.name] for each in model.graph.output]


def _apart(case: StandardCase, outputs: Sequence[Any]) -> str:
    """Say in what outputs differ from those of the standard; empty where they do not."""
    for info, ours, right in zip(case.model.graph.output, outputs, case.expected, strict=True):
        if not isinstance(right, np.ndarray):
            return f"{info.name} is no tensor"
        array = np.asarray(ours)
        is_text = right.dtype.kind in "OSU" and array.dtype.kind in "OSU"
        if array.shape != right.shape or not (is_text or array.dtype == right.dtype):
            got = f"{array.dtype}{list(array.shape)}"
            return f"{info.name}: {got} where {right.dtype}{list(right.shape)} is right"
        if is_text or right.dtype.kind in "bc":
            is_same = np.array_equal(array, right) or (
                right.dtype.kind == "c" and np.allclose(array, right, case.rtol, case.atol)
            )
        else:
            both = (array.astype(np.float64), right.astype(np.float64))
            if right.dtype.kind in "iu":
                both = (array, right)
            is_same = np.allclose(*both, case.rtol, case.atol, equal_nan=True)
        if not is_same:
            return f"{info.name}: other values"
    return ""
