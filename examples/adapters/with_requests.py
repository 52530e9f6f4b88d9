"""requests with a retry, a budget and a breaker, against `seawall partner`; its URL may be given as argument."""

import sys

import requests

import seawall
from seawall.adapters.requests import mount

partner = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8014"
wall = seawall.Wall()
wall.target("CORE", retry=seawall.Retry(3, base_delay=0.01), breaker=seawall.CircuitBreaker(3, reset_timeout=30.0))

with mount(requests.Session(), wall, target="CORE") as session:
    print("fails twice:", session.get(f"{partner}/flaky?fail=2&key=requests").status_code)
    try:
        with seawall.budget(0.3):
            session.get(f"{partner}/drip?bytes=1000&every_ms=50")
    except requests.exceptions.ReadTimeout as error:
        print("a byte each 50 ms:", type(error).__name__)
    print("is down:", session.get(f"{partner}/status/500").status_code)
    try:
        session.get(f"{partner}/status/200")
    except requests.exceptions.ConnectionError as error:
        print("is left alone:", type(error).__name__)
