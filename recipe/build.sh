#!/usr/bin/env bash
# Builds against the oneDNN of the prefix, whose library the package opens when it runs. The path that the build
# records is text in a file: conda writes the place of installation there.
set -euo pipefail
"$PYTHON" -m pip install . -v --no-deps --no-build-isolation \
    -Ccmake.define.dnnl_DIR="$PREFIX/lib/cmake/dnnl"
