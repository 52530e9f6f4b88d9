"""A call that is flaky and sometimes slow as well, with a time limit, ten times in a loop.

The time limit stands inside the guarded call, so that running out of it is a failure of the target like any other.
"""

import asyncio
import random

from seawall import CircuitBreaker, CircuitOpenError

chance = random.Random(1)
now = 0  # seconds; a program leaves `clock=` out and gets time.monotonic
breaker = CircuitBreaker(failure_threshold=2, reset_timeout=2.0, clock=lambda: now, name="slow")


async def ask() -> str:
    """One call in five fails, and two in five take far too long."""
    luck = chance.random()
    if luck < 0.2:
        raise ConnectionError("no answer")
    if luck < 0.6:
        await asyncio.sleep(60)
    return "an answer"


@breaker
async def slow() -> str:
    """At most 20 ms."""
    async with asyncio.timeout(0.02):
        return await ask()


async def main() -> None:
    global now
    for now in range(10):
        try:
            said = await slow()
        except CircuitOpenError as refusal:
            said = f"refused: {refusal}"
        except TimeoutError:
            said = "failed: no answer within 20 ms"
        except ConnectionError as error:
            said = f"failed: {error}"
        print(f"{now} s  {breaker.state:9}  {said}")


if __name__ == "__main__":
    asyncio.run(main())
