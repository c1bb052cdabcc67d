"""Write the JSON Schema of what ``pyonednn-q bench --save`` writes, from the types that read it.

python tools/pages/bench_schema.py > src/pyonednn_q/bench/run.schema.json
"""

from __future__ import annotations

import json

from pyonednn_q.bench.bench_run import json_schema

if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
