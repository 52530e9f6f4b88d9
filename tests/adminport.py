"""A real hub with its admin port, in the loop of the test; and a small client that reads answers strictly."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seawall.hub.address import Address
from seawall.hub.admin import AdminDoor
from seawall.hub.listen import open_listener
from seawall.hub.server import Hub
from seawall.hub.settings import HubSettings, TargetSettings

NOWHERE = Address(host="127.0.0.1", port=0)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """One connection to an admin port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, path: str, method: str = "GET", *, host: str = "localhost", more: str = "") -> Answer:
        self.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
        return await self.answer(method)

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, method: str = "GET") -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        assert len(headers) == len(lines), f"a header stands twice: {lines}"
        length = 0 if method == "HEAD" else int(headers["content-length"])
        return Answer(int(first.split(" ")[1]), headers, await self.reader.readexactly(length))

    async def ended(self) -> bool:
        """Whether the hub ends the connection, in order or by a reset, without another byte."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


def targets(count: int, **own: Any) -> list[TargetSettings]:
    return [TargetSettings(name=f"T{number}", host="127.0.0.1", port=9, **own) for number in range(count)]


@asynccontextmanager
async def admin_port(
    directory: Path, known: Sequence[TargetSettings] = (), sock: socket.socket | None = None, **own: Any
) -> AsyncIterator[tuple[Hub, AdminDoor]]:
    """A hub that listens, and its admin port, both on ports that the system chose."""
    settings = HubSettings(targets=tuple(known or targets(1)), breaker_log=str(directory / "breaker.log"), **own)
    hub = Hub(settings, asyncio.get_running_loop())
    hub.open_logs()
    door = AdminDoor(hub, sock or open_listener(NOWHERE))
    try:
        hub.listen([open_listener(NOWHERE)])
        yield hub, door
    finally:
        door.close()
        await hub.close()


@asynccontextmanager
async def asker(door: AdminDoor) -> AsyncIterator[Asker]:
    host, _, port = door.name.rpartition(":")
    one = Asker(*await asyncio.open_connection(host, int(port)))
    try:
        yield one
    finally:
        await one.close()


async def ask(door: AdminDoor, path: str, method: str = "GET", *, host: str = "localhost") -> Answer:
    """One request on a connection of its own."""
    async with asker(door) as one:
        return await one.ask(path, method, host=host)
