"""Retries that pay: python retry.py --budget-ms 2000 --base-ms 100 --max-attempts 4 URL"""

import argparse
import json
import sys

import seawall
from seawall.measure.call import call

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("url")
parser.add_argument("--budget-ms", type=int, required=True)
parser.add_argument("--base-ms", type=int, required=True, help="the longest first wait; each further one may be twice that")
parser.add_argument("--max-attempts", type=int, required=True)
parser.add_argument("--min-ms", type=int, default=1, help="with less left than this no attempt is made")
options = parser.parse_args()


class Failed(Exception):
    """Not done, or an answer that says: not now."""


rows = []
stopped = "success"  # a first attempt that succeeds is nothing to tell


def attempt():
    called = call(options.url, min_ms=options.min_ms)
    rows.append({
        "n": len(rows) + 1, "phase": called.phase, "status": called.status, "elapsed_ms": called.elapsed_ms,
        "wait_ceiling_ms": round(retry.ceiling(len(rows) + 1) * 1000, 1), "waited_ms": 0,
    })  # fmt: skip
    if called.phase != "done" or called.status >= 500 or called.status == 429:
        raise Failed(called.error or f"status {called.status}")


def note(event):
    global stopped
    if isinstance(event, seawall.RetryScheduled):
        rows[-1]["waited_ms"] = round(event.delay * 1000, 1)
    else:
        stopped = event.reason


retry = seawall.Retry(
    options.max_attempts, base_delay=options.base_ms / 1000, max_delay=sys.float_info.max, min_ms=options.min_ms,
    on=Failed, retry_budget=None,
)  # fmt: skip
retry.listen(note)
with seawall.budget(options.budget_ms / 1000):
    try:
        retry.call(attempt)
    except seawall.NoBudgetError:
        stopped = "budget"  # not even the first had room
    except Failed:
        pass  # the rows tell
print(json.dumps({"attempts": rows, "stopped_reason": stopped}))
