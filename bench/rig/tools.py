"""Which programs and packages a benchmark needs, what to install where one is missing, and their versions."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess

from rig.procs import BenchError

PROGRAMS = {
    "wrk": ("the load generator", "apt install wrk"),
    "nginx": ("the target and the measure", "apt install nginx-light"),
    "haproxy": ("a rival", "apt install haproxy"),
    "valgrind": ("counts instructions", "apt install valgrind"),
}
PACKAGES = {"aiohttp": ("the aiohttp rival", "pip install aiohttp, or `make bench`")}
BENCH_PATH = "/usr/sbin:/sbin"  # where Debian keeps nginx and haproxy, and a user's PATH does not look


def widen_path() -> None:
    """Look for servers in the administrator's folders too."""
    if BENCH_PATH not in os.environ.get("PATH", ""):
        os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{BENCH_PATH}"


def missing(name: str) -> str | None:
    """A line that says what is missing and how to get it, or ``None`` when it is there."""
    if name in PROGRAMS and not shutil.which(name):
        what, how = PROGRAMS[name]
        return f"{name} ({what}) is not installed: {how}"
    if name in PACKAGES and not importlib.util.find_spec(name):
        what, how = PACKAGES[name]
        return f"the package {name} ({what}) is not installed: {how}"
    return None


def need(*names: str) -> None:
    """Raise :class:`BenchError` naming the first that is missing."""
    for name in names:
        if line := missing(name):
            raise BenchError(line)


def _program_version(name: str, flag: str) -> str | None:
    if not shutil.which(name):
        return None
    done = subprocess.run([name, flag], capture_output=True, text=True, timeout=10, check=False)
    found = re.search(r"\d+\.\d+[.\d]*", done.stdout + done.stderr)
    return f"{name} {found[0] if found else '?'}"


def _package_version(name: str) -> str | None:
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def machine_line() -> str:
    """What was measured with: cores, kernel, interpreter and versions, for whoever reads the table later."""
    parts: list[str | None] = [
        f"{os.cpu_count()} cores", f"Linux {platform.release().split('-')[0]}",
        f"{platform.python_implementation()} {platform.python_version()}",
        *(_package_version(p) for p in ("seawall", "uvloop", "aiohttp")),
        *(_program_version(p, f) for p, f in (("nginx", "-v"), ("haproxy", "-v"), ("wrk", "-v"))),
    ]
    return ", ".join(p for p in parts if p)
