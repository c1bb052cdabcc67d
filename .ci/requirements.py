r"""Print what building, running and the given extras need, one requirement a line.

Without the oneDNN wheels: this is the list for those who bring their own oneDNN.

    python .ci/requirements.py test | xargs -d '\n' pip install
"""

from __future__ import annotations

import sys
from pathlib import Path

import tomllib

settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
wanted = settings["build-system"]["requires"]
wanted += settings["tool"]["scikit-build"]["metadata"]["dependencies"]["result"]
for extra in sys.argv[1:]:
    wanted += settings["project"]["optional-dependencies"][extra]
print("\n".join(line for line in wanted if not line.startswith("onednn")))
