"""Several calls in one budget: python deadline.py --budget-ms 1000 --min-ms 50 --url URL --url URL"""

import argparse
import json
import time

import seawall
from seawall.measure.call import call

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--budget-ms", type=int, required=True)
parser.add_argument("--min-ms", type=int, default=0, help="with less left than this a call is not made")
parser.add_argument("--connect", type=float, default=0.3, help="seconds, cut to what is left")
parser.add_argument("--url", action="append", required=True)
options = parser.parse_args()

began, rows = time.monotonic(), []
with seawall.budget(options.budget_ms / 1000) as deadline:
    for url in options.url:
        left = deadline.remaining()  # the read limit of this call; the budget in force ends one that drips
        called = call(url, connect=options.connect, read=left, min_ms=options.min_ms)
        rows.append({
            "url": url, "phase": called.phase, "status": called.status, "read_timeout_ms": int(left * 1000),
            "elapsed_ms": called.elapsed_ms,
        })  # fmt: skip

skipped = sum(row["phase"] == "no_budget" for row in rows)
print(json.dumps({"calls": rows, "skipped": skipped, "spent_ms": round((time.monotonic() - began) * 1000, 1)}))
