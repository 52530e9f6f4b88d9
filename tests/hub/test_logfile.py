"""Lines reach the file whole and in order; neither rotation nor a full disk ever holds up or fails the caller."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import pytest

from seawall.hub.logfile import LogFile, breaker_line

WAIT = 30.0  # bound of every wait; far more than is needed
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "breaker.log"


@pytest.fixture
def log(path: Path) -> Iterator[LogFile]:
    logfile = LogFile(path)
    logfile.open()
    yield logfile
    assert logfile.close(WAIT)


def written(log: LogFile, *lines: str) -> None:
    for line in lines:
        log.write(line)
    assert log.flush(WAIT)


def lines_of(path: Path) -> list[str]:
    text = path.read_text()
    assert not text or text.endswith("\n")
    return text.splitlines()


def open_files() -> set[Path]:
    return {Path(os.path.realpath(entry)) for entry in Path("/proc/self/fd").iterdir()}


@pytest.mark.req("HUB-6")
def test_lines_are_in_the_file_in_order_and_a_later_run_adds_to_them(path: Path, log: LogFile) -> None:
    written(log, "one", "two")
    assert lines_of(path) == ["one", "two"]
    again = LogFile(path)
    again.open()
    written(again, "three")
    assert again.close(WAIT)
    assert lines_of(path) == ["one", "two", "three"]
    assert (log.written, log.dropped, log.failed) == (2, 0, 0)


@pytest.mark.req("HUB-6")
def test_a_line_reaches_the_file_with_no_further_call(path: Path, log: LogFile) -> None:
    log.write("at once")
    end = time.monotonic() + WAIT
    while lines_of(path) != ["at once"]:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_what_a_line_contains_cannot_break_it(path: Path, log: LogFile) -> None:
    written(log, "a\nb\r", "caf\u00e9", "lone \udcff")
    assert path.read_bytes() == "a\\nb\\r\ncaf\u00e9\nlone \\udcff\n".encode()


@pytest.mark.fault("F57")
def test_after_rotation_lines_go_to_the_new_file(path: Path, log: LogFile) -> None:
    rotated = path.with_suffix(".1")
    written(log, "before")
    path.rename(rotated)
    written(log, "after", "after too")
    assert lines_of(rotated) == ["before"]
    assert rotated not in open_files()
    assert lines_of(path) == ["after", "after too"]
    path.unlink()
    written(log, "made anew")
    path.rename(rotated)
    path.write_text("by the rotator\n")
    written(log, "added")
    assert lines_of(rotated) == ["made anew"]
    assert lines_of(path) == ["by the rotator", "added"]
    assert log.failed == 0


@pytest.mark.fault("F57")
@needs_full
def test_a_full_disk_is_counted_said_once_and_got_over(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.symlink_to(FULL)
    log = LogFile(path)
    log.open()
    with caplog.at_level(logging.INFO, "seawall.hub"):
        written(log, "lost", "lost")
        written(log, "lost")
        assert (log.written, log.failed, log.dropped) == (0, 3, 0)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "no space left" in caplog.text
        assert "free some space" in caplog.text
        path.unlink()
        written(log, "kept", "kept too")
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
        assert "3 lines were lost" in caplog.text
    assert log.close(WAIT)
    assert lines_of(path) == ["kept", "kept too"]


@pytest.mark.fault("F57")
def test_a_directory_that_is_gone_is_got_over_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "logs" / "breaker.log"
    path.parent.mkdir()
    log = LogFile(path)
    log.open()
    with caplog.at_level(logging.INFO, "seawall.hub"):
        written(log, "kept")
        path.parent.rename(tmp_path / "old")
        written(log, "lost")
        written(log, "lost")
        path.parent.mkdir()
        written(log, "kept again")
    assert log.close(WAIT)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert (log.written, log.failed) == (2, 2)
    assert lines_of(path) == ["kept again"]


SHORT = """
import resource, sys
from seawall.hub.logfile import LogFile
log = LogFile(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (30, hard))
log.open()
log.write("a" * 20)
log.write("b" * 20)
log.flush(30)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.write("c" * 20)
print(log.close(30), log.written, log.failed)
"""


def test_half_a_line_never_joins_with_the_next(path: Path) -> None:
    """A file size limit makes the kernel take 9 bytes of 21, as a disk does that fills up."""
    run = subprocess.run(
        [sys.executable, "-c", SHORT, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.split() == ["True", "2", "1"]
    assert "file too large" in run.stderr
    assert lines_of(path) == ["a" * 20, "b" * 9, "c" * 20]


def test_a_short_write_is_carried_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    log = LogFile(path)
    log.open()
    written(log, "a line longer than seven", "b")
    assert log.close(WAIT)
    monkeypatch.undo()
    assert lines_of(path) == ["a line longer than seven", "b"]
    assert (log.written, log.failed) == (2, 0)


@pytest.mark.req("HUB-6")
def test_many_threads_write_whole_lines_each_in_its_order(path: Path, log: LogFile) -> None:
    def work(name: str) -> None:
        for number in range(300):
            log.write(f"{name}:{number}:{name * 50}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert log.flush(WAIT)
    found = lines_of(path)
    assert len(found) == log.written == 8 * 300
    for name in "abcdefgh":
        expected = [f"{name}:{number}:{name * 50}" for number in range(300)]
        assert [line for line in found if line.startswith(name)] == expected


WRITER = """
import sys
from seawall.hub.logfile import LogFile
logs = [LogFile(sys.argv[1]) for _ in range(2)]
for log in logs:
    log.open()
