"""What the page of results says besides figures."""

READING = """\
**Ratios inside one run, nothing else.** All candidates of a row are called in each round, in random order, the ratio is
taken inside the round, and the median over the rounds is the figure. So the machine's speed, its mood and most of its
other work cancel out. Nanoseconds are not told here: they belong to the machine and the minute.

- **x bare**: what a call costs, in calls of the bare function (in rows without a call inside: of an empty function).
- **x wrapper**: the same in calls of an empty `*args, **kwargs` wrapper, what any ordinary decorator costs.
- **overhead**: what a call costs more than the bare one.
- `exact-wrapper` is an empty wrapper with the function's own signature: less than that a decorator cannot cost in Python.
- `seawall` is the public decorator. `seawall, star` is its closure with `*args, **kwargs`, for what has no signature to
  repeat; `seawall, plain` calls the policies' methods one by one and is the specification that the other two must agree
  with.

Seawall counts every call in every row: that cannot be turned off. A candidate that does something else than the row is
about (does not refuse while open, swallows the error) is left out, not measured.
"""

UNLIKE = """\
- **pybreaker** holds its lock while the guarded function runs, so it serialises its callers in every state: see the rows
  with I/O under contention. It and **aiobreaker** put an error of their own in the place of the one that opened the
  circuit; the others let it through.
- **circuitbreaker** has no lock at all, and its `with` never refuses: it only records. A `with` that can refuse costs more.
- **Half-open**: of 16 callers that arrive together when a trial is due, circuitbreaker, aiobreaker, purgatory, hyx and
  pyresilience let all 16 in, pybreaker too, one after another. Seawall lets `half_open_max_calls` in and refuses the rest
  (`bench/half_open.py`), for which each trial is a token with a lease. `breaker_halfopen` and `breaker_cycle` show the
  price of that, not its use: three changes of state, each under a lock, where circuitbreaker takes none.
- **pyresilience** numbers each call in a context variable and can tell listeners of it, **purgatory** works through a
  unit of work and a message bus, **hyx** awaits a coroutine for each step of its breaker. That is part of what they offer,
  and of their price.
- **aiobreaker** and **hyx** are made for one event loop. aiobreaker stands in the sync rows and under contention all the
  same, because it can be used there, but it has no lock.
- **Clocks**: pybreaker, aiobreaker, purgatory and hyx measure the time to the next trial by the wall clock, which somebody
  may set, and all but purgatory by making `datetime` objects; the others by the monotonic clock.
- **Bulkheads**: one of Seawall's is one limit over threads and event loops together, with a fair line. A
  `threading.BoundedSemaphore` knows threads only; an `asyncio.Semaphore` one loop only, and it lets any number wait.
- **Stacks by hand** have the breaker outside, so that an open circuit refuses first; a full semaphore then counts as a
  failure of the target. In Seawall the breaker refuses first and is entered last, so it does not.
- **By hand**: pyresilience has no public way to ask a breaker or a bulkhead; its private modules are used.
- **Timeouts**: hyx and, before Python 3.12, `asyncio.wait_for` (which pyresilience uses) make a task for each call. No
  timeout expires in these rows.
- **Memory and creation**: what a guard shares with others of its shape (generated code) is made by the first and is not in
  the figure. Seawall's breaker makes its lock and what else only trouble needs at the first failure: that has a row of its
  own. A decorated function of circuitbreaker is missing: its register keeps each for ever. Microseconds are the
  one absolute time on this page, and depend on the machine.
- **Interpreters**: how they were built stands above. A build without PGO is slower and has other ratios than one with it.
  Free-threaded builds are another matter altogether.
- **The machine**: where it was shared, others took what stands above under "other processes".
"""
