"""Samplers that are programs: they read one JSON value per line and write one report per line.

``docs/audit-sampler.md`` describes the protocol.
"""

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

from sfumato._core import quantity

__all__ = ["LineSampler", "SamplerFailed"]

#: Lines per write to the program.
_LINES_AT_ONCE = 4096
#: Seconds to wait for the exit code of a program that closed its output; then the program is killed.
_PATIENCE = 5.0
_PROTOCOL = "A sampler must read one JSON value per line, write one report per line, and exit with code 0."


class SamplerFailed(click.ClickException):
    """The program ended early, or wrote too few or too many reports."""


class LineSampler:
    """A sampler that runs a program: ``sampler(value, n)`` returns n reports.

    Each value has a separate process, which reads the value ``trials`` times and then the end of its input. A thread
    writes the input while the caller reads the reports, so neither side blocks the other. A program that buffers its
    output until its input ends works as well.
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
    """One running program, which receives the same value on every line."""

    def __init__(self, command: list[str], value: object, trials: int) -> None:
        self._name, self._trials, self._read = f"{command[0]} (for {value!r})", trials, 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in stop)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError as error:
            self._errors.close()
            hint = "Check the command after --."
            raise SamplerFailed(f"cannot start {command[0]}: {error.strerror}. {hint}") from None
        self._reports = cast(IO[bytes], self._process.stdout)
        line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
        self._feeder = threading.Thread(target=self._feed, args=(line,), daemon=True)
        self._feeder.start()

    def _feed(self, line: bytes) -> None:
        """Write the value to the program; ignore a closed pipe, because ``read`` reports an early end."""
        values = cast(IO[bytes], self._process.stdin)
        with contextlib.suppress(OSError, ValueError):
            for remaining in range(self._trials, 0, -_LINES_AT_ONCE):
                values.write(line * min(remaining, _LINES_AT_ONCE))
        with contextlib.suppress(OSError, ValueError):
            values.close()

    def read(self, n: int) -> list[bytes]:
        """Return the next n reports; after the last one, check that the program wrote no more and succeeded."""
        reports = []
        for _ in range(n):
            report = self._reports.readline()
            if not report:
                raise self._ended(f"ended after {quantity(self._read, 'report')} of {self._trials:,}")
            reports.append(report.removesuffix(b"\n"))
            self._read += 1
        if self._read == self._trials:
            if self._reports.readline():
                raise SamplerFailed(
                    f"{self._name} wrote more reports than it read values ({self._trials:,}). {_PROTOCOL}"
                )
            if self._process.wait() != 0:
                raise self._ended("failed after its last report")
        return reports

    def _ended(self, outcome: str) -> SamplerFailed:
        """Return the error for a program that ended, with its exit code and its last line on standard error."""
        stderr_lines = self.stop(_PATIENCE)
        reason = f": {stderr_lines[-1]}" if stderr_lines else ""
        return SamplerFailed(f"{self._name} {outcome} (exit code {self._process.returncode}{reason}). {_PROTOCOL}")

    def stop(self, timeout: float = 0) -> list[str]:
        """Wait at most ``timeout`` seconds for the program, then kill it; return its lines on standard error."""
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
