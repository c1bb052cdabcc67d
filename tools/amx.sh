#!/usr/bin/env bash
# Check a processor that nobody has at hand, one with AMX above all: build, hunt, scan, test. No network.
#
#     tools/amx.sh OUT [SECONDS]        # 600 by default, in all
#
# Takes the Python of $PYTHON, or the first with NumPy, pytest and hypothesis; and the oneDNN that the package finds:
# PYONEDNN_Q_LIBDNNL, the one in src/pyonednn_q/lib (from a wheel of ours), or the onednn wheel. The extension is built
# with g++ against third_party/onednn, or taken as it is where that cannot be. OUT gets the whole outputs and a summary;
# what the machine lacks is skipped by name.
set -uo pipefail
out=$(realpath -m "${1:?usage: tools/amx.sh OUT [SECONDS]}")
seconds=${2:-600}
end=$((SECONDS + seconds))
cores=$(nproc)
top=$(realpath "$(dirname "$0")/..")
mkdir -p "$out" && cd "$top" || exit 2

say() { echo "$(date +%T) $*" | tee -a "$out/summary"; }
left() { echo $((end - SECONDS > 1 ? end - SECONDS : 1)); }

python=
for name in ${PYTHON:-} python python3 python3.{14,13,12,11,10}; do
    if "$name" -c 'import numpy, pytest, hypothesis' 2> /dev/null; then python=$(command -v "$name"); break; fi
done
[ -n "$python" ] || { say "no Python with NumPy, pytest and hypothesis"; exit 2; }
export PYTHONPATH="$top/src${PYTHONPATH:+:$PYTHONPATH}" PYTHONHASHSEED=0
{ lscpu; uname -r; "$python" --version; "$python" -m pip freeze; } > "$out/machine" 2>&1
say "$(sed -n 's/^Model name: *//p' "$out/machine" | head -1), $cores cores, $python"

# --- build ------------------------------------------------------------------------------------------------------------
extension=src/pyonednn_q/_core$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
build() {
    local objects=$out/objects include pybind version
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    pybind=$("$python" -c 'import pybind11; print(pybind11.get_include())') || return 1
    version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
    mkdir -p "$objects"
    printf '%s\n' src/cpp/*.cpp | xargs -P "$cores" -I{} sh -c 'o=$1/$(basename "$2" .cpp).o; shift 2; exec "$@" -o "$o"' \
        _ "$objects" {} sh -c 'exec "$@"' _ true > /dev/null 2>&1
    for file in src/cpp/*.cpp; do echo "$file"; done | xargs -P "$cores" -I{} sh -c \
        "g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -ffp-contract=off -DPYONEDNN_Q_VERSION='\"$version\"' \
        -Isrc/cpp -isystem third_party/onednn/include -isystem '$include' -isystem '$pybind' -c {} \
        -o '$objects'/\$(basename {} .cpp).o" || return 1
    g++ -shared -o "$extension.part" "$objects"/*.o -ldl -pthread && mv "$extension.part" "$extension"
}
