"""What each door makes of a request and its answer: the part of an exchange in which the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chunks import ChunkedBody, Dechunker
    from .head import ResponseHead

__all__ = ["Passing"]


class Passing:
    """How a request goes out and its answer comes back. Each door says it all; here are only the questions."""

    def request_head(self, now: float) -> bytes:
        """What the target is sent first, with what is left of the budget at this moment."""
        raise NotImplementedError

    def idempotent(self) -> bool:
        """Whether doing it twice does no more than doing it once, as far as anybody has said."""
        raise NotImplementedError

    def answer_after_all(self, answer: Any) -> None:
        """Pass on a failed answer of the target, as it was handed to :func:`~seawall.hub.again.after`, and end."""
        raise NotImplementedError

    def give_up_keeping(self) -> None:
        """A failed answer that is kept does not get whole in time: pass it on as it comes."""
        raise NotImplementedError

    def interim(self, head: ResponseHead) -> None:
        """A 1xx that is not the answer."""
        raise NotImplementedError

    def chunk_reader(self) -> ChunkedBody | Dechunker:
        """What follows a chunked answer."""
        raise NotImplementedError

    def head(self, head: ResponseHead, body: bytes | memoryview, length: int | None) -> None:
        """The answer's head, and what came with it of a counted body of ``length`` bytes."""
        raise NotImplementedError

    def body(self, data: bytes) -> None:
        """A piece of the answer's body."""
        raise NotImplementedError

    def ended(self) -> None:
        """The answer has ended as it should."""
        raise NotImplementedError

    def switched(self, head: ResponseHead, rest: bytes) -> None:
        """101: the protocol has been switched, or the target thinks so."""
        raise NotImplementedError

    def tunnel_ended(self) -> None:
        """The target closed the tunnel."""
        raise NotImplementedError
