"""The house is in order: imports point one way, files are short, the public names are complete, the wheel is clean."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

import seawall
from tests.imports import ORDER, SRC, against_the_order, modules, room

ROOT = SRC.parent
LONGEST = 400       # lines; past that look for a second idea inside


def public_names() -> list[str]:
    """What a user sees as ``seawall.…``: no private names, no submodules, no ``__future__`` features."""
    return [name for name, value in vars(seawall).items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType)
            and type(value).__module__ != "__future__"]


def isort_order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, as ruff's RUF022 wants it."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def in_bare_python(code: str) -> str:
    """What ``code`` prints in a fresh interpreter that sees the standard library and src, no installed package."""
    program = f"import sys; sys.path.insert(0, {str(SRC)!r})\n{code}"
    done = subprocess.run([sys.executable, "-S", "-E", "-W", "error", "-c", program],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_has_its_room_in_the_order() -> None:
    """A new room is given its place in tests/imports.py, and in the map of seawall/__init__.py."""
    assert sorted({room(name) for name, _ in modules()} - set(ORDER)) == []


def test_imports_point_one_way() -> None:
    wrong = [fault for name, path in modules() if room(name) in ORDER
             for fault in against_the_order(path.read_text(encoding="utf-8"), name, path.stem == "__init__")]
    assert wrong == []


@pytest.mark.parametrize(("module", "line"), [
    ("seawall.errors", "import seawall.wall"),
    ("seawall.errors", "from seawall import Wall"),
    ("seawall.errors", "from . import wall"),
    ("seawall.policies.breaker", "from ..target import Target"),
    ("seawall.policies.breaker", "from .. import target"),
    ("seawall.wall", "from seawall.hub.server import Hub"),
    ("seawall.wall", "from seawall.shed import Tool"),
    ("seawall.drivers.aio", "def later():\n    from ..hub import relay"),
    ("seawall.drivers.aio", "if TYPE_CHECKING:\n    pass\nelse:\n    from ..hub import relay"),
])
def test_an_import_against_the_order_is_found(module: str, line: str) -> None:
    assert len(against_the_order(line, module)) == 1


@pytest.mark.parametrize(("module", "line"), [
    ("seawall.wall", "from .errors import ConfigError"),
    ("seawall.policies.breaker", "from . import slots\nfrom .slots import Slots\nfrom ..errors import SeawallError"),
    ("seawall.policies.breaker", "from .. import errors\nimport time\nfrom collections import deque"),
    ("seawall.hub.server", "from seawall import Wall, errors\nfrom ..faults import target"),
    ("seawall.errors", "if TYPE_CHECKING:\n    from .wall import Wall"),
    ("seawall.errors", "import typing\nif typing.TYPE_CHECKING:\n    from .wall import Wall"),
])
def test_an_import_with_the_order_is_not(module: str, line: str) -> None:
    assert against_the_order(line, module) == []


def test_the_package_itself_reaches_no_further_than_the_wall() -> None:
    assert against_the_order("from .wall import Wall", "seawall", is_package=True) == []
    assert len(against_the_order("from .hub import Hub", "seawall", is_package=True)) == 1
    assert len(against_the_order("from . import server\nfrom ..cli import x", "seawall.hub", is_package=True)) == 1


def test_no_file_is_too_long_to_be_read_in_one_sitting() -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_all_public_names_are_listed_and_sorted() -> None:
    listed = list(getattr(seawall, "__all__", []))
    assert listed == sorted(set(listed), key=isort_order)
    assert sorted(public_names()) == sorted(name for name in listed if not name.startswith("_"))
    assert [name for name in listed if not hasattr(seawall, name)] == []


@pytest.mark.parametrize("name", public_names())
def test_every_public_class_and_function_is_explained(name: str) -> None:
    """Its own words: neither what a dataclass generates nor what a base class says."""
    thing = getattr(seawall, name)
    if inspect.isclass(thing):
        doc = vars(thing).get("__doc__") or ""
        assert not doc.startswith(f"{thing.__name__}(")
    else:
        doc = inspect.getdoc(thing) or ""
    assert doc.strip()


def test_importing_the_library_is_light() -> None:
    """A program that never waits in a loop pays for no loop, no TLS and no HTTP; and nothing is printed."""
    assert in_bare_python("import seawall; print({'asyncio', 'ssl', 'http'} & set(sys.modules))") == "set()\n"


def test_the_library_needs_only_the_standard_library() -> None:
    installed = "[m for m in sys.modules if m.split('.')[0] not in {*sys.stdlib_module_names, '__main__', 'seawall'}]"
    assert in_bare_python(f"import seawall; print({installed})") == "[]\n"


def test_the_wheel_carries_the_types_and_the_package_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
                   cwd=ROOT, check=True, timeout=120, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "seawall/py.typed" in names
    assert {name.partition("/")[0] for name in names} == {"seawall", f"seawall-{seawall.__version__}.dist-info"}
    assert [name for name in names if "test" in Path(name).stem.lower().split("_")] == []


def test_every_relative_link_in_the_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [f"{page.relative_to(ROOT)}: {link}" for page in pages
              for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
              if "://" not in link and not link.startswith("mailto:") and not (page.parent / link).exists()]
    assert broken == []
