"""A call that succeeds four times in five, behind a breaker, ten times in a loop, one call a second.

Two failures in a row open the circuit for three seconds: meanwhile the target is left alone and the caller knows at
once. Then one trial goes through, and its success closes the circuit again.
"""

import random
from itertools import count

from seawall import CircuitBreaker, CircuitOpenError

chance = random.Random(10)
now = 0  # seconds; a program leaves `clock=` out and gets time.monotonic
breaker = CircuitBreaker(failure_threshold=2, reset_timeout=3.0, clock=lambda: now, name="flaky")
numbers = count(1)


@breaker
def flaky() -> str:
    """Answers in 80 % of the calls that reach it."""
    number = next(numbers)
    if chance.random() >= 0.8:
        raise ConnectionError(f"no answer to call {number}")
    return f"answer to call {number}"


def main() -> None:
    global now
    for now in range(10):
        try:
            said = flaky()
        except CircuitOpenError as refusal:
            said = f"refused: {refusal}"
        except ConnectionError as error:
            said = f"failed: {error}"
        print(f"{now} s  {breaker.state:9}  {said}")


if __name__ == "__main__":
    main()