print("ready", flush=True)
sys.stdin.readline()
for number in range(500):
    for place, log in enumerate(logs):
        log.write(f"{sys.argv[2]}{place}:{number}:" + sys.argv[2] * 80)
sys.exit(0 if all([log.close(30) for log in logs]) else 1)
"""


@pytest.mark.req("HUB-6")
def test_two_processes_with_two_logs_each_never_mix_lines(path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "xy"
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.communicate("go\n", timeout=60)
            assert writer.returncode == 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait(WAIT)
    found = lines_of(path)
    assert len(found) == 2000
    for name in "xy":
        for place in range(2):
            expected = [f"{name}{place}:{number}:{name * 80}" for number in range(500)]
            assert [line for line in found if line.startswith(f"{name}{place}")] == expected


def test_what_exceeds_the_capacity_is_dropped_and_counted(path: Path) -> None:
    log = LogFile(path, capacity=3)
    for number in range(5):
        log.write(str(number))
    assert log.dropped == 2
    log.open()
    assert log.flush(WAIT)
    written(log, "room again")
    assert log.close(WAIT)
    assert lines_of(path) == ["0", "1", "2", "room again"]
    with pytest.raises(ValueError, match="at least 1"):
        LogFile(path, capacity=0)


@pytest.mark.fault("F57")
def test_a_disk_that_hangs_blocks_neither_writing_nor_closing(path: Path) -> None:
    """A pipe that is full stands for the disk: the writer thread hangs in its write."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fill_pipe(path)
    log = LogFile(path, capacity=50)
    log.open()
    for number in range(3000):
        log.write(f"{number}:" + "x" * 1000)
    assert (log.written, log.dropped) == (0, 2950)
    assert not log.flush(0.01)
    assert not log.close(0.01)
    os.set_blocking(reader, True)
    with os.fdopen(reader) as pipe:
        found = [line for line in pipe.read().splitlines() if line]
    assert log.close(WAIT)
    assert found == [f"{number}:" + "x" * 1000 for number in range(50)]


def fill_pipe(path: Path) -> None:
    """Put empty lines into the pipe until it takes not one byte more."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (65536, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(descriptor, b"\n" * size)
    finally:
        os.close(descriptor)


def test_close_writes_what_is_queued_and_takes_no_more(path: Path) -> None:
    log = LogFile(path)
    log.open()
    for number in range(1000):
        log.write(str(number))
    assert log.close(WAIT)
    assert lines_of(path) == [str(number) for number in range(1000)]
    log.write("too late")
    assert log.dropped == 1
    assert log.close(WAIT)
    assert len(lines_of(path)) == 1000


def test_close_frees_the_descriptor_and_the_thread(path: Path) -> None:
    log = LogFile(path)
    log.open()
    writer = next(thread for thread in threading.enumerate() if thread.name == f"seawall-log {path}")
    assert writer.daemon
    assert log.close(WAIT)
    assert not writer.is_alive()
    assert path not in open_files()


def test_a_file_that_cannot_be_opened_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        LogFile(tmp_path / "none" / "b.log").open()
    assert missing.value.strerror == (
        f"cannot write the log {tmp_path}/none/b.log: no such file or directory; "
        "create its directory first, or name another file"
    )
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        LogFile(tmp_path).open()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="start its reader first"):
        LogFile(tmp_path / "pipe").open()


def test_a_dash_is_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    log = LogFile("-")
    log.open()
    written(log, "seen")
    assert log.close(WAIT)
    os.write(1, b"still open\n")
    assert capfd.readouterr().out == "seen\nstill open\n"


class State(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"


@pytest.fixture
def kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "IST-5:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.req("HUB-6")
@pytest.mark.usefixtures("kolkata")
def test_the_breaker_line_has_local_time_with_offset() -> None:
    assert breaker_line("CORE", "OPEN", "HALF_OPEN", 0.1239) == "1970-01-01T05:30:00.123+05:30|CORE|OPEN->HALF_OPEN"
    assert breaker_line("CLAIM", State.CLOSED, State.OPEN, 0.0).endswith("|CLAIM|CLOSED->OPEN")


@pytest.mark.req("HUB-6")
def test_the_breaker_line_is_dated_now_unless_told() -> None:
    before = time.time()
    moment = datetime.fromisoformat(breaker_line("CORE", "CLOSED", "OPEN").split("|")[0])
    assert moment.utcoffset() is not None
    assert before - 0.001 <= moment.timestamp() <= time.time()
