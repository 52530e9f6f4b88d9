"""Each call is told what is left: python fanout.py http://127.0.0.1:8014 --n 3 --budget-ms 500"""

import argparse
import json

import seawall
from seawall.measure.call import call

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("base")
parser.add_argument("--n", type=int, required=True)
parser.add_argument("--budget-ms", type=int, required=True)
options = parser.parse_args()

rows = []
with seawall.budget(options.budget_ms / 1000) as deadline:
    for _ in range(options.n):
        left = int(deadline.remaining() * 1000)  # rounded down: the callee never has longer than we do
        called = call(
            f"{options.base.rstrip('/')}/budget?ms=200", read=deadline.remaining(), min_ms=1,
            headers=[("X-Budget-Ms", str(left))],
        )  # fmt: skip
        received = json.loads(called.body)["received"] if called.phase == "done" else None
        rows.append({"sent_budget_ms": left, "received": received, "elapsed_ms": called.elapsed_ms, "phase": called.phase})
print(json.dumps({"calls": rows}))
