"""No usable library, no CPU, no memory: each call says why, in a process of its own."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import OneDNNError, OutOfMemoryError
from pyonednn_q.native import library, preparation, runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.primitive.problem import MatMulProblem
from support.fake_library import fake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CALLS = """
import json, os, sys
import numpy as np
import pyonednn_q as pq
from pyonednn_q import emulate as quantized

q = {"src_q": pq.QParams(0.5, 0, "u8"), "wei_q": pq.QParams(0.5, 0, "s8")}
wei, src = np.ones((4, 8), np.int8), np.ones((2, 4), np.uint8)
wei.flags.writeable = False
product = pq.MatMul(wei, **q)
dynamic = pq.MatMul(wei, src_q=pq.Dynamic("u8"), wei_q=q["wei_q"])
problem = pq.primitive.MatMulProblem.of((2, 4), (4, 8))
fq = pq.FakeQuantize(0, 2.55, 0, 2.55)
layer = pq.compose_layer(problem, np.ones((4, 8)), src_fq=fq, wei_levels=129)
calls = {
    "operator": lambda: product(src),
    "prepare": lambda: product.prepare(src.shape),
    "function": lambda: pq.matmul(src, wei, **q),
    "dynamic": lambda: dynamic(src.astype(np.float32)),
    "primitive": lambda: pq.prepare(problem, wei=wei),
    "layer": lambda: pq.prepare_layer(layer),
    "inspect": lambda: pq.inspect(product, src.shape),
    "add": lambda: quantized.add(
        src, src, a_q=q["src_q"], b_q=q["src_q"], dst_q=q["src_q"], dialect="onednn"
    ),
}
said = {name: [] for name in calls}
for _ in range(3):
    for name, call in calls.items():
        try:
            call()
            said[name].append("")
        except pq.errors.LibraryError as error:
            said[name].append(str(error))
