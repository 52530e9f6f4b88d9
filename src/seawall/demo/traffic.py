"""Traffic for the demo: transactions at a fixed pace, whether or not the ones before have been answered."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter

__all__ = ["Pace", "Tally"]

CLIENTS = 40  # connections for each target: enough for all that can be under way at once
ANSWER_LIMIT = 10.0  # s; the hub answers long before, so this is only for a demo that has gone wrong


class Tally:
    """What one target's callers saw in one phase."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self.seconds: list[float] = []

    def quantile(self, q: float) -> float:
        """Seconds; 0.0 while there is nothing."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, int(q * len(ranked)))] if ranked else 0.0


class Pace:
    """``rate`` transactions a second to one target through the hub; ``tally`` is what it fills, to be put in its place.

    The pace does not wait for answers, as a crowd of callers does not: what a slow target holds up piles up.
    """

    def __init__(self, target: str, port: int, rate: float) -> None:
        self.target, self.port, self.rate = target, port, rate
        self.tally = Tally()
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self) -> None:
        """Until cancelled."""
        began = time.monotonic()
        try:
            while True:
                self._number += 1
                due = began + self._number / self.rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if len(self._under_way) < CLIENTS:
                    task = asyncio.ensure_future(self._call(self._number, self.tally))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                else:
                    self.tally.codes["no client free"] += 1
        finally:
            for task in self._under_way:
                task.cancel()
            for _, writer in self._free:
                writer.close()

    async def _call(self, number: int, tally: Tally) -> None:
        # Nine in ten within the balance; the tenth is a business refusal, which is a healthy answer.
        body = json.dumps({"target": self.target, "id": number, "amount": 5000 if number % 10 == 0 else 100}).encode()
        head = f"POST /tx HTTP/1.1\r\nHost: demo\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        began = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                code = await self._exchange(head + body)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            code = "no answer"
        tally.codes[code] += 1
        tally.seconds.append(time.monotonic() - began)

    async def _exchange(self, request: bytes) -> str:
        reader, writer = self._free.pop() if self._free else await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            await reader.readexactly(int(fields.get("content-length", 0)))
        except BaseException:
            writer.close()
            raise
        if fields.get("connection") == "close":
            writer.close()
        else:
            self._free.append((reader, writer))
        return fields.get("x-seawall-code", "none").upper()
