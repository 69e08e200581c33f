"""Samplers that are programs: one JSON value a line in, one report a line out (docs/audit-sampler.md)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import IO, cast

import click

__all__ = ["LineSampler", "SamplerFailed"]

_LINES_AT_ONCE = 4096
#: Seconds that a program which closed its output has to end by itself and so tell its exit code.
_PATIENCE = 5.0


class SamplerFailed(click.ClickException):
    """The program ended, or said too little or too much."""


class LineSampler:
    """``sampler(value, n)``: n reports from a program that reads a value a line and writes a report a line.

    Each value has a process of its own that reads the value ``trials`` times and then the end of its input. A thread
    feeds it while its reports are read, so neither side waits for the other, and a program that keeps its output in a
    buffer until its input ends is served as well.
    """

    def __init__(self, command: Sequence[str], trials: int) -> None:
        self._command, self._trials = list(command), trials
        self._running: dict[object, _Process] = {}

    def __call__(self, value: object, n: int) -> list[bytes]:
        if value not in self._running:
            self._running[value] = _Process(self._command, value, self._trials)
        return self._running[value].read(n)

    def __enter__(self) -> LineSampler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._running.values():
            process.stop()


class _Process:
    def __init__(self, command: list[str], value: object, trials: int) -> None:
        self._name, self._trials, self._read = f"{command[0]} (for {value!r})", trials, 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in stop)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError as error:
            self._errors.close()
            raise SamplerFailed(f"cannot start {command[0]}: {error.strerror}") from None
        self._reports = cast(IO[bytes], self._process.stdout)
        line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
        self._feeder = threading.Thread(target=self._feed, args=(line,), daemon=True)
        self._feeder.start()

    def _feed(self, line: bytes) -> None:
        # A program that ended early is noticed where its reports are read.
        values = cast(IO[bytes], self._process.stdin)
        with contextlib.suppress(OSError, ValueError):
            for left in range(self._trials, 0, -_LINES_AT_ONCE):
                values.write(line * min(left, _LINES_AT_ONCE))
        with contextlib.suppress(OSError, ValueError):
            values.close()

    def read(self, n: int) -> list[bytes]:
        """The next n reports; after the last of all, the program must have no more to say."""
        reports = []
        for _ in range(n):
            report = self._reports.readline()
            if not report:
                raise self._ended(f"wrote {self._read:,} reports and ended; {self._trials:,} were asked for")
            reports.append(report.removesuffix(b"\n"))
            self._read += 1
        if self._read == self._trials:
            if self._reports.readline():
                raise SamplerFailed(f"{self._name} wrote more than one line a value: {self._trials:,} were asked for")
            if self._process.wait() != 0:
                raise self._ended("failed after its last report")
        return reports

    def _ended(self, outcome: str) -> SamplerFailed:
        stderr_lines = self.stop(_PATIENCE)
        why = f": {stderr_lines[-1]}" if stderr_lines else ""
        return SamplerFailed(f"{self._name} {outcome} (exit code {self._process.returncode}{why})")

    def stop(self, timeout: float = 0) -> list[str]:
        """End the program, unless it ends by itself within so many seconds; what it wrote on stderr."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reports.close()
        self._feeder.join(_PATIENCE)
        if self._errors.closed:
            return []
        with self._errors as errors:
            errors.seek(0)
            return errors.read().decode(errors="replace").strip().splitlines()
