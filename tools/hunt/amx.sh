#!/usr/bin/env bash
# Check a processor that nobody has at hand, one with AMX above all: build, hunt, scan, test. No network.
#
#     tools/hunt/amx.sh OUT [SECONDS]        # 600 by default, in all
#
# Takes the Python of $PYTHON, or the first with NumPy, pytest and hypothesis; and the oneDNN that the package finds:
# PYONEDNN_Q_LIBDNNL, the one in src/pyonednn_q/lib (from a wheel of ours), or the onednn wheel. The extension is built
# with g++ against third_party/onednn where pybind11 is, and else taken as it lies there. OUT gets whole outputs and a
# summary; what the machine or its Python lacks is skipped by name.
set -uo pipefail
out=$(realpath -m "${1:?usage: tools/hunt/amx.sh OUT [SECONDS]}")
seconds=${2:-600}
end=$((SECONDS + seconds))
cores=$(nproc)
mkdir -p "$out" && cd "$(dirname "$0")/../.." || exit 2
code=0

say() { echo "$(date +%T) $*" | tee -a "$out/summary"; }
left() { echo $((end > SECONDS ? end - SECONDS : 1)); }
has() { "$python" -c "import ${*// /, }" 2> /dev/null; }

python=
for name in ${PYTHON:-} python python3 python3.{14,13,12,11,10}; do
    python=$(command -v "$name") && has numpy && has pytest && has hypothesis && break
    python=
done
[ -n "$python" ] || { say "no Python with NumPy, pytest and hypothesis"; exit 2; }
export PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH} OMP_WAIT_POLICY=passive
{ lscpu; uname -r; "$python" --version; "$python" -m pip freeze; } > "$out/machine" 2>&1
say "$(sed -n 's/^Model name: *//p' "$out/machine" | head -1), $cores cores, $python"
for feature in amx_int8 amx_bf16 amx_fp16 avx512_fp16 avx_vnni; do
    grep -qw "$feature" /proc/cpuinfo || say "this processor has no $feature"
done

# Files one by one, as many at a time as there are cores; the library is opened at run time.
build() {
    local -r extension=src/pyonednn_q/_core$(setting EXT_SUFFIX) objects=$(mktemp -d)
    local -r version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
    printf '%s\n' -std=c++17 -O2 -fPIC -fvisibility=hidden -ffp-contract=off "-DPYONEDNN_Q_VERSION=\\\"$version\\\"" \
        "-include src/cpp/common.hpp" "-isystem third_party/onednn/include" "-isystem $(setting INCLUDEPY)" \
        "-isystem $("$python" -c 'import pybind11; print(pybind11.get_include())')" > "$objects/flags"
    find src/cpp -name '*.cpp' -printf '%f\n' |
        xargs -P "$cores" -I{} g++ "@$objects/flags" -c src/cpp/{} -o "$objects/{}.o" || return 1
    g++ -shared -o "$extension.part" "$objects"/*.o -ldl -pthread && mv "$extension.part" "$extension"
    local -r status=$?
    rm -r "$objects"
    return $status
}
setting() { "$python" -c "import sysconfig; print(sysconfig.get_config_var('$1'))"; }
if command -v g++ > /dev/null && has pybind11; then
    build > "$out/build" 2>&1 || { say "not built: see $out/build"; exit 1; }
    say "built"
else
    say "not built, for want of g++ or pybind11: what lies there runs"
fi
"$python" -m pyonednn_q doctor > "$out/doctor" 2>&1 || { say "no library, or no extension: see $out/doctor"; exit 1; }

# Tests get half of what is left, the hunt and its regions share the rest; all with as many processes as cores.
many() { # NAME SECONDS COMMAND...: the same with another seed on each core
    local -r name=$1 seconds=$2 seed=$(date +%s)
    shift 2
    local jobs=() failed=0
    for core in $(seq "$cores"); do
        timeout "$((seconds + 60 < $(left) ? seconds + 60 : $(left)))" "$@" --seed "$((seed + core))" --seconds "$seconds" \
            --results "$out/$name.$core.json" > "$out/$name.$core" 2>&1 &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || failed=1; done
    local -r ran=$(awk -F'[:,] *' '/ problems, / { for (i = 1; i <= NF; i++) if ($i ~ / ran$/) n += $i } END { print n + 0 }' "$out/$name".[0-9]*)
    say "$name: $ran ran, $(cat "$out/$name".[0-9]* | grep -c '^WRONG.*(') wrong"
    [ $failed = 0 ] || { code=1; say "$name: not every process ended well"; grep -h -A1 '^WRONG.*(' "$out/$name".[0-9]* >> "$out/findings"; }
}
share=$(($(left) / 10))
if has ml_dtypes; then
    many hunt $((2 * share)) "$python" tools/hunt/hunt.py
    for region in volumes rows skips products; do
        many "$region" $((share / 2)) "$python" tools/hunt/hunt.py --levels ALL AVX2_VNNI --region "$region"
    done
else
    say "no ml_dtypes: the hunt and its regions are skipped"
fi

# Files of tests in turn, a process each, as pytest-xdist need not be there.
test_one() { # FILE, until when
    local -r name=${1//\//.} last=$(($2 - $(date +%s)))
    OMP_NUM_THREADS=2 timeout "$((last > 1 ? last : 1))" "$python" -m pytest -q -p no:cacheprovider -rfEs "$1" > "$out/$name" 2>&1
    local -r status=$?
    echo "$1: $([ $status = 124 ] && echo "out of time" || tail -1 "$out/$name")" >> "$out/tests"
    [ $status = 0 ] || [ $status = 5 ]
}
export -f test_one
export out python
find tests/isa tests/native -name 'test_*.py' | sort |
    xargs -P "$cores" -I{} bash -c "test_one {} $(($(date +%s) + $(left)))" || code=1
say "tests: $(grep -c ' passed' "$out/tests") files ran, $(grep -c 'failed\|error\|out of time' "$out/tests") of them not green"
grep 'failed\|error\|out of time' "$out/tests" >> "$out/findings"
[ -s "$out/findings" ] && say "see $out/findings"
exit $code
