"""One request on its way: admitted, sent, answered, ended. The policies are asked here, by plain calls.

An exchange has no timer of its own. Its limits are kept by the connection of its client, which stands on the wheel.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import BulkheadFullError, CircuitOpenError
from ..outcome import CODES, CUT, DISCARDED, FAILURE, Outcome
from ..policies.states import Trial
from . import again, limits
from .answers import problem
from .budget import heed
from .ghost import go_on_alone
from .passing import Passing
from .phases import CONNECTING, DONE, QUEUED, RECEIVING, SENDING, WAITING
from .timing import server_timing
from .wheel import RATE

if TYPE_CHECKING:
    import asyncio

    from ..policies.slots import Slots, Ticket
    from ..policies.states import Token
    from .backend import Backend
    from .client import Client
    from .ghost import Ghost
    from .head import RequestHead
    from .upstream import Upstream

__all__ = ["Exchange"]

log = logging.getLogger("seawall.hub")
HOLD = 16384  # bytes of body that are waited for before a place is taken
HIGH = 262144  # bytes of body collected before the client is told to wait


class Exchange(Passing):
    """One request to one target. What the answer is passed on as is the matter of its door; see the subclasses."""

    # Where it begins. These stand in the class, so that an exchange pays only for what happens to it.
    phase = RECEIVING
    until = attempt_ends = connect_at = sent_at = inf
    may_switch = True  # whether a 101 can be passed on
    whole = False  # whether budget and attempt limit cover the body too
    defaulted = True  # the budget is the hub's own, not one the client has sent
    full = started = replayed = counted = False
    gone = False  # its body went out and is not at hand any more
    bodiless = False  # the answer ends with its head, whatever that says
    asking = False  # the client waits for a 100 of the target before it sends the body
    size = status = interims = 0
    timed = False  # its answer says where the time went: in line, in attempts that have ended, and between them
    queued = spent = waited = lined_up = 0.0
    attempts = 0  # that have ended, and after which there was to be another
    course: again.Course | None = None  # through the attempts, once one has failed and the target has retries
    kept: again.Kept | None = None  # a failed answer that may yet be passed on
    code = ""
    pieces: list[bytes] | None = None
    held: Slots | None = None
    ticket: Ticket | None = None
    token: Token | None = None
    task: asyncio.Task[None] | None = None
    upstream: Upstream | None = None

    def __init__(self, client: Client | Ghost, request: RequestHead, backend: Backend, path: bytes, now: float) -> None:
        self.client: Client | Ghost = client
        self.request, self.backend, self.path = request, backend, path
        self.began = now
        self.keep = request.keep_alive
        self.request_id = request.request_id
        if request.method == b"HEAD":
            self.bodiless = True
        self.deadline = now + backend.budget
        if request.budgets is not None:
            heed(self, request.budgets, now)

    # -- the request comes in
    def expected(self, now: float) -> None:
        """The client waits to be asked for the body (``Expect: 100-continue``): the target is to say so."""
        self.start(now)

    def receive(self, piece: bytes, now: float) -> None:
        """A piece of the request's body."""
        if self.upstream is not None:  # even where it answers already: it may do so piece by piece
            self.asking = False
            self.until = now + self.client.hub.settings.body_gap
            self.upstream.write(piece)
            return
        if self.pieces is None:
            self.pieces = []
        self.pieces.append(piece)
        self.size += len(piece)
        if self.size > HIGH:
            self.client.pause()
        if self.phase == RECEIVING:
            self.until = now + self.client.hub.settings.body_gap
            if self.size > self.backend.hold:
                self.start(now)

    def complete(self, now: float) -> None:
        """The request is in, whole."""
        self.full = True
        if self.phase == RECEIVING:
            self.start(now)
        elif self.phase == SENDING:
            if self.deadline == inf:
                self.deadline = now + self.backend.budget
            self._await_answer(now)

    # -- admission
    def start(self, now: float) -> None:
        """Ask the policies, in their order, and go on as far as they let."""
        backend = self.backend
        if self.size and self.defaulted and backend.settings.budget_scope != "all" and self.course is None:
            self.deadline = now + backend.budget  # the time to send a body is the client's own; so in complete()
        left = self.deadline - now
        if left <= 0.0 or left < backend.least:
            self._too_late(left)
            return
        breaker, bulkhead = backend.breaker, backend.bulkhead
        try:
            if breaker.fast is None:
                breaker.check(left)
            ticket = bulkhead.take(self, left)
            if ticket is None:
                self._admitted(now)
            else:
                self.ticket = ticket
                bulkhead.join(ticket)
                self._stand_in_line(now, ticket)
        except CircuitOpenError as refusal:
            self.fail("E904", str(refusal), retry_after=refusal.retry_after)
        except BulkheadFullError as refusal:
            self.fail("E905", str(refusal), retry_after=refusal.retry_after)

    def _too_late(self, left: float) -> None:
        self.fail("E906", f"{max(0.0, left) * 1000:.0f} ms of budget are left, too little to call {self.backend.name}")

    def _stand_in_line(self, now: float, ticket: Ticket) -> None:
        self.phase = QUEUED
        self.timed, self.lined_up = True, now
        self.until = self.backend.waits_until(now)
        # By way of the loop: a line of refused waiters would otherwise hand the slot on in ever deeper calls.
        ticket.wake = lambda: self.backend.loop.call_soon(self._granted)
        if ticket.granted:
            ticket.wake()
        self.arm()

    def _granted(self) -> None:
        if self.phase == QUEUED and self.ticket is not None:
            self.ticket.left = True
            self.ticket = None
            try:
                now = self.backend.clock()
                self.queued += now - self.lined_up
                if self.deadline - now < self.backend.least:
                    self._too_late(self.deadline - now)
                else:
                    self._admitted(now)
            except CircuitOpenError as refusal:
                self.fail("E904", str(refusal), retry_after=refusal.retry_after)
            except Exception:
                self.fault()

    def _admitted(self, now: float) -> None:
        """A place is in hand: the token, at last. It may have opened in the meantime, or another has the trial."""
        backend = self.backend
        breaker = backend.breaker
        token: Token | None = breaker.fast
        if token is None:
            token = breaker.admit(self.deadline - now)
        else:  # what admit() does while the circuit is closed
            next(breaker.started_ticks)
        self.token = token
        next(backend.bulkhead.started_ticks)
        upstream = backend.take_idle()
        if upstream is not None:
            self._send(upstream, now)
        else:
            self.connect(now)

    # -- the attempt
    def connect(self, now: float) -> None:
        """Open a connection for this exchange."""
        self.phase = CONNECTING
        self.connect_at = now
        self.until = now + self.backend.settings.connect
        self.arm()
        self.task = self.backend.connect(self)

    def connected(self, upstream: Upstream) -> None:
        """A connection stands for this exchange."""
        self.task = None
        now = self.backend.clock()
        if self.phase == CONNECTING:
            self._send(upstream, now)
        else:
            self.backend.put_back(upstream, now)

    def not_connected(self, why: str, outcome: Outcome | None = None) -> None:
        """No connection could be had; ``outcome`` where the target is not to blame."""
        self.task = None
        self.attempt_failed("E901", f"could not connect to {self.backend.name}: {why}", outcome)

    def _send(self, upstream: Upstream, now: float) -> None:
        self.upstream = upstream
        self.sent_at = now
        pieces = self.pieces
        if pieces is not None and not (self.full and self.backend.retry is not None and self.size <= again.REPLAY):
            self.pieces, self.gone = None, True
        if self.full:
            upstream.begin(self, self.request_head(now), pieces)
            self._await_answer(now)
        else:
            self._send_as_it_comes(upstream, pieces, now)

    def _send_as_it_comes(self, upstream: Upstream, pieces: list[bytes] | None, now: float) -> None:
        settings = self.backend.settings
        self.phase, self.gone = SENDING, True
        self.asking = self.request.expect and not pieces
        self.until = now + (settings.read if self.asking else self.client.hub.settings.body_gap)
        self.client.resume()  # before the target says through begin() that it takes no more for now
        upstream.begin(self, self.request_head(now), pieces)
        if self.defaulted and settings.budget_scope != "all":
            self.deadline = inf  # the time to send a long body is the client's own; see complete()
        self.arm()

    def _await_answer(self, now: float) -> None:
        backend = self.backend
        self.phase = WAITING
        self.attempt_ends = now + backend.attempt_limit
        self.until = now + backend.read
        self.arm()

    # -- the answer comes back: what is common to both doors
    def through_tunnel(self, data: bytes) -> None:
        """Bytes from the client, once the protocol has been switched."""
        if self.upstream is not None:
            self.until = self.backend.clock() + self.client.hub.settings.idle_timeout
            self.upstream.write(data)

    def heard(self) -> None:
        """The target has said something that is no whole head yet. Where the body is not in, the client's pace counts."""
        now = self.backend.clock()
        if self.phase == SENDING:
            self.asking = False
            self.until = now + self.client.hub.settings.body_gap
        else:
            self.until = min(now + self.backend.settings.read, self.attempt_ends)
        self.arm()

    def end_of_answer(self, keep: bool) -> None:
        """The answer has been passed on whole: everything taken goes back."""
        now = self.backend.clock()
        upstream = self.upstream
        if upstream is not None:
            self.upstream = None
            upstream.keep = upstream.keep and self.full
            upstream.release(now)
        client = self.client
        self._finish(self.code, now)
        client.over(keep)

    def broken(self, why: str) -> None:
        """The target broke off, or what came is not HTTP."""
        upstream = self.upstream
        reused = upstream is not None and upstream.reused
        if reused and self.phase == WAITING and again.replay(self):
            return
        more = {} if self.started else {"maybe_executed": True}
        self.attempt_failed("E903", f"{self.backend.name}: {why}", DISCARDED if reused else None, **more)

    # -- time
    def arm(self) -> None:
        """Have the client's connection look at the earlier of the two limits; a later one than it stands for is free."""
        client = self.client
        client.due = due = self.deadline if self.deadline < self.until else self.until
        if due * RATE < client.armed:
            client.set_due(due)

    def on_due(self, now: float) -> None:
        """A limit may have passed."""
        if now >= self.deadline:
            limits.budget_over(self, now)
        elif now >= self.until:
            limits.too_long(self, now)
        if self.phase != DONE:
            self.arm()

    # -- ends that are none of the good ones
    def attempt_failed(self, code: str, detail: str, outcome: Outcome | None = None, **more: Any) -> None:
        """The attempt ended without a whole answer; ``outcome`` where it is not what the code says."""
        outcome = outcome or self.backend.judge(code)
        if self.token is None and outcome is FAILURE:  # settled at the head: what came after is a failure of its own
            self.backend.breaker.record_failure(code)
        if self.backend.retry is None or not again.failed_attempt(self, code, detail, outcome, more):
            self.fail(code, detail, outcome, **more)

    def fail(
        self, code: str, detail: str, outcome: Outcome = DISCARDED, retry_after: float | None = None, **more: Any
    ) -> None:
        """End with the hub's own answer; where the target's has begun already, by closing without a proper end."""
        if self.phase == DONE:
            return
        if self.course is not None:
            if again.refused(self, code, detail, retry_after):
                return
            detail, more = again.in_words(self, self.course, detail, more)
        client, started = self.client, self.started
        if not started:
            self.status = CODES[code].status
        self.settle(outcome, code)
        self.drop_upstream()
        self._finish(code, self.backend.clock())
        if started:
            client.cut(by_reset=not self.request.v11)
        else:
            self.reply(client, code, detail, retry_after, more)

    def reply(
        self, client: Client | Ghost, code: str, detail: str, retry_after: float | None, more: dict[str, Any]
    ) -> None:
        """Write an answer of the hub's own."""
        keep = self.keep and self.full and self.request.v11 and not client.hub.draining
        request = self.request
        timing = server_timing(self) if self.backend.times and (self.timed or client.hub.times_all) else b""
        head, body = problem(
            code, detail, target=self.backend.name, retry_after=retry_after, request_id=self.request_id, extra=timing,
            close=not keep, **more,
        )  # fmt: skip
        client.reply(head, b"" if request.method == b"HEAD" else body, keep)

    def fault(self) -> None:
        """A fault of the hub's own is being handled: it ends this exchange, and says nothing about the target."""
        log.exception("a request to %s met a fault of the hub itself", self.backend.name)
        self.fail("E999", "the hub made a mistake; its log says where")

    def client_gone(self) -> None:
        """Nobody waits for the answer any more."""
        if self.phase in (CONNECTING, WAITING) and self.full and type(self.token) is Trial:
            go_on_alone(self, "C499", "")
        elif self.phase != DONE:
            self.settle(CUT, "C499")
            self.drop_upstream()
            self._finish("C499", self.backend.clock())

    # -- giving back
    def settle(self, outcome: Outcome, word: str = "") -> None:
        """Report to the breaker, once for each attempt."""
        token = self.token
        if token is not None:
            self.token = None
            if outcome is CUT:
                self.backend.breaker.settle(token, CUT, word, began=self.sent_at)
            else:
                self.backend.breaker.settle(token, outcome, word)

    def drop_upstream(self) -> None:
        """End the connection to the target, or the attempt to get one."""
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.drop()
        task, self.task = self.task, None
        if task is not None:
            task.cancel()

    def _finish(self, code: str, now: float) -> None:
        self.phase = DONE
        self.pieces = None
        backend = self.backend
        bulkhead = backend.bulkhead
        if self.ticket is not None:
            bulkhead.withdraw(self.ticket)
            self.ticket = None
            self.queued += now - self.lined_up
        free = self.held
        if free is not None:
            self.held = None
            free.append(True)
            if bulkhead.alert:
                bulkhead.pump()
        if backend.retry is not None and self.course is not None:
            again.finished(self, self.course, code)
        if not self.counted:
            self.count(code, now)
        self.client.exchange = None

    def count(self, code: str, now: float) -> None:
        """Evidence: once for each exchange."""
        self.counted = True
        self.code = code
        seconds = now - self.began
        self.backend.count(code, seconds)
        log = self.client.hub.access_log
        if log is not None:
            log.write(self.client.hub.access_line(self, seconds))
