"""urllib3 with a retry, a budget and a breaker, against `seawall partner`; its URL may be given as argument."""

import sys

import urllib3

import seawall
from seawall.adapters.urllib3 import protect

partner = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8014"
wall = seawall.Wall()
wall.target("CORE", retry=seawall.Retry(3, base_delay=0.01), breaker=seawall.CircuitBreaker(3, reset_timeout=30.0))

with protect(urllib3.PoolManager(), wall, target="CORE") as http:
    print("fails twice:", http.request("GET", f"{partner}/flaky?fail=2&key=urllib3").status)
    try:
        with seawall.budget(0.3):
            http.request("GET", f"{partner}/drip?bytes=1000&every_ms=50")
    except urllib3.exceptions.TimeoutError as error:
        print("a byte each 50 ms:", type(error).__name__)
    print("is down:", http.request("GET", f"{partner}/status/500").status)
    try:
        http.request("GET", f"{partner}/status/200")
    except urllib3.exceptions.HTTPError as error:
        print("is left alone:", type(error).__name__)
