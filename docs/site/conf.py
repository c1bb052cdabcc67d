"""Settings of the site: pages of this repository as they are, and an entry for each public name.

    sphinx-build -EaW --keep-going -c docs/site . build/site

Sources are Markdown where they stand, so that links between them hold on a code host, too. `api.py`
writes a page for each room and name below `docs/api`, from what rooms export; `contents.md` orders
them.
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

_metadata = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]

project = _metadata["name"]
version = release = _metadata["version"]
author = "the pyonednn_q authors"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "api",
]

root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/reference/*.md",
    "docs/api/**",
    "examples/*.ipynb",
    "third_party/*/*.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "benchmarks"]
templates_path = ["templates"]

# Markdown: anchors as code hosts make them; every link and anchor is checked.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # tests/docs executes notebooks and compares what they print

# API: signatures and docstrings of what a room exports; `name` links where it can.
default_role = "py:obj"
autosummary_generate = False  # api.py does, from what rooms export
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # autodoc has them

html_theme = "furo"
html_title = f"pyonednn_q {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "front.html"}
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
