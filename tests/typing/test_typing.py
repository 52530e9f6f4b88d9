"""mypy accepts every call of ok.py, and refuses every marked one of bad.py: guards keep the types of what they guard."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MARK = re.compile(r"  # type: ignore\[.*\]$")

pytestmark = pytest.mark.req("LIB-1")


def mypy(file: Path, cache: Path) -> list[str]:
    """What mypy finds in ``file``, with the project's own settings; it must have run through."""
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-error-summary", str(file)],
                          cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_what_must_check_does(cache: Path) -> None:
    assert mypy(HERE / "ok.py", cache) == []


def test_what_must_not_check_does_not(cache: Path) -> None:
    """No mark is there in vain (mypy reports those), and without the marks exactly the marked lines are wrong."""
    assert mypy(HERE / "bad.py", cache) == []
    lines = (HERE / "bad.py").read_text(encoding="utf-8").splitlines()
    bare = cache / "bare.py"
    bare.write_text("\n".join(MARK.sub("", line) for line in lines) + "\n", encoding="utf-8")
    wrong = {int(error.split(":")[1]) for error in mypy(bare, cache)}
    assert wrong == {number for number, line in enumerate(lines, 1) if MARK.search(line)}
    assert len(wrong) > 20
