"""Options are declared once; `help` and type checkers see them on whatever takes them."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import pyonednn_q
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import conv, deconv, inner_product, matmul
from pyonednn_q.ops.options import ConvOptions, FloatConvOptions
from pyonednn_q.ops.settings import DialectName, Settings
from pyonednn_q.requantize import DIALECTS

PAIRS: list[tuple[Any, Any]] = [
    (Conv, conv),
    (Deconv, deconv),
    (InnerProduct, inner_product),
    (MatMul, matmul),
]
WINDOW = ["stride", "padding", "dilation", "groups"]
OF_FLOATS = {"src_q", "dst_q", "src_dtype", "wei_q", "wei_fq", "wei_levels"}


def options(function: Any) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters)
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize(("operator", "function"), PAIRS)
def test_options_of_an_operator_and_of_its_function_agree(operator: Any, function: Any) -> None:
    of_call = ["out", "residual", "operands"]
    given = options(function)
    assert list(given)[:3] == of_call
    assert list(given)[3:] == list(options(operator))
    for name, parameter in options(operator).items():
        assert given[name] == parameter


@pytest.mark.parametrize("operator", [operator for operator, _ in PAIRS])
def test_options_are_the_settings_and_the_window(operator: Any) -> None:
    window = WINDOW if operator in {Conv, Deconv} else []
    settings = list(inspect.signature(Settings).parameters)
    assert sorted(options(operator)) == sorted(["wei_q", *settings, *window])
    defaults = {p.name: p.default for p in inspect.signature(Settings).parameters.values()}
    for name in set(settings) - {"src_q", "dst_q", "dst", "post"}:
        assert options(operator)[name].default == defaults[name], name


@pytest.mark.parametrize("operator", [operator for operator, _ in PAIRS])
def test_from_float_takes_the_options_of_its_class(operator: Any) -> None:
    of_class, of_floats = options(operator), options(operator.from_float)
    assert set(of_class) - {"wei_q"} <= set(of_floats)
    own = {"groups", "bits", "symmetric", "method", "samples"}
    in_groups = own if operator in {InnerProduct, MatMul} else set()
    assert set(of_floats) - set(of_class) == {"src_dtype", "wei_fq", "wei_levels"} | in_groups
    for name in set(of_class) - OF_FLOATS:
        assert of_floats[name] == of_class[name], name


def test_every_option_has_a_default() -> None:
    named = {**FloatConvOptions.__annotations__, **ConvOptions.__annotations__}
    shown = {**options(Conv.from_float), **options(Conv)}
    assert shown.keys() == named.keys()


@pytest.mark.parametrize("function", [Conv, Conv.from_float])
def test_the_documentation_names_every_option(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    above, _, below = text.partition("Parameters\n")
    assert above
    of_class = options(Conv) if function is not Conv else {}
    assert [name for name in options(function) if name not in below and name not in of_class] == []


@pytest.mark.parametrize(
    "function", [f for operator, call in PAIRS for f in (operator, operator.from_float, call)]
)
def test_what_takes_options_says_where_they_are_explained(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert function is Conv or "**options" in text
    assert "**options" in text or all(name in text for name in options(function))


def test_help_shows_every_option() -> None:
    text = pydoc.plain(pydoc.render_doc(conv))
    assert [name for name in options(conv) if f"{name}: " not in text] == []
    assert "zero_point: 'ZeroPointCarrier' = 'auto'" in text


@pytest.mark.parametrize(("operator", "function"), PAIRS)
def test_a_misspelt_option_is_refused_as_by_python_itself(operator: Any, function: Any) -> None:
    wei = np.ones((2, 2), np.float32)
    for call, tensors in ((operator, 1), (operator.from_float, 1), (function, 2)):
        with pytest.raises(TypeError) as caught:
            call(*[wei] * tensors, paddding=1)
        # from_float is asked of a class that inherits it.
        name = call.__name__ if call in {operator, function} else f"{operator.__name__}.from_float"
        said = f"{name}() got an unexpected keyword argument 'paddding'"
        meant = " (did you mean padding?)" if operator in {Conv, Deconv} else ""
        assert str(caught.value) == said + meant


USER = """
import numpy as np
import pyonednn_q as pq

wei = np.ones((8, 4, 3, 3), np.int8)
q = pq.QParams(0.5, 0, np.uint8)
w = pq.QParams(0.5, 0, "int8")
right = pq.Conv(wei, src_q=q, wei_q=w, padding=[0, 1, 2, 1], layout="dense", dst=np.float32)
pq.conv(wei, wei, src_q=q, wei_q=w, policy="bitwise", zero_point="map")
pq.MatMul(wei, src_q=q, wei_q=w, dst_q=q, requantize="tflite_2step")
pq.Conv(wei, src_q=q, wei_q=w, paddding=1)
pq.conv(wei, wei, src_q=q, wei_q=w, paddding=1)
pq.Conv.from_float(wei, src_q=(0.0, 1.0), paddding=1)
pq.MatMul(wei, src_q=q, wei_q=w, stride=1)
pq.Conv(wei, src_q=q, wei_q=w, layout="nhwc")
pq.Conv(wei, src_q=q, wei_q=w, policy="exact")
pq.Conv(wei, src_q=q, wei_q=w, saturation="ignore")
pq.Conv(wei, src_q=q, wei_q=w, zero_point="nothing")
pq.Conv(wei, src_q=q, wei_q=w, tune="yes")
pq.Conv(wei, src_q=q, wei_q=w, dst_q=q, requantize="tflite_3step")
"""


FIRST_WRONG = 1 + USER.splitlines().index("pq.Conv(wei, src_q=q, wei_q=w, paddding=1)")


def test_the_dialects_that_may_be_named_are_those_of_the_catalogue() -> None:
    assert get_args(DialectName) == tuple(DIALECTS)


@pytest.mark.slow  # mypy reads the package
def test_a_type_checker_sees_what_a_user_misspells(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "user.py"
    file.write_text(USER)
    arguments = ["--strict", "--no-error-summary", "--hide-error-context", "--config-file="]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, "--cache-dir", str(tmp_path / "cache"), file],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(pyonednn_q.__file__).parents[1])},
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    errors = [line for line in said if ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == list(
        range(FIRST_WRONG, FIRST_WRONG + 10)
    ), done.stdout + done.stderr
    assert sum('Unexpected keyword argument "paddding"' in line for line in errors) == 3
