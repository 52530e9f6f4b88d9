"""F52: hub A in front of hub B, where CORE is dead; A counted B's refusals, opened for B, and CLAIM behind B was gone."""

from __future__ import annotations

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import LOOPS, answering, ask, hub_bed, raw_server, refusing, response

CORE, CLAIM = b'{"target": "CORE", "amount": 5}', b'{"target": "CLAIM", "amount": 5}'


@pytest.mark.fault("F52")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("rule", [None, "any"])
def test_what_a_further_hub_says_itself_proves_it_alive(rule: str | None, loop: str) -> None:
    """By either door of A: its circuit for B stays closed, CLAIM is served, and B's code, status and hint pass through."""
    with refusing() as port, running_target("CLAIM") as claim:
        targets = f"CORE=http://127.0.0.1:{port},reset-timeout=300", f"CLAIM={claim.url}"
        with hub_bed(*targets) as far, hub_bed(f"B=http://127.0.0.1:{far.port}", loop=loop, failures=rule) as near:
            for number in range(15):
                answers = [ask(near.port, "GET", "/B/CORE/x"), ask(near.port, "POST", "/B/tx", CORE)]
                expected = (502, "E901") if number < 2 else (503, "E904")
                for answer in answers if number != 2 else answers[1:]:
                    assert (answer.status, answer.code) == expected
                    assert ("retry-after" in answer.headers) == (expected[1] == "E904")
                    assert answer.json()["target"] == "CORE"
            assert near.run(lambda hub: hub.backends["B"].breaker.failures) == 0
            assert ask(near.port, "POST", "/B/tx", CLAIM).code == "0000"
            assert (near.state("B"), far.state("CORE")) == ("CLOSED", "OPEN")


@pytest.mark.fault("F52")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_transaction_through_two_transaction_doors(loop: str) -> None:
    """A's target is called as B's target is: what B answers, refusals included, is what the client reads."""
    with running_target("CORE") as core, hub_bed(f"CORE={core.url},fail-threshold=1,reset-timeout=300", loop=loop) as far:
        with hub_bed(f"CORE=http://127.0.0.1:{far.port},fail-threshold=1", loop=loop) as near:
            assert ask(near.port, "POST", "/tx", CORE).json()["balance"] == 1000
            assert ask(near.port, "POST", "/tx", b'{"target": "CORE", "amount": 5000}').code == "B201"
            core.ctl(mode="fail")
            failed, refused = ask(near.port, "POST", "/tx", CORE), ask(near.port, "POST", "/tx", CORE)
            assert [(answer.status, answer.code) for answer in (failed, refused)] == [(502, "E500"), (503, "E904")]
            assert 1 <= int(refused.headers["retry-after"]) <= 300
            assert refused.headers["content-type"] == "application/problem+json"
            assert (near.state(), far.state()) == ("CLOSED", "OPEN")
            assert near.codes() == {"0000": 1, "B201": 1, "E500": 1, "E904": 1}


@pytest.mark.fault("F52")
@pytest.mark.parametrize("code", ["x" * 5000, "E\u00e9", " "])
def test_a_code_that_is_none_does_not_spread(code: str) -> None:
    """Anybody may send the header: what cannot be a code is passed on where it stands, and counted under one name."""
    with raw_server(answering(response(503, b"{}", X_Seawall_Code=code))) as server, hub_bed(f"B={server.url}") as bed:
        assert ask(bed.port, "GET", "/B/x").status == 503
        assert ask(bed.port, "POST", "/tx", b'{"target": "B"}').status == 503
        assert bed.codes("B") == {code[:32] if code.startswith("x") else "_unreadable": 2}
