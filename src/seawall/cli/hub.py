"""``seawall hub``: the relay. Every flag is read as text, so that all faults can be listed at once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from seawall.errors import ConfigError

from . import say
from .shape import Command, Option, verbose

__all__ = ["hub"]

_NO_PORT = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)

PLACES, LIMITS, CLIENTS, LOGS = "Where", "Each target (its own settings follow its URL)", "Clients", "Logs and operators"

# flag, what stands for its value, default as help shows it, section, help
FLAGS: tuple[tuple[str, str, str, str, str], ...] = (
    ("default", "NAME", "", PLACES, "The target of requests that name none; the path stays as it is."),
    ("tx-path", "PATH", "/tx, off with --default", PLACES, "Where transactions come in: POST {\"target\": NAME, …}."),
    ("health-path", "PATH", "", PLACES, "Answers 200 here, whatever the targets do; 503 once it drains."),
    ("fail-threshold", "N", "5", LIMITS, "Failures in a row that open the circuit."),
    ("reset-timeout", "SECONDS", "10", LIMITS, "How long it stays open before a trial."),
    ("max-inflight", "N", "10", LIMITS, "Calls at once; one more is answered E905 at once."),
    ("max-queue", "N", "0", LIMITS, "Calls that may wait for room."),
    ("max-wait", "SECONDS", "10", LIMITS, "How long they may wait."),
    ("connect", "SECONDS", "0.3", LIMITS, "Limit to connect."),
    ("read", "SECONDS", "2", LIMITS, "Limit without a byte until the answer begins."),
    ("budget-ms", "MS", "3000", LIMITS, "Budget of a request that brings none, and the most it may bring."),
    ("min-ms", "MS", "0", LIMITS, "With less left than this the call is not made."),
    ("retry", "N", "1", LIMITS, "Attempts in all, where a request may be sent again."),
    ("retry-base-ms", "MS", "50", LIMITS, "Ceiling of the first wait between attempts; it doubles."),
    ("retry-max-delay-ms", "MS", "2000", LIMITS, "The most that it grows to."),
    ("budget-margin-ms", "MS", "0", LIMITS, "Taken off the budget that the target is told."),
    ("budget-scope", "SCOPE", "auto", LIMITS, "What the budget covers: auto, head or all."),
    ("failures", "CODES", "E500,E901,E902,E903", LIMITS, "Codes that count against a target, or any (all but 0000)."),
    ("host-header", "WORD", "target", LIMITS, "The Host sent on: target, client (as received), or a host."),
    ("keepalive", "SECONDS", "60", LIMITS, "How long an idle connection to a target is kept."),
    ("budget-max-ms", "MS", "", CLIENTS, "No budget is longer, whatever a target's own is."),
    ("body-gap", "SECONDS", "30", CLIENTS, "Limit without a byte inside a body, from clients and from targets."),
    ("head-timeout", "SECONDS", "10", CLIENTS, "Limit for a client to send its request head."),
    ("idle-timeout", "SECONDS", "75", CLIENTS, "How long an idle client connection is kept."),
    ("max-connections", "N", "from the limit of descriptors", CLIENTS, "Connections from clients at once."),
    ("server-timing", "WORD", "auto", CLIENTS, "Which answers say where their time went: auto, all or off."),
    ("drain-delay", "SECONDS", "0", CLIENTS, "On SIGTERM: go on as before for this long."),
    ("drain-timeout", "SECONDS", "30", CLIENTS, "Then: how long running calls may take to end."),
    ("breaker-log", "FILE", "breaker.log", LOGS, "Gets a line for each change of state."),
    ("access-log", "FILE", "none", LOGS, "Gets a line for each request; - is standard output."),
    ("admin", "ADDRESS", "127.0.0.1:8090", LOGS, "Where the admin API listens; off for nowhere."),
)

SWITCHES: tuple[tuple[str, str, str], ...] = (
    ("trust-forwarded", CLIENTS, "Believe X-Forwarded-* of clients and extend it, instead of replacing it."),
    ("admin-allow-remote", LOGS, "Let --admin be an address that other machines reach; it has no passwords."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All flags of the table, in its order."""
    switches = [
        click.option(f"--{flag}", cls=Option, section=section, is_flag=True, default=None, help=text)
        for flag, section, text in SWITCHES
    ]
    valued = [
        click.option(f"--{flag}", cls=Option, section=section, metavar=metavar, help=_with(default, text))
        for flag, metavar, default, section, text in FLAGS
    ]
    # A decorator that is applied later stands earlier in the help.
    return reduce(lambda made, option: option(made), [*switches, *reversed(valued)], command)


def _with(default: str, text: str) -> str:
    return f"{text}  [{default}]" if default else text


@click.command(
    cls=Command,
    examples=(
        "seawall hub --target CORE=http://127.0.0.1:9201 --target CLAIM=http://127.0.0.1:9202,max-inflight=40,read=5",
        "curl localhost:8080/tx -d '{\"target\":\"CORE\",\"amount\":5}'; curl localhost:8080/CORE/any/path",
        "seawall hub --listen :8080 --target http://127.0.0.1:9201",
    ),
)
@click.option(
    "--target", "targets", cls=Option, section=PLACES, multiple=True, metavar="NAME=URL[,KEY=VALUE…]",
    help="A target, repeatable: http:// or https://, then its own settings, named as the flags below are, and "
    "idempotent=yes, ca=FILE, sni=HOST, verify=no. A single target may go without NAME: all requests are then for it.",
)
@click.option(
    "--listen", cls=Option, section=PLACES, multiple=True, metavar="ADDRESS",
    help="Where clients come in, repeatable: HOST:PORT, :PORT, [::1]:PORT or unix:PATH; behind it ,budget=ignore where "
    "their budgets are not to be heeded.  [127.0.0.1:8080]",
)
@_options
@click.option("--check", is_flag=True, help="Say what the settings amount to, and stop.")
@verbose
def hub(targets: tuple[str, ...], listen: tuple[str, ...], check: bool, **flags: str | bool | None) -> int:
    """Relay calls to targets, so that one that is slow or dead drags nothing else down.

    Bare numbers are seconds, those of flags that end in -ms milliseconds; 250ms, 2s and 1m carry their unit.
    POST /tx relays a transaction, /NAME/path anything. Refused at once: E904 circuit open, E905 no room, E906 no
    budget left.
    """
    from seawall.hub.settings import arithmetic, read_settings, warnings_of

    try:
        settings = read_settings(targets=targets, listen=listen, **flags)
    except ConfigError as fault:
        raise say.Stop(str(fault), hint="seawall hub --help lists each setting with its unit") from None
    for target in settings.targets:
        for warning in warnings_of(target):
            say.warning(warning)
    if check:
        for target in settings.targets:
            say.line(arithmetic(target))
        return say.DONE
    from seawall.hub.server import run

    try:
        return run(settings)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _cannot_start(error, [str(address) for address in (*settings.listen, settings.admin) if address]) from error


def _cannot_start(error: OSError, places: list[str]) -> say.Stop:
    """A log or a port that cannot be had; any other error of the system is no fault of the settings."""
    why = error.strerror or str(error)
    if why.startswith("cannot "):
        what, _, todo = why.partition("; ")
        return say.Stop(what, hint=todo)
    if isinstance(error, socket.gaierror) or error.errno in _NO_PORT:
        where = error.filename or " or ".join(places)
        todo = "--listen takes another address; --admin another, or off"
        return say.Stop(f"cannot listen on {where}", why.lower(), todo, say.UNAVAILABLE)
    raise error