exec(sys.argv[1])
print("\\n" + json.dumps(said))
"""


def said(
    then: str = "", cwd: Path | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return what each of several calls says, three times, in a fresh process."""
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    first = f"import os; os.rmdir({str(cwd)!r})\n" if cwd else ""
    child = subprocess.run(
        [sys.executable, "-c", first + CALLS, then],
        env={**os.environ, "PYTHONPATH": search, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    answer: dict[str, list[str]] = json.loads(child.stdout.splitlines()[-1])
    return answer


def agreed(answers: dict[str, list[str]]) -> str:
    """Return the one thing that all calls say, each time."""
    (text,) = {text for texts in answers.values() for text in texts}
    assert len(text) < 700
    return text


def test_a_library_that_is_not_there_is_named_by_every_call() -> None:
    text = agreed(said(environment={library.VARIABLE: "/nowhere/libdnnl.so.3"}))
    assert "no usable oneDNN" in text
    assert "doctor" in text
    assert "/nowhere/libdnnl.so.3: cannot open shared object file" in text


def test_a_library_with_nothing_but_a_version_is_named_by_every_call(tmp_path: Path) -> None:
    path = fake(tmp_path / "libfake.so.3")
    text = agreed(said(environment={library.VARIABLE: str(path)}))
    assert "no usable oneDNN" in text
    assert f"{library.VARIABLE} {path}: has no function dnnl_" in text


def test_a_home_that_nobody_has_is_named() -> None:
    text = agreed(said(environment={library.VARIABLE: "~no_such_user/libdnnl.so"}))
    assert "there is no home directory of ~no_such_user: give a full path" in text


def test_a_relative_path_without_a_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    text = agreed(said(cwd=gone, environment={library.VARIABLE: "lib/libdnnl.so"}))
    assert "lib/libdnnl.so: the working directory of this process is gone" in text
    assert "give a full path" in text


def test_without_a_working_directory_sycl_says_so_and_others_run(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    then = f"os.chdir({str(tmp_path)!r}); said['after'] = [str(product(src)[0, 0])] * 3"
    answers = said(then, cwd=gone)
    assert answers.pop("after") == ["1.0"] * 3
    text = agreed(answers)
    if runtime.threading_runtime() == "SYCL":
        assert "the working directory of this process is gone" in text
        assert "os.chdir" in text
    else:
        assert text == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:gpu"),
        ("ONEAPI_DEVICE_SELECTOR", "nonsense"),
        ("ONEAPI_DEVICE_SELECTOR", "!*:cpu"),
        ("SYCL_DEVICE_ALLOWLIST", "gpu"),
        ("ONEAPI_DEVICE_SELECTOR", "*:cpu"),
    ],
)
def test_what_hides_the_cpu_from_sycl_is_named(name: str, value: str) -> None:
    text = agreed(said(environment={name: value}))
    if runtime.threading_runtime() != "SYCL" or value == "*:cpu":
        assert text == ""
    else:
        assert "cannot create a CPU engine" in text
        assert f"set {library.SELECTORS[0]}=*:cpu, before Python starts" in text
        assert f"{name}: {value}" in text


OUT_OF_MEMORY = """
import resource
import numpy as np
import pyonednn_q as pq
problem = pq.primitive.MatMulProblem.of((8, 8192), (8192, 8192))
wei = np.ones((8192, 8192), np.int8)
pq.prepare(pq.primitive.MatMulProblem.of((8, 64), (64, 64)), wei=np.ones((64, 64), np.int8))
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
most = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, most))
try:
    pq.prepare(problem, wei=wei)
except MemoryError as error:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    assert isinstance(error, pq.errors.OutOfMemoryError), type(error)
    print(error)
"""


def test_no_memory_for_weights_is_a_memory_error_that_says_what_was_asked() -> None:
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    child = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    text = child.stdout.splitlines()[-1]
    sizes = "src of 65,536 bytes, wei of 67,108,864 bytes"
    assert text.startswith(f"allocation: out_of_memory; {sizes}")
    assert "matmul src:u8:8x8192 wei:s8:8192x8192@any dst:u8:8x8192" in text


@pytest.mark.parametrize("status", ["out_of_memory", "runtime_error"])
def test_the_library_s_out_of_memory_is_a_memory_error(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes from: describing a primitive, packing for it, running it."""
    wei = np.ones((4, 8), np.int8)
    problem = MatMulProblem.of((2, 4), (4, 8))

    def fail(*_: object) -> None:
        raise OneDNNError(status, "dnnl_call", "")

    class Extension:
        Candidate = fail

    def told(act: Callable[[], object]) -> str:
        with pytest.raises(OneDNNError) as caught:
            act()
        assert isinstance(caught.value, MemoryError) is (status == "out_of_memory")
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))
        return str(caught.value)

    call = native.prepare(problem, wei=wei)
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "core", Extension)
        assert problem.text() in told(lambda: native.prepare(problem, wei=wei))
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "bind", fail)
        text = told(lambda: native.prepare(problem, wei=wei))
    patch.setattr(call, "_run", fail)
    slow = told(lambda: call(np.ones((4, 2), np.uint8).T, out=np.empty((8, 2), np.uint8).T))
    for one in (text, slow):
        assert one.startswith(f"dnnl_call: {status}")
        assert ("wei of 32 bytes" in one) is (status == "out_of_memory")


def test_the_extension_raises_the_class_of_the_library_s_status() -> None:
    """Too many post-ops, which `Attr` refuses, are out_of_memory to oneDNN."""
    attr = Attr(post_ops=(EltwisePostOp("relu"),) * 32).boundary()
    attr["post_ops"] *= 2
    with pytest.raises(OutOfMemoryError, match="dnnl_post_ops_append_eltwise: out_of_memory"):
        runtime.core.Candidate(MatMulProblem.of((2, 4), (4, 8)).boundary(), attr, "")
