"""The conda recipe as rattler-build renders it, and how its trial lays out a prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from release import recipe


@pytest.mark.parametrize("python", recipe.PYTHONS)
def test_it_renders_for_every_python(python: str) -> None:
    pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    rendered = recipe.rendered(python)
    assert rendered["build"]["string"].startswith(f"py{python.replace('.', '')}")
    asked = rendered["requirements"]
    assert "onednn-cpu-omp >=3.7,<4" in asked["host"]
    assert "onednn-cpu-omp >=3.7,<4" in asked["run"]
    assert ("tomli >=2" in asked["run"]) is (python == "3.10")
    assert "gxx_linux-64" in asked["build"]


TARGETS = """
get_filename_component(_IMPORT_PREFIX "${CMAKE_CURRENT_LIST_FILE}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
set(LOCATION "${_IMPORT_PREFIX}/lib/x86_64-linux-gnu/libdnnl.so.3.7")
"""


def test_a_library_of_debian_is_laid_out_as_conda_has_it(tmp_path: Path) -> None:
    debian, prefix = tmp_path / "debian", tmp_path / "prefix"
    for name, text in {
        "include/oneapi/dnnl/dnnl.h": "",
        "include/zlib.h": "",
        "lib/x86_64-linux-gnu/libz.so": "",
        "lib/x86_64-linux-gnu/libdnnl.so.3.7": "",
        "lib/x86_64-linux-gnu/cmake/dnnl/dnnl-targets.cmake": TARGETS,
    }.items():
        path = debian / "usr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    recipe.lay_out(debian, prefix)
    there = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    assert there == {
        "include/oneapi/dnnl/dnnl.h",
        "lib/libdnnl.so.3.7",
        "lib/cmake/dnnl/dnnl-targets.cmake",
    }
    targets = (prefix / "lib/cmake/dnnl/dnnl-targets.cmake").read_text()
    # From the file up to its folder, and from there three times: cmake/dnnl, cmake, lib.
    assert targets.count(" PATH)") == 4
    assert '"${_IMPORT_PREFIX}/lib/libdnnl.so.3.7"' in targets
