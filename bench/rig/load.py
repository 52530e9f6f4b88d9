"""Small blocking HTTP pieces: is it ready, how long does one request take, keep many waiting, load with wrk."""

from __future__ import annotations

import http.client
import json
import re
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.procs import BenchError, Running, output_of, pinned

# What a usual client sends: eight headers besides Host.
HEADERS = (
    "User-Agent: seawall-bench/1.0 (linux; x86_64)",
    "Accept: application/json, */*;q=0.8",
    "Accept-Encoding: gzip, deflate, br",
    "Connection: keep-alive",
    "Authorization: Bearer 0123456789abcdef0123456789abcdef0123456789abcdef",
    "X-Request-Id: 7b0c1c1e-93a5-4a1a-9c0f-0b7d2f6a1c55",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "Cookie: sid=abcdef0123456789; theme=dark",
)
POST_LUA = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("p", 4096)
"""
IDS_LUA = """local n = 0
request = function()
  n = n + 1
  wrk.headers["X-Request-Id"] = string.format("7b0c1c1e-93a5-4a1a-9c0f-%012x", n)
  wrk.headers["traceparent"] = string.format("00-4bf92f3577b34da6a3ce%012x-00f067aa%08x-01", n, n)
  return wrk.format()
end
"""
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def get(port: int, path: str, timeout: float = 5.0) -> tuple[int, bytes]:
    """Status and body of one GET on a connection of its own."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        c.request("GET", path)
        answer = c.getresponse()
        return answer.status, answer.read()
    finally:
        c.close()


def get_json(port: int, path: str) -> Any:
    """The JSON document at ``path``, or ``None`` when there is none."""
    try:
        status, body = get(port, path)
        return json.loads(body) if status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None


def wait_ready(r: Running, path: str = "/1k", limit: float = 15.0) -> None:
    """Wait until ``path`` gives its 1 KiB; raise :class:`BenchError` when it does not within ``limit`` seconds."""
    end, last = time.monotonic() + limit, "no answer"
    while time.monotonic() < end:
        if r.proc.poll() is not None:
            raise BenchError(f"{r.name} did not start: {r.last_words()}")
        try:
            status, body = get(r.port, path)
            if status == 200 and len(body) == 1024:
                return
            last = f"{path} answered {status} with {len(body)} bytes, not 200 with 1024"
        except (OSError, http.client.HTTPException) as e:
            last = str(e)
        time.sleep(0.1)
    raise BenchError(f"{r.name} is not ready after {limit:.0f} s: {last}")


def request_bytes(path: str) -> bytes:
    """A GET with the usual headers."""
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: bench", *HEADERS, "", "")).encode()


class Probe:
    """One keep-alive connection that measures how long a small GET takes.

    Blocking on purpose: no event loop or garbage collector of the measuring side stands between request and answer.
    """

    def __init__(self, port: int, path: str) -> None:
        self._request = request_bytes(path)
        self._sock = socket.create_connection(("127.0.0.1", port), 5)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def once(self) -> float:
        """Seconds one request took; :class:`OSError` when it was not answered 200 within 5 s."""
        began = time.perf_counter()
        self._sock.sendall(self._request)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0 or len(got) - end - 4 < 1024:
            piece = self._sock.recv(65536)
            if not piece:
                raise ConnectionError("the relay closed the connection")
            got += piece
            if b"\r\n" in got and b" 200 " not in got.split(b"\r\n", 1)[0]:
                raise ConnectionError("answered " + got.split(b"\r\n", 1)[0].decode("latin-1"))
        return time.perf_counter() - began

    def many(self, count: int, gap: float = 0.001) -> list[float]:
        """``count`` requests one after another, ``gap`` seconds between them."""
        times = []
        for _ in range(count):
            times.append(self.once())
            time.sleep(gap)
        return times


class Waiting:
    """Many requests that were sent and wait for their answer: plain sockets, so holding them costs us nothing."""

    def __init__(self, port: int, path: str, count: int) -> None:
        self._socks: list[socket.socket] = []
        request = request_bytes(path)
        try:
            for i in range(count):
                s = socket.create_connection(("127.0.0.1", port), 10)
                self._socks.append(s)
                s.sendall(request)
                if i % 100 == 99:
                    time.sleep(0.02)  # no relay's accept queue must overflow: that would measure the kernel
        except OSError as e:
            self.close()
            raise BenchError(f"only {len(self._socks)} of {count} waiting connections could be opened: {e}") from None

    def answered(self) -> int:
        """How many were answered or closed although their target hangs."""
        p = select.poll()
        for s in self._socks:
            p.register(s, select.POLLIN)
        return len(p.poll(0))

    def close(self) -> None:
        """Hang up on all of them."""
        for s in self._socks:
            s.close()


@dataclass(frozen=True)
class Load:
    """What wrk saw: requests, requests/s, seconds at p50 and p99, answers that were errors or did not come."""

    requests: int
    rps: float
    p50: float
    p99: float
    errors: int


def _seconds(text: str | None) -> float:
    found = re.match(r"([\d.]+)(us|ms|s|m)", text or "")
    return float(found[1]) * UNITS[found[2]] if found else 0.0


def parse_wrk(out: str) -> Load:
    """Read wrk's report."""
    def field(pattern: str) -> str | None:
        found = re.search(pattern, out)
        return found[1] if found else None

    socket_errors = field(r"Socket errors: (.*)")
    lost = sum(map(int, re.findall(r"\d+", socket_errors))) if socket_errors else 0
    return Load(int(field(r"(\d+) requests in") or 0), float(field(r"Requests/sec:\s+([\d.]+)") or 0),
                _seconds(field(r"\n\s+50%\s+(\S+)")), _seconds(field(r"\n\s+99%\s+(\S+)")),
                int(field(r"Non-2xx or 3xx responses: (\d+)") or 0) + lost)


def wrk(port: int, path: str, *, connections: int, seconds: int, core: str | None, lua: Path | None = None) -> Load:
    """Load a port with wrk, one thread, as fast as it answers."""
    cmd: Sequence[str] = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "10s"]
    cmd = [*cmd, *(x for h in HEADERS for x in ("-H", h)), *(["-s", str(lua)] if lua else [])]
    out, _ = output_of(pinned([*cmd, f"http://127.0.0.1:{port}{path}"], core), seconds + 30)
    return parse_wrk(out)
