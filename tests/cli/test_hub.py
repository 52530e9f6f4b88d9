"""``seawall hub``: its flags become settings, and what cannot work is listed whole before anything starts."""

from __future__ import annotations

import errno
import sys
import types

import pytest

from seawall.cli.hub import FLAGS, SWITCHES
from seawall.cli.main import main
from seawall.hub.settings import HUB_KINDS, LIMITS, TARGET_KINDS, HubSettings, TargetSettings

CORE = "CORE=http://127.0.0.1:9201"


def test_check_says_what_the_settings_amount_to_and_stops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hub", "--check", "--target", CORE, "--target", "CLAIM=http://h:1,read=5", "--max-inflight", "4"]) == 0
    told = capsys.readouterr()
    core, claim = told.out.splitlines()
    assert core.startswith("CORE  http://127.0.0.1:9201  4 at once, none waiting: at 50 ms a call 80 requests/s")
    assert claim.startswith("CLAIM  http://h:1  4 at once")
    assert told.err.startswith("warning: CLAIM: connect 0.3 s + read 5 s is more than the budget")


def test_every_fault_is_listed_and_the_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--target", CORE + ",raed=1", "--listen", "8080", "--fail-threshold", "0",
            "--failures", "E904", "--admin", ":1"]
    assert main(["hub", *args]) == 2
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert told.out == ""
    where = [line.split(": ")[1] for line in lines[:-1]]
    assert where == ["--fail-threshold", "--failures", "target CORE", "--listen", "admin"]
    assert {line.split(": ")[0] for line in lines[:-1]} == {"error"}
    assert lines[-1] == "hint: seawall hub --help lists each setting with its unit"


def test_a_hub_without_a_target_is_refused_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hub"]) == 2
    assert "error: --target: at least one is needed, as in --target CORE=http://127.0.0.1:9201\n" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code", "err"), [
    (OSError(errno.EADDRINUSE, "Address already in use"), 69,
     "error: cannot listen on 127.0.0.1:8080 or 127.0.0.1:8090 (address already in use)\n"
     "hint: --listen takes another address; --admin another, or off\n"),
    (OSError(errno.EACCES, "cannot write the log breaker.log: not allowed; choose another file"), 2,
     "error: cannot write the log breaker.log: not allowed\nhint: choose another file\n"),
    (OSError(errno.EIO, "Input/output error"), 70, "error: unexpected OSError: "),
])
def test_a_port_or_a_log_that_cannot_be_had_is_said_with_what_to_do(
    error: OSError, code: int, err: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(settings: HubSettings) -> int:
        raise error

    server = types.ModuleType("seawall.hub.server")
    monkeypatch.setattr(server, "run", fail, raising=False)
    monkeypatch.setitem(sys.modules, "seawall.hub.server", server)
    monkeypatch.delenv("SEAWALL_DEBUG", raising=False)
    assert main(["hub", "--target", CORE]) == code
    assert capsys.readouterr().err.startswith(err)


def test_every_flag_sets_something_and_help_shows_its_true_default() -> None:
    hub = HubSettings.__dataclass_fields__
    known = HUB_KINDS.keys() | TARGET_KINDS.keys() | LIMITS.keys() | {"admin"}
    fields = {flag.replace("-", "_") for flag, *_ in FLAGS} | {flag.replace("-", "_") for flag, *_ in SWITCHES}
    assert fields <= known
    without_flag = {"ca", "sni", "verify", "idempotent", "max_head", "max_body_tx"}
    assert known - fields == without_flag
    kinds = TARGET_KINDS | HUB_KINDS
    for flag, _, shown, *_ in FLAGS:
        field = flag.replace("-", "_")
        default = (hub.get(field) or TargetSettings.__dataclass_fields__[field]).default
        if field in kinds and default is not None and field != "tx_path":
            assert kinds[field].read(shown) == default, flag


@pytest.mark.req("HUB-3")
@pytest.mark.req("HUB-4")
def test_help_tells_the_defaults_of_breaker_and_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hub", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--fail-threshold N Failures in a row that open the circuit. [5]" in told
    assert "--reset-timeout SECONDS How long it stays open before a trial. [10]" in told
    assert "--max-inflight N Calls at once; one more is answered E905 at once. [10]" in told
    assert "--breaker-log FILE Gets a line for each change of state. [breaker.log]" in told
