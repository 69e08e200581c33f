"""What a machine may lack: a browser, Java, node, npm. Tests that need one are skipped with the reason, but fail where
``SFUMATO_ALL_COMPONENTS`` says that all of it must be there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["PATIENCE", "absent", "chromium"]

#: Milliseconds that a browser may take for anything: a slow machine must not fail a test.
PATIENCE = 120_000

# As root it needs no sandbox; nothing that it does by itself may go out.
_FLAGS = (
    "no-sandbox",
    "disable-gpu",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "no-first-run",
)


def absent(reason: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be absent."""
    if os.environ.get("SFUMATO_ALL_COMPONENTS"):
        pytest.fail(f"SFUMATO_ALL_COMPONENTS is set, and {reason}")
    pytest.skip(reason)


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A real browser without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("the package playwright, which drives the browser, is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        absent("there is no Chromium on this machine")
    with sync_playwright() as driver:
        given = [*(f"--{flag}" for flag in _FLAGS), *flags]
        browser = driver.chromium.launch(executable_path=found, args=given, timeout=PATIENCE)
        yield browser
        browser.close()
