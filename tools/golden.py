"""Lay the code that the fused guard generates out as files (tests/guard/golden), for people, ruff and mypy to read.

    python tools/golden.py            compare the files with what is generated; exit 1 where they differ
    python tools/golden.py --write    write them anew

Each file is one shape: a short head with the names the code uses, then the code itself. Only the line that opens
``make`` is another: its parameters have their types there, so that mypy follows each attribute.
"""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import Path
from typing import Any

from seawall.guard.fused import STAR, signature
from seawall.guard.kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from seawall.guard.template import source

ROOT = Path(__file__).resolve().parent.parent
FILES = ROOT / "tests" / "guard" / "golden"
COMMAND = "python tools/golden.py --write"
ALL_MARKS = {"b": "breaker", "h": "bulkhead", "r": "retry", "t": "timeout"}

TYPES = {
    "fn": "Any", "stack": "Any", "breaker": "CircuitBreaker", "bulkhead": "Bulkhead", "retry": "Retry",
    "timeout": "Timeout", "calls": "count[int]", "places": "count[int]",
}  # fmt: skip
RUN = {FUNCTION: "run_function", COROUTINE: "run_coroutine", GENERATOR: "run_generator"}
RESUME = {FUNCTION: "resume_function", COROUTINE: "resume_coroutine"}
SEAWALL = {
    "Passage": "seawall.guard.passage", "spent": "seawall.guard.passage", "SUCCESS": "seawall.outcome",
    "used": "seawall.deadline", "ambient": "seawall.deadline", "remaining": "seawall.deadline",
    "fifo_of": "seawall.drivers.timers", "no_task": "seawall.drivers.timers", "Entry": "seawall.drivers.timers",
    "get_running_loop": "asyncio", "current_task": "asyncio",
}  # fmt: skip
HEAD = '''\
"""{title}: as generated for a function that takes ({parameters}).

Written by {command}; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

{standard}

{ours}


'''


def rich(a: Any, /, b: Any, *rest: Any, key: Any, **more: Any) -> None:
    """Has a parameter of every sort."""


def colliding(fn: Any, /, free: Any, alert: Any, *type: Any, run_: Any, **breaker: Any) -> None:
    """Has the generated code's own names for parameters."""


Shape = tuple[str, Kind, str, tuple[str, str, tuple[str, ...]]]


def shapes() -> list[Shape]:
    """``(file, kind, features, signature)`` of every file there is to be."""
    every, odd = signature(rich.__code__), signature(colliding.__code__)
    plain = [
        (f"{kind.value}_{'_'.join(ALL_MARKS[mark] for mark in features)}", kind, features, every)
        for kind in (FUNCTION, COROUTINE, GENERATOR)
        for features in ("b", "h", "bh")
    ]
    return [
        *plain,
        ("function_retry", FUNCTION, "r", every),
        ("function_breaker_bulkhead_retry", FUNCTION, "bhr", every),
        ("coroutine_retry", COROUTINE, "r", every),
        ("coroutine_timeout", COROUTINE, "t", every),
        ("coroutine_breaker_bulkhead_retry_timeout", COROUTINE, "bhrt", every),
        ("async_generator", ASYNC_GENERATOR, "bh", every),
        ("star", FUNCTION, "bhr", STAR),
        ("colliding", FUNCTION, "bhr", odd),
        ("colliding_generator", GENERATOR, "bh", odd),
        ("colliding_async_generator", ASYNC_GENERATOR, "bh", odd),
    ]


def generated(shape: Shape) -> tuple[str, str]:
    """The source of a shape and the suffix of its names, as the guard itself has them."""
    _, kind, features, (parameters, arguments, taken) = shape
    return source(kind, features, parameters, arguments, taken)


def page(shape: Shape) -> str:
    """The whole file of a shape."""
    name, kind, _, (parameters, _, _) = shape
    text, suffix = generated(shape)
    text = _with_types(text, suffix)
    standard, ours = _imports(text, suffix, kind)
    title = name.replace("_", " ").capitalize()
    return HEAD.format(title=title, parameters=parameters, command=COMMAND, standard=standard, ours=ours) + text


def _with_types(text: str, suffix: str) -> str:
    first, rest = text.split("\n", 1)
    if first != f"def make({', '.join(name + suffix for name in TYPES)}):":
        raise ValueError(f"make() has other parameters than this tool knows: {first}")
    parameters = "".join(f"    {name}{suffix}: {kind},\n" for name, kind in TYPES.items())
    return f"def make(\n{parameters}) -> Any:\n{rest}"


def _imports(text: str, suffix: str, kind: Kind) -> tuple[str, str]:
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    bare = {name.removesuffix(suffix) for name in used if name.endswith(suffix)}
    policies = {"Bulkhead", "CircuitBreaker", "Retry", "Timeout"}
    wanted: dict[str, set[str]] = {"itertools": {"count"}, "typing": {"Any"}, "seawall": policies}
    for name in bare & SEAWALL.keys():
        wanted.setdefault(SEAWALL[name], set()).add(_named(name, suffix))
    if "run" in bare:
        wanted.setdefault("seawall.guard.plain", set()).add(f"{RUN[kind]} as run{suffix}")
    if "resume" in bare:
        wanted.setdefault("seawall.guard.plain", set()).add(f"{RESUME[kind]} as resume{suffix}")
    if suffix:
        wanted["builtins"] = {_named(name, suffix) for name in bare if hasattr(builtins, name)}
    blocks: dict[bool, list[str]] = {False: [], True: []}
    for module, names in sorted(wanted.items()):
        blocks[module.startswith("seawall")] += _lines(module, names)
    return "\n".join(blocks[False]), "\n".join(blocks[True])


def _named(name: str, suffix: str) -> str:
    return f"{name} as {name}{suffix}" if suffix else name


def _lines(module: str, names: set[str]) -> list[str]:
    """One line for the plain names, one for each that is renamed: what ruff wants."""
    renamed = sorted((name for name in names if " as " in name), key=_order)
    together = sorted(names.difference(renamed), key=_order)
    lines = [f"from {module} import {', '.join(together)}"] if together else []
    return sorted([*lines, *(f"from {module} import {name}" for name in renamed)], key=lambda line: _order(line.split()[3]))


def _order(name: str) -> tuple[int, str]:
    bare = name.split()[0].rstrip(",")
    return (0 if bare.isupper() else 1 if bare[0].isupper() else 2, bare)


def differences() -> list[str]:
    """The files that are not what is generated, that are missing, or that nothing generates."""
    wanted = {f"{shape[0]}.py": page(shape) for shape in shapes()}
    found = {path.name: path.read_text(encoding="utf-8") for path in FILES.glob("*.py")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def write() -> None:
    """Make the files what is generated."""
    FILES.mkdir(exist_ok=True)
    for path in FILES.glob("*.py"):
        path.unlink()
    for shape in shapes():
        (FILES / f"{shape[0]}.py").write_text(page(shape), encoding="utf-8")


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        write()
        return 0
    for name in (wrong := differences()):
        print(f"{(FILES / name).relative_to(ROOT)} is not what is generated: {COMMAND}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
