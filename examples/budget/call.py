"""One call with two limits, and in which phase it ended: python call.py --connect 0.3 --read 1 URL"""

import argparse
import json

from seawall.measure.call import call

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("url")
parser.add_argument("--connect", type=float, default=0.3, help="seconds; longer than that means unreachable, not slow")
parser.add_argument("--read", type=float, default=2.0, help="seconds without a byte: the other side's work")
parser.add_argument("--total", type=float, help="seconds for all of it")
options = parser.parse_args()

called = call(options.url, connect=options.connect, read=options.read, total=options.total)
print(json.dumps({
    "phase": called.phase, "status": called.status, "elapsed_ms": called.elapsed_ms, "error": called.error,
}))  # fmt: skip
