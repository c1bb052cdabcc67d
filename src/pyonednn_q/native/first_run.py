"""First run: a new primitive run once on seeded codes, and a sample of its result looked at.

Exact integers are compared with what the primitive sums, and what float32 leaves room for with what
it stores: the meaning is that of `check`, as in `trial`, which compares everything. A primitive is
looked at once in a process: what is kept is its problem, attributes, implementation and number of
threads.
"""

from __future__ import annotations

import logging
import pickle
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyonednn_q.check.places import MOST_MACS
from pyonednn_q.errors import ArgumentError, KnownWrongError, OneDNNError, UnsupportedError
from pyonednn_q.faults import hunted
from pyonednn_q.native import child, runtime
from pyonednn_q.native.drawn import NoModelHereError
from pyonednn_q.native.runtime import Lock
from pyonednn_q.native.sampled_plain import SampledValues
from pyonednn_q.native.sampled_sums import SampledSums
from pyonednn_q.primitive.dense_facts import DENSE
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyonednn_q.native.prepared import Prepared
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

SelfCheck: TypeAlias = Literal["auto"] | bool
"""Look at a sample of each new primitive's result; compare everything; or nothing."""

LOGGER = logging.getLogger("pyonednn_q")
FOUND = "wrong on seeded codes"  # so reasons begin

_KEPT = 4096  # primitives
# A run that takes about a millisecond; more costs more than a look may, where it is not needed.
_MOST_BYTES = 2**24

# What a process runs that may crash.
_ALONE = """
import pickle, sys
from pyonednn_q.native import runtime
from pyonednn_q.native.preparation import prepare
arguments, threads = pickle.load(sys.stdin.buffer)
runtime.set_num_threads(threads)
prepare(**arguments)
"""

_ran: set[tuple[str, str]] = set()
_looked: OrderedDict[int, str] = OrderedDict()
_lock = Lock()


def fault(
    prepared: Prepared,
    wei: Any,  # noqa: ANN401 - an array of any type, if at all
    bias: Any,  # noqa: ANN401
    values: Mapping[str, object],
    lost: Collection[int] = (),
) -> str:
    """Return the difference of a new primitive from its meaning; nothing where there is none.

    Parameters
    ----------
    prepared : Prepared
        The primitive, not yet used.
    wei, bias, values
        Arguments of `prepare`.
    lost : collection of int
        Output channels that were allowed to saturate: not compared.
    """
    if prepared.kind == "none" or is_spared(prepared.problem, prepared.impl):
        return ""
    threads = runtime.get_num_threads()
    # A number: problems of many shapes would take more memory than what is looked at.
    key = hash((prepared.problem, prepared.attr, prepared.impl, threads))
    with _lock.held:
        if key in _looked:
            return _looked[key]
    try:
        what = looked_at(prepared, wei, bias, values, lost)
    except (NoModelHereError, ArgumentError, MemoryError):
        return ""
    except OneDNNError as error:
        what = f"{error.call}: {error.status}"
    why = f"{FOUND}: {what}" if what else ""
    with _lock.held:
        _looked[key] = why
        while len(_looked) > _KEPT:
            _looked.popitem(last=False)
    if why:
        LOGGER.warning("%s", line(prepared.problem, prepared.attr, prepared.impl, what))
    return why


def crash(arguments: Mapping[str, object], impl: str, kind: str) -> str:
    """Return how a kernel's first run ends a process of its own; nothing where it does not.

    Not asked of a kernel that a hunt has run here, nor twice.

    Parameters
    ----------
    arguments : mapping
        Arguments of `prepare`, which can be pickled.
    impl, kind : str
        The implementation, and the kind of problem.
    """
    is_hunted = hunted.problems(runtime.facts(), kind, impl) > 0
    with _lock.held:
        if is_hunted or (kind, impl) in _ran:
            return ""
    options = {"implementation": impl, "allow_reference": True, "saturation": "allow"}
    question = pickle.dumps(({**arguments, **options}, runtime.get_num_threads()))
    how = child.ending(_ALONE, question)
    if how:
        return f"{FOUND}: its first run ended a process of its own by {how}"
    with _lock.held:
        _ran.add((kind, impl))
    return ""


def checked_self_check(value: object) -> SelfCheck:
    """Return the option as it is kept; refuse another."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and str.__str__(value) == "auto":
        return "auto"
    raise ArgumentError("self_check", shown(value), "'auto', True or False")


def with_faults(
    error: UnsupportedError, problem: Problem, attr: Attr, passed: Mapping[str, str]
) -> UnsupportedError:
    """Return an error that says which implementations were found wrong, if any was."""
    faults = {impl: why for impl, why in passed.items() if why.startswith(FOUND)}
    if not faults:
        return error
    lines = "; ".join(line(problem, attr, impl, why) for impl, why in faults.items())
    detail = f"oneDNN computes this wrong, as self_check saw; please report: {lines}"
    return KnownWrongError(
        "refused",
        "choosing an implementation",
        f"{problem.text()} {attr.text()}".rstrip(),
        detail,
        guards=error.guards if isinstance(error, KnownWrongError) else (),
        explain=partial(tuple, faults.items()),
    )


def line(problem: Problem, attr: Attr, impl: str, what: str) -> str:
    """Return the report of a wrong primitive, in one line."""
    isa = runtime.isa()
    version = ".".join(map(str, runtime.version()))
    features = "+".join(isa.features())
    return (
        f"WRONG {version} {runtime.threading_runtime()} {isa.text()} [{features}] "
        f"{runtime.get_num_threads()} threads: {what} on {impl}: "
        f"{problem.text()} {attr.text()}".rstrip()
    )


def is_spared(problem: Problem, impl: str) -> bool:
    """Tell whether a primitive is not looked at: its kernel was hunted here, and a run is long."""
    macs = problem.macs if isinstance(problem, DENSE) else 0
    nbytes = sum(spec.nbytes for name, spec in problem.tensors.items() if name != "wei")
    if macs <= MOST_MACS and nbytes <= _MOST_BYTES:
        return False
    return hunted.problems(runtime.facts(), problem.kind, impl) >= hunted.ENOUGH


def standing(problem: Problem, impl: str) -> str:
    """Return what self_check="auto" does with a primitive, in words."""
    count = hunted.problems(runtime.facts(), problem.kind, impl)
    hunt = f"a hunt ran this kernel here on {count} problems without a finding"
    if is_spared(problem, impl):
        return f"self_check: not looked at, for a run is long and {hunt}"
    return f"self_check: the first run is looked at; {hunt if count else 'not hunted here'}"


def looked_at(
    prepared: Prepared,
    wei: Any,  # noqa: ANN401
    bias: Any,  # noqa: ANN401
    values: Mapping[str, object],
    lost: Collection[int] = (),
) -> str:
    """Run a primitive, and return how it differs; as `fault`, but always, and without a line.

    Raises
    ------
    NoModelHereError
        Something that is not judged.
    """
    if isinstance(prepared.problem, DENSE):
        return SampledSums(prepared, prepared.problem, wei, bias, values).differs(lost)
    return SampledValues(prepared, prepared.problem, wei, values).differs()


def forget() -> None:
    """Look at every primitive once more."""
    with _lock.held:
        _looked.clear()
        _ran.clear()
