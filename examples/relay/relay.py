"""A hub made by hand: the library alone, a thread for each request, under 150 lines.

    python relay.py --port 8080 --target CORE=http://127.0.0.1:9201 --target CLAIM=http://127.0.0.1:9202
    curl localhost:8080/tx -d '{"target": "CORE", "amount": 10}'

`seawall hub` does the same and much more; this shows what the two policies do, and where they stand.
"""

import argparse
import http.client
import json
import math
import os
import signal
import sys
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import seawall

STATUS = {"0000": 200, "E400": 400, "E404": 404, "E500": 502, "E901": 502, "E902": 504, "E904": 503, "E905": 503}
CONNECT, READ = 0.3, 2.0  # seconds: "unreachable" is known soon, the target's own work takes longer


class TargetError(Exception):
    """What counts against the target: E500, E901, E902. A business refusal (B2xx) is a healthy answer."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.code = code

    def __str__(self):
        return f"{self.code}: {self.args[0]}"


def post(url, body):
    """One call to a target; its answer, or a TargetError."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port or 80, timeout=CONNECT)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise TargetError("E901", f"could not connect: {error}") from error
        connection.sock.settimeout(READ)
        try:
            connection.request("POST", "/tx", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise TargetError("E902", f"no answer within {READ} s: {error!r}") from error
        if answer.status >= 500:
            raise TargetError("E500", f"the target answered {answer.status}")
        return json.loads(text)
    finally:
        connection.close()


class BreakerLog:
    """One line for each change, whole and at once: a single write to a file opened for appending."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def __call__(self, event):
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        os.write(self.file, f"{now}|{event.target}|{event.old}->{event.new}\n".encode())


class Relay:
    """Each target has a breaker and a limit of its own; what happens to one does not concern the other."""

    def __init__(self, urls, options):
        self.urls = urls
        self.wall = seawall.Wall()
        self.wall.listen(BreakerLog(options.breaker_log))
        for name in urls:
            self.wall.target(
                name,
                breaker=seawall.CircuitBreaker(
                    options.fail_threshold, options.reset_timeout, counts_as_failure=TargetError, name=name
                ),
                bulkhead=seawall.Bulkhead(options.max_inflight, max_queue=0, name=name),
            )

    def transact(self, body):
        """The answer to a transaction, and the seconds to wait before the next one, where that is known."""
        try:
            name = json.loads(body)["target"]
            url = self.urls[name]
        except (ValueError, TypeError):
            return {"code": "E400", "detail": 'the body is to be {"target": NAME, ...}'}, None
        except KeyError:
            return {"code": "E404", "detail": f"the targets are {', '.join(self.urls)}"}, None
        try:
            return self.wall[name].call(post, url, body), None
        except seawall.CircuitOpenError as refusal:
            return {"code": "E904", "target": name, "detail": str(refusal)}, refusal.retry_after
        except seawall.BulkheadFullError as refusal:
            return {"code": "E905", "target": name, "detail": str(refusal)}, None
        except TargetError as error:
            return {"code": error.code, "target": name, "detail": error.args[0]}, None


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    relay = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer, retry_after = self.relay.transact(body)
        text = json.dumps(answer).encode()
        self.send_response(STATUS.get(answer.get("code", "0000"), 200))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if retry_after is not None:
            self.send_header("Retry-After", str(max(1, math.ceil(retry_after))))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description="A hand-made hub on the seawall library.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--target", action="append", required=True, metavar="NAME=URL")
    parser.add_argument("--fail-threshold", type=int, default=5)
    parser.add_argument("--reset-timeout", type=float, default=10.0)
    parser.add_argument("--max-inflight", type=int, default=10)
    parser.add_argument("--breaker-log", default="breaker.log")
    options = parser.parse_args()
    Door.relay = Relay(dict(target.split("=", 1) for target in options.target), options)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Door)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"relay listening on 127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
