"""A decoder of more than 100 million weights, token after token, beside onnxruntime in float32.

Each form of it says, behind the tokens that float32 chose, what comes next: float32, then weights
of few bits, then sources as codes, then a cache of codes, one thing after the other. For each the
time of a prompt and of a token, in turn with onnxruntime's on the same weights, and how far logits
are off. For every token that is another one: by how much float32 prefers its own, and how much
each of these things moved the two logits towards each other, which together is all of it. Sums in
another order alone may move a logit by 1e-3 of their deviation: more is a fault, and ends the run
with 1. Prints Markdown. Weights are random: such a model is in doubt more often than a trained one.
Needs onnx and onnxruntime. Run ``python benchmarks/decoder_tokens.py --threads 1``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from decoder_models import SMALL, DecoderSizes, Session, decoder, greedy

import pyonednn_q as pq

Array = np.ndarray[Any, Any]
Step = Callable[[Array], Array]
PAUSE = 0.02  # seconds: threads that the last runtime left spinning go to sleep


ROUNDING = 1e-3  # parts of the deviation of logits that sums in another order may move one by


@dataclass(frozen=True)
class DecoderForm:
    """One form of the decoder; `adds`: what it has that the one before has not."""

    name: str
    bits: int  # of weights, 0 of float32
    adds: str
    options: dict[str, Any] | None = None  # None: onnxruntime


FORMS = (
    DecoderForm("floats", 0, "order", {"cache": "f32"}),
    DecoderForm("floats, a cache of codes", 0, "cache", {"cache": "s8"}),
    DecoderForm("8 bits, floats", 8, "weights", {"cache": "f32", "blocks": "f32"}),
    DecoderForm("8 bits, codes", 8, "sources", {"cache": "f32"}),
    DecoderForm("8 bits, codes, a cache of codes", 8, "cache", {"cache": "s8"}),
    DecoderForm("8 bits, onnxruntime at level 4", 8, "theirs"),
    DecoderForm("4 bits, floats", 4, "weights", {"cache": "f32", "blocks": "f32"}),
    DecoderForm("4 bits, codes", 4, "sources", {"cache": "f32"}),
    DecoderForm("4 bits, codes, a cache of codes", 4, "cache", {"cache": "s8"}),
    DecoderForm("4 bits, onnxruntime at level 4", 4, "theirs"),
)
LADDER = ("order", "weights", "sources", "cache")


def taught(step: Step, prompt: Array, tokens: Array) -> Array:
    """Return logits (tokens, words) behind a prompt and each of the tokens but the last."""
    rows = [step(prompt)[0, -1]]
    rows += [step(token.reshape(1, 1))[0, -1] for token in tokens[:-1]]
    return np.array(rows)


def milliseconds(
    steps: list[Step], tokens: Array, rounds: int, reset: Callable[[], None]
) -> list[float]:
    """Return the fastest call of each, called in turn."""
    best = [np.inf] * len(steps)
    for _ in range(rounds):
        for at, step in enumerate(steps):
            reset()
            time.sleep(PAUSE)
            start = time.perf_counter()
            step(tokens)
            best[at] = min(best[at], (time.perf_counter() - start) * 1e3)
    return best


def moved(name: str, ladder: dict[str, Array], real: Array) -> Iterator[str]:
    """Yield a row for each token that the last of some forms has another of, and what did that."""
    spread = real.std()
    for at, wanted in enumerate(real):
        mine, theirs = (int(each.argmax()) for each in ([*ladder.values()][-1][at], wanted))
        if mine == theirs:
            continue
        margin = (wanted[theirs] - wanted[mine]) / spread
        parts, before = [], -margin
        for each in LADDER:
            if each in ladder:
                row = ladder[each][at]
                behind = (row[mine] - row[theirs]) / spread
                parts.append(f"{behind - before:.4f}")
                before = behind
            else:
                parts.append("")
        yield f"| {name} | {at} | {mine}, not {theirs} | {margin:.4f} | {' | '.join(parts)} |"


def times_of(ours: Any, theirs: Session, prompt: Array, rounds: int) -> list[str]:  # noqa: ANN401
    """Return milliseconds of a prompt and of a token behind it, of both, as text."""
    pair = [ours] if ours is theirs else [ours, theirs]

    def reset() -> None:
        for each in pair:
            each.reset()

    whole = milliseconds(pair, prompt, rounds, reset)
    reset()
    for each in pair:
        each(prompt)
    one = milliseconds(pair, prompt[:, :1], rounds, lambda: None)
    return [f"{a:.1f}, {b:.2f}" for a, b in zip(whole, one, strict=True)]


class Contest:
    """The forms of one decoder, one after the other, and what float32 says of its tokens."""

    def __init__(self, told: argparse.Namespace) -> None:
        self.sizes = SMALL if told.small else DecoderSizes()
        self.rounds, self.threads = told.rounds, told.threads
        shape = (1, told.prompt)
        self.prompt = np.random.default_rng(7).integers(0, self.sizes.words, shape)
        self.float32 = Session(decoder(self.sizes), self.sizes, self.threads)
        chosen, rows = zip(*greedy(self.float32, self.prompt, told.tokens), strict=True)
        self.tokens, self.real = np.array(chosen, np.int64), np.array(rows)
        self._theirs = (0, self.float32)  # with the bits of its weights
        self._ladder: dict[str, Array] = {}

    def measured(self, form: DecoderForm) -> tuple[str, list[str], float]:
        """Return a row of a form, those of its other tokens, and how far logits are off."""
        model = decoder(self.sizes, bits=form.bits)
        if form.bits != self._theirs[0]:
            session = Session(model, self.sizes, self.threads) if form.bits else self.float32
            self._theirs = form.bits, session
        theirs = self._theirs[1]
        theirs.reset()
        ours: Any = theirs
        if form.options is not None:
            capacity = self.prompt.size + self.tokens.size
            ours = pq.Decoder(model, capacity=capacity, **form.options)
        logits = taught(ours, self.prompt, self.tokens)
        below = LADDER[: LADDER.index(form.adds)] if form.adds in LADDER else ()
        kept = [name for name in below if form.bits or name == "order"]
        ladder = {name: self._ladder[name] for name in kept} | {form.adds: logits}
        if form.options is not None:
            self._ladder |= ladder
        some = [*moved(form.name, ladder, self.real)] if form.adds == "cache" else []
        off = np.abs(logits - self.real) / self.real.std()
        same = int((logits.argmax(1) == self.tokens).sum())
        times = " | ".join(times_of(ours, theirs, self.prompt, self.rounds))
        row = f"| {form.name} | {same} of {self.tokens.size} | {off.max():.4f}, {off.mean():.4f} "
        return f"{row}| {times} |", some, float(off.max())


def main() -> int:
    """Print both tables; return 1 where sums in another order moved more than they may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are")
    parser.add_argument("--tokens", type=int, default=64, help="how many follow the prompt")
    parser.add_argument("--prompt", type=int, default=128, help="how many tokens it has")
    parser.add_argument("--rounds", type=int, default=8, help="calls of each that are timed")
    parser.add_argument("--small", action="store_true", help="a decoder of two small layers")
    told = parser.parse_args()
    if told.threads:
        pq.native.set_num_threads(told.threads)
    contest = Contest(told)
    print(f"{contest.sizes.weights / 1e6:.0f} million weights; a prompt of {told.prompt} tokens.\n")
    print("| form | tokens as float32's | logits off, largest and mean", end=" ")
    print("| ms a prompt, a token | onnxruntime, the same weights |\n|---|---:|---|---|---|")
    others, faults = [], 0
    for form in FORMS:
        row, some, off = contest.measured(form)
        print(row, flush=True)
        others += some
        faults += form.adds == "order" and off > ROUNDING
    print("\n| form | place | token | float32 prefers its own by", end=" ")
    print("| moved by order | weights | sources | cache |\n|---|---:|---|---:|---:|---:|---:|---:|")
    print("\n".join(others))
    return faults


if __name__ == "__main__":
    sys.exit(main())
