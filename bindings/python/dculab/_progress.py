"""Progress of calls that take long."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Union

# None: a bar in a terminal or notebook; False: nothing; True: a bar; or a function of a label and the share done.
Progress = Union[bool, Callable[[str, float], object], None]

SILENT_SECONDS = 0.5  # shorter calls show nothing
COLUMNS = 30


def _somebody_looks_on() -> bool:
    if "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


class Bar:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, label: str, share: float) -> None:
        if time.monotonic() - self._start < SILENT_SECONDS:
            return
        share = min(max(share, 0.0), 1.0)
        filled = int(share * COLUMNS)
        line = f"{'█' * filled}{'·' * (COLUMNS - filled)} {100 * share:3.0f} %  {label}"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width, end="\r", file=sys.stderr, flush=True)


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Callable[[str, float], object] | None]:
    """What to call with progress, if anything; a bar is gone afterwards."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _somebody_looks_on()):
        yield None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.clear()
