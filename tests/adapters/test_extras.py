"""Nothing is imported that the program did not install, and what is missing is said together with what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.imports import SRC


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run it in an interpreter that sees the standard library and src alone."""
    program = f"import sys; sys.path.insert(0, {str(SRC)!r})\n{code}"
    command = [sys.executable, "-S", "-E", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("extra", ["httpx", "httpx2", "requests", "urllib3", "aiohttp"])
def test_an_adapter_without_its_client_names_the_extra(extra: str) -> None:
    done = bare(f"import seawall.adapters.{extra}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: seawall.adapters.{extra} needs ")
    assert last.endswith(f"which is not installed: pip install 'seawall[{extra}]'")


def test_an_sdk_that_is_not_installed_is_named() -> None:
    done = bare("import seawall.llm as llm\nllm.options(None, 'openai')")
    assert "openai is not installed: pip install openai" in done.stderr.splitlines()[-1]


def test_a_program_need_not_import_them_by_name() -> None:
    """And ``import seawall`` loads none of them."""
    done = bare("import seawall\nassert 'seawall.adapters' not in sys.modules\nseawall.llm.options, seawall.adapters.asgi")
    assert (done.stderr, done.returncode) == ("", 0)
    assert "has no attribute 'adaptors'" in bare("import seawall\nseawall.adaptors").stderr
    assert "has no attribute 'htpx'" in bare("import seawall\nseawall.adapters.htpx").stderr


def test_the_others_need_nothing() -> None:
    done = bare("import seawall.adapters.asgi, seawall.adapters.wsgi, seawall.llm")
    assert (done.stderr, done.returncode) == ("", 0)
