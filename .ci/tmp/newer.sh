set -uo pipefail
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$(cd ../wheels && pwd) OMP_WAIT_POLICY=passive
python3 -m venv ../venv
PATH=$(cd .. && pwd)/venv/bin:$PATH
pip install -q -r ../requirements.txt && pip install -q --no-deps --no-build-isolation . || exit 1
pyonednn-q doctor
export PYONEDNN_Q_LIBDNNL=$(find /opt/newer -name 'libdnnl.so.3.*' -type f)
pyonednn-q doctor
time pytest -q -n 2 tests/native tests/ops --durations=15
