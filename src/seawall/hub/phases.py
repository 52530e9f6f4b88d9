"""The phases of an exchange, in order. Each has one limit (``until``), besides the caller's deadline.

::

    RECEIVING   the start of the body is collected, so that a slow sender holds no place     --body-gap between bytes
    QUEUED      in line for a place                                                          --max-wait
    CONNECTING  a connection is being opened                                                 --connect
    SENDING     the rest of the body is passed on as it comes                                --body-gap between bytes
    WAITING     for the response head                                                        --read, and the whole attempt
    BACKOFF     an attempt has failed; between it and the next                               the wait
    STREAMING   the body of the answer is passed on as it comes                              --body-gap between bytes
    TUNNEL      after a 101, bytes both ways                                                 --idle-timeout
    DONE
"""

from __future__ import annotations

RECEIVING, QUEUED, CONNECTING, SENDING, WAITING, BACKOFF, STREAMING, TUNNEL, DONE = range(9)

WHERE = {
    RECEIVING: "before the request was in, for",
    QUEUED: "in line for",
    CONNECTING: "while connecting to",
    SENDING: "while sending to",
    WAITING: "while waiting for",
    STREAMING: "in the middle of the answer of",
    TUNNEL: "in the tunnel to",
}
