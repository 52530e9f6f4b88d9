"""A server to try the other examples on: python partner.py --port 8014"""

import argparse
import sys
from functools import partial

from seawall.faults.partner import Partner
from seawall.faults.running import run

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, default=8014, help="0 chooses a free one")
parser.add_argument("--seed", type=int, help="of the chance in /flaky?rate=")
options = parser.parse_args()

sys.exit(run(Partner(port=options.port, seed=options.seed), partial(print, flush=True)))
