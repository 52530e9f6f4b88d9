"""The examples of the adapters run against a partner, and print what the pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seawall.faults.running import running_partner

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples/adapters").glob("with_*.py"))
PRINTED = """\
fails twice: 200
a byte each 50 ms: DeadlineExceededError
is down: 500
is left alone: CircuitOpenError
"""


def test_there_is_one_for_each_client() -> None:
    assert [path.stem for path in EXAMPLES] == ["with_aiohttp", "with_httpx", "with_requests", "with_urllib3"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_page_says(example: Path) -> None:
    with running_partner() as partner:
        done = subprocess.run([sys.executable, "-W", "error", str(example), partner.url],
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == (PRINTED, "", 0)
