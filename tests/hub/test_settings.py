"""The hub's settings: what is written is read with its unit, what cannot work is refused, all faults at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from seawall.errors import ConfigError
from seawall.hub.settings import (
    HUB_KINDS,
    LIMITS,
    TARGET_KINDS,
    Address,
    HubSettings,
    TargetSettings,
    arithmetic,
    parse_target,
    read_settings,
    warnings_of,
)

CORE = TargetSettings(name="CORE", host="127.0.0.1", port=9201)
URL = "http://127.0.0.1:9201"


def faults(call: Any, *args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        call(*args, **kwargs)
    return str(refused.value).splitlines()


# -- addresses


@pytest.mark.parametrize(
    ("text", "host", "port", "again"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("[::1]:8080", "::1", 8080, "[::1]:8080"),
        (":8080", "0.0.0.0", 8080, "0.0.0.0:8080"),
        ("localhost:0", "localhost", 0, "localhost:0"),
        ("hub.example:65535", "hub.example", 65535, "hub.example:65535"),
    ],
)
def test_an_address_is_read_and_written_back(text: str, host: str, port: int, again: str) -> None:
    address = Address.parse(text)
    assert (address.kind, address.host, address.port, str(address)) == ("tcp", host, port, again)
    assert Address.parse(again) == address


def test_a_unix_address_is_a_path() -> None:
    address = Address.parse("unix:/run/x.sock")
    assert (address.kind, address.path, str(address), address.is_loopback) == (
        "unix",
        "/run/x.sock",
        "unix:/run/x.sock",
        True,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("8080", "127.0.0.1:8080"),
        ("", "is no address"),
        ("localhost", "is no address"),
        ("127.0.0.1:", "is no address"),
        ("127.0.0.1:http", "is no address"),
        ("127.0.0.1:65536", "from 0 to 65535"),
        ("::1:8080", "brackets"),
        ("[127.0.0.1]:80", "no IPv6"),
        ("[::1]", "is no address"),
        ("*:8080", ":8080 for every IPv4"),
        ("1.2.3:80", "no host name"),
        ("unix:", "needs the path"),
        ("unix:/" + "x" * 107, "at most 107 bytes"),
        ("a b:80", "no host name"),
    ],
)
def test_what_is_no_address_is_refused_with_how_to_write_one(text: str, says: str) -> None:
    [fault] = faults(Address.parse, text)
    assert says in fault


@pytest.mark.parametrize("place", ["127.0.0.1:8080", "[::1]:8080", ":0", "unix:/run/x.sock", "unix:/run/a,b.sock"])
def test_a_listener_may_ignore_budgets(place: str) -> None:
    """The word stands behind the address; it is no part of where that is."""
    assert Address.parse(place).budget == Address.parse(f"{place},budget=heed").budget == "heed"
    ignoring = Address.parse(f"{place},budget=ignore")
    assert (ignoring.budget, str(ignoring)) == ("ignore", str(Address.parse(place)))


@pytest.mark.parametrize("option", ["budget=no", "budget=", "trust=no", "budgets=ignore", "budget=ignore,x=y"])
def test_what_may_stand_behind_an_address_is_said(option: str) -> None:
    [fault] = faults(Address.parse, f"127.0.0.1:8080,{option}")
    assert "budget=heed or budget=ignore" in fault


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("127.0.0.9:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        (":1", False),
        ("[::]:1", False),
        ("hub.example:1", False),
    ],
)
def test_an_address_knows_whether_other_machines_reach_it(text: str, loopback: bool) -> None:
    assert Address.parse(text).is_loopback is loopback


# -- one target


def test_the_defaults_are_those_of_the_promise() -> None:
    assert (CORE.fail_threshold, CORE.reset_timeout, CORE.max_inflight, CORE.max_queue) == (5, 10.0, 10, 0)
    assert (CORE.connect, CORE.read, CORE.budget_ms, CORE.min_ms) == (0.3, 2.0, 3000, 0)
    assert CORE.failures == frozenset({"E500", "E901", "E902", "E903"})


def test_every_setting_of_a_target_can_be_said_by_a_flag() -> None:
    places = {"name", "host", "port", "scheme", "path"}
    assert {field.name for field in dataclasses.fields(TargetSettings)} == places | TARGET_KINDS.keys()
    apart = {"targets", "listen", "admin"}
    assert {field.name for field in dataclasses.fields(HubSettings)} == apart | LIMITS.keys() | HUB_KINDS.keys()


def test_a_target_is_read_with_its_own_settings_over_the_defaults() -> None:
    text = "CLAIM=https://[::1]/base/,max-inflight=40,read=5,connect=250ms,reset-timeout=1m,budget-ms=8s,failures=E500+E901,verify=no"
    claim = parse_target(text, {"read": 9.0, "max_queue": 3})
    assert claim == TargetSettings(
        name="CLAIM",
        host="::1",
        port=443,
        scheme="https",
        path="/base",
        max_inflight=40,
        max_queue=3,
        read=5.0,
        connect=0.25,
        reset_timeout=60.0,
        budget_ms=8000,
        failures=frozenset({"E500", "E901"}),
        verify=False,
    )
    assert claim.url == "https://[::1]:443/base"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("A=http://h", "http://h:80"),
        ("A=http://h/", "http://h:80"),
        ("A=http://h:1/a=b/c", "http://h:1/a=b/c"),
        ("A=http://h:1/a%2Cb,read=1", "http://h:1/a%2Cb"),
    ],
)
def test_the_url_of_a_target_is_completed(text: str, url: str) -> None:
    assert parse_target(text).url == url


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CORE=127.0.0.1:9201", "no http:// or https:// URL"),
        ("CORE=ftp://h", "no http:// or https://"),
        ("CORE=", "no http://"),
        ("CORE=http://h:99999", "is no URL"),
        ("CORE=http://h:0", "port: is a whole number from 1"),
        ("CORE=http://u:p@h", "user or password"),
        ("CORE=http://h/?q", "query"),
        ("CORE=http://h/#f", "fragment"),
        ("CORE=http://h/a b", "spaces"),
        ("CORE=http://h/\n", "spaces"),
        ("CORE=http://é", "beyond ASCII"),
        ("tx=" + URL, "tx is reserved"),
        ("C/E=" + URL, "name: is 1 to 64"),
        ("=" + URL, "name: is 1 to 64"),
        ("x" * 65 + "=" + URL, "name: is 1 to 64"),
        (f"CORE={URL},raed=1", "did you mean read?"),
        (f"CORE={URL},zzz=1", "there are: fail-threshold"),
        (f"CORE={URL}/a,b", "a comma inside the URL is written %2C"),
        (f"CORE={URL},failures=E500,E901", "codes are joined by +"),
        (f"CORE={URL},read=1,read=2", "given twice"),
        (f"CORE={URL},read=2x", "write seconds, or a unit as in 250ms"),
        (f"CORE={URL},read=", "is not a time"),
        (f"CORE={URL},read=0", "more than 0"),
        (f"CORE={URL},read=nan", "is not a time"),
        (f"CORE={URL},connect=100000", "a bare number is seconds"),
        (f"CORE={URL},max-inflight=0", "from 1 to"),
        (f"CORE={URL},max-inflight=1.5", "write digits"),
        (f"CORE={URL},budget-ms=1.5", "write milliseconds"),
        (f"CORE={URL},min-ms=3000", "leaves no call"),
        (f"CORE={URL},budget-scope=hed", "did you mean head?"),
        (f"CORE={URL},host-header=a b", "a host to send"),
        (f"CORE={URL},verify=no", "only for https://"),
        (f"CORE={URL},sni=x.example", "only for https://"),
        ("CORE=https://h,ca=/nonexistent.pem", "cannot be read"),
        ("CORE=https://h,verify=perhaps", "is yes or no"),
    ],
)
def test_what_cannot_be_a_target_is_refused_with_the_reason(text: str, says: str) -> None:
    [fault] = faults(parse_target, text)
    assert says in fault


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize(
    ("codes", "says"),
    [
        ("E904", "the call was not made"),
        ("E905", "the call was not made"),
        ("E906", "the call was not made"),
        ("E907", "the call was not made"),
        ("E908", "the call was not made"),
        ("E400", "no failure of the target"),
        ("E999", "no failure of the target"),
        ("B201", "the word any"),
        ("0000", "the word any"),
        ("E9O1", "did you mean E901?"),
        ("", "no code that can count"),
        ("E500+E904", "E904 means the call was not made"),
    ],
)
def test_what_can_never_be_a_failure_of_the_target_cannot_be_chosen(codes: str, says: str) -> None:
    [fault] = faults(parse_target, f"CORE={URL},failures={codes}")
    assert says in fault


@pytest.mark.req("HUB-7")
def test_the_strict_rule_can_be_chosen() -> None:
    assert parse_target(f"CORE={URL},failures=any").failures == "any"
    assert read_settings(targets=[f"CORE={URL}"], failures="E500,E902").targets[0].failures == frozenset({"E500", "E902"})


def test_settings_made_in_code_obey_the_same_rules_and_tell_all_faults_at_once() -> None:
    wrong: dict[str, Any] = {
        "read": "2",
        "connect": float("nan"),
        "max_inflight": True,
        "failures": frozenset(),
        "verify": 1,
    }
    found = faults(TargetSettings, name="CORE", host="a b", port=9201, **wrong)
    keys = ["max_inflight", "connect", "read", "failures", "verify", "host"]
    assert [fault.split(": ")[:2] for fault in found] == [["target CORE", key] for key in keys]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CORE.read = 1.0  # type: ignore[misc]  # that it is an error is the point


def test_a_ca_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("x")
    assert parse_target(f"CORE=https://h,ca={file}").ca == str(file)


# -- what it amounts to


def test_the_arithmetic_of_a_target_is_one_line() -> None:
    assert arithmetic(CORE) == (
        "CORE  http://127.0.0.1:9201  10 at once, none waiting: at 50 ms a call 200 requests/s; "
        "a caller waits at most 2.3 s for the first byte (connect 0.3 + read 2), budget 3 s; "
        "opens after 5 failures in a row for 10 s"
    )
    line = arithmetic(dataclasses.replace(CORE, max_queue=4, max_wait=0.5, budget_ms=2500, failures="any"))
    assert "up to 4 waiting 0.5 s" in line
    assert "at most 2.5 s for the first byte (in line 0.5 + connect 0.3 + read 2), budget 2.5 s" in line
    assert "opens after 5 answers other than 0000 in a row" in line


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"read": 2.8}, "more than the budget of 3 s"),
        ({"max_queue": 1}, "max-wait 10 s reaches the budget"),
        ({"read": 3000.0, "budget_ms": 9_000_000}, "3000ms would be milliseconds"),
        ({"scheme": "https", "verify": False}, "certificate is not verified"),
    ],
)
def test_what_is_probably_not_meant_is_said(settings: dict[str, Any], says: str) -> None:
    assert warnings_of(CORE) == []
    [warning] = warnings_of(dataclasses.replace(CORE, **settings))
    assert warning.startswith("CORE: ")
    assert says in warning


def test_a_margin_that_leaves_the_target_nothing_is_refused() -> None:
    [fault] = faults(parse_target, f"CORE={URL},budget-ms=100,budget-margin-ms=100")
    assert fault == "target CORE: budget_margin_ms: 100 of a budget of 100 ms leaves the target nothing"


# -- the hub


def test_a_hub_needs_no_more_than_a_target() -> None:
    hub = HubSettings(targets=(CORE,))
    assert [str(address) for address in hub.listen] == ["127.0.0.1:8080"]
    assert (str(hub.admin), hub.tx_path, hub.breaker_log, hub.default) == ("127.0.0.1:8090", "/tx", "breaker.log", None)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"targets": ()}, "at least one"),
        ({"targets": (CORE, CORE)}, "CORE is given 2 times"),
        ({"default": "CLAIM"}, "none of the targets: CORE"),
        ({"tx_path": "tx"}, "a path without query"),
        ({"tx_path": "/CORE/tx"}, "would hide a part of target CORE"),
        ({"health_path": "/tx"}, "transaction door"),
        ({"health_path": "/CORE"}, "would hide"),
        ({"listen": ()}, "at least one address"),
        ({"listen": (Address.parse(":1"), Address.parse(":1"))}, "given 2 times"),
        ({"admin": Address.parse("127.0.0.1:8080")}, "of its own"),
        ({"admin": Address.parse(":8090")}, "no password"),
        ({"max_head": 10}, "from 1024"),
        ({"max_connections": 0}, "from 1"),
        ({"budget_max_ms": 0}, "budget_max_ms: is a whole number from 1"),
        ({"targets": (dataclasses.replace(CORE, min_ms=500),), "budget_max_ms": 500}, "budget_max_ms: target CORE: min_ms"),
        ({"server_timing": "al"}, "did you mean all?"),
        ({"admin": Address.parse("127.0.0.1:1,budget=ignore")}, "only behind --listen"),
        ({"listen": (Address.parse(":1"), Address.parse(":1,budget=ignore"))}, "given 2 times"),
        ({"idle_timeout": -1}, "more than 0"),
        ({"drain_timeout": -1}, "from 0"),
        ({"breaker_log": ""}, "path of a file"),
    ],
)
def test_a_hub_that_cannot_work_is_refused(settings: dict[str, Any], says: str) -> None:
    [fault] = faults(HubSettings, **{"targets": (CORE,), **settings})
    assert says in fault


def test_the_hubs_maximum_lowers_what_targets_allow() -> None:
    """Where a target allows less, that stays; so what --check says and warns of is what holds."""
    hub = read_settings(targets=[f"CORE={URL},budget-ms=800", "CLAIM=http://127.0.0.1:9202"], budget_max_ms="1s")
    assert [target.budget_ms for target in hub.targets] == [800, 1000]
    assert "budget 1 s" in arithmetic(hub.targets[1])
    assert read_settings(targets=[f"CORE={URL}"]).budget_max_ms is None


def test_two_listeners_may_both_let_the_system_choose_a_port() -> None:
    free = Address.parse("127.0.0.1:0")
    assert HubSettings(targets=(CORE,), listen=(free, free), admin=free).listen == (free, free)


def test_a_command_line_becomes_settings() -> None:
    hub = read_settings(
        targets=[f"CORE={URL}", "CLAIM=http://127.0.0.1:9202,max-inflight=40"],
        listen=["127.0.0.1:0", "unix:/run/hub.sock"],
        max_inflight="7",
        body_gap="4",
        admin="off",
        health_path="/healthz",
        max_connections="50",
        trust_forwarded=True,
        access_log="-",
        drain_delay=None,
    )
    assert [(target.name, target.max_inflight, target.body_gap) for target in hub.targets] == [
        ("CORE", 7, 4.0),
        ("CLAIM", 40, 4.0),
    ]
    assert [str(address) for address in hub.listen] == ["127.0.0.1:0", "unix:/run/hub.sock"]
    assert (hub.body_gap, hub.admin, hub.health_path, hub.max_connections) == (4.0, None, "/healthz", 50)
    assert (hub.trust_forwarded, hub.access_log, hub.tx_path, hub.drain_delay) == (True, "-", "/tx", 0.0)


def test_a_single_target_may_go_without_a_name_and_is_the_default() -> None:
    hub = read_settings(targets=[f"{URL},read=1"])
    assert (hub.targets[0].name, hub.targets[0].read, hub.default, hub.tx_path) == ("target", 1.0, "target", None)


def test_with_a_default_the_transaction_door_is_off_unless_asked_for() -> None:
    assert read_settings(targets=[f"CORE={URL}"], default="CORE").tx_path is None
    assert read_settings(targets=[f"CORE={URL}"], default="CORE", tx_path="/tx").tx_path == "/tx"


def test_of_several_targets_each_needs_a_name() -> None:
    [fault] = faults(read_settings, targets=[URL, "CLAIM=http://h"])
    assert fault == f"--target {URL}: of several targets each has a name, as in CORE={URL}"


def test_all_faults_of_a_command_line_are_told_at_once() -> None:
    found = faults(
        read_settings,
        targets=[f"CORE={URL},raed=1,connect=x", "tx=http://h"],
        listen=["8080"],
        body_gap="x",
        min_ms="-1",
        admin="0.0.0.0:1",
        health_path="y",
        max_connections="0",
    )
    assert [fault.split(": ")[0] for fault in found] == [
        "--body-gap",
        "--min-ms",
        "--health-path",
        "--max-connections",
        "target CORE",
        "target CORE",
        "target tx",
        "--listen",
        "admin",
    ]


def test_no_target_at_all_is_a_fault_with_an_example() -> None:
    assert faults(read_settings, targets=[], read="x") == [
        "--read: 'x' is not a time: write seconds, or a unit as in 250ms, 2s, 1m",
        "--target: at least one is needed, as in --target CORE=http://127.0.0.1:9201",
    ]
