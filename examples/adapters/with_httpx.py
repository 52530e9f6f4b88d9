"""httpx with a retry, a budget and a breaker, against `seawall partner`; its URL may be given as argument."""

import sys

import httpx

import seawall
from seawall.adapters.httpx import protect

partner = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8014"
wall = seawall.Wall()
wall.target("CORE", retry=seawall.Retry(3, base_delay=0.01), breaker=seawall.CircuitBreaker(3, reset_timeout=30.0))

with protect(httpx.Client(), wall, target="CORE") as client:
    print("fails twice:", client.get(f"{partner}/flaky?fail=2&key=httpx").status_code)
    try:
        with seawall.budget(0.3):
            client.get(f"{partner}/drip?bytes=1000&every_ms=50")
    except httpx.TimeoutException as error:
        print("a byte each 50 ms:", type(error).__name__)
    print("is down:", client.get(f"{partner}/status/500").status_code)
    try:
        client.get(f"{partner}/status/200")
    except httpx.TransportError as error:
        print("is left alone:", type(error).__name__)
