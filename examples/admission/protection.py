"""A breaker and an admission limit, step by step. Run it for the whole trace, or play with the two by hand:

>>> from protection import Breaker, burst
>>> breaker = Breaker()
>>> breaker.call(False)
result=failure state=CLOSED failures=1 started=1 retry_at=0
"""

import asyncio

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError


class Breaker:
    """Opens after 3 failures in a row, for 5 seconds. Time stands still until somebody sets ``clock``."""

    def __init__(self) -> None:
        self.clock = 0
        self.circuit = CircuitBreaker(failure_threshold=3, reset_timeout=5, clock=lambda: self.clock)

    def call(self, ok: bool) -> None:
        """One call to a target that answers or fails as told; prints what came of it."""
        circuit = self.circuit
        try:
            circuit.call(self._target, ok)
        except CircuitOpenError as refusal:
            print(f"state={refusal.state} rejected without downstream call started={circuit.started}")
        except ConnectionError:
            print(f"result=failure state={circuit.state} failures={circuit.failures} started={circuit.started} "
                  f"retry_at={circuit.retry_at:g}")
        else:
            print(f"result=success state={circuit.state} started={circuit.started}")

    def _target(self, ok: bool) -> None:
        if self.circuit.state == "HALF_OPEN":
            print("probe state=HALF_OPEN")
        if not ok:
            raise ConnectionError("the target does not answer")


async def burst(limit: int, queue_limit: int | None = None, requests: int = 8) -> None:
    """So many requests at the same moment, ``limit`` of them at a time; prints what became of them."""
    admission = Bulkhead(limit, max_queue=queue_limit)

    @admission
    async def job() -> None:
        await asyncio.sleep(0.01)

    async def request() -> None:
        try:
            await job()
        except BulkheadFullError:
            pass  # a server would answer 503

    await asyncio.gather(*(request() for _ in range(requests)))
    print(f"requests={requests} completed={admission.completed} rejected={admission.rejected} "
          f"peak_active={admission.peak_active} admitted_waiters={admission.admitted_waiters}")


def main() -> None:
    """Steps 1 to 8."""
    breaker = Breaker()
    for clock, answers in ((0, [False]), (0, [False, False]), (0, [False, False]), (6, [False]), (12, [True, True])):
        breaker.clock = clock
        for ok in answers:
            breaker.call(ok)
    asyncio.run(burst(8))
    asyncio.run(burst(2))
    asyncio.run(burst(2, queue_limit=3))


if __name__ == "__main__":
    main()
