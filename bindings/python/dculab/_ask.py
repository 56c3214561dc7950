"""Asks the extension module, and makes its answers."""

from __future__ import annotations

import json
from typing import Any

from dculab import _dculab
from dculab._progress import Progress, shown


def ask(command: str, *, progress: Progress = None, **keywords: Any) -> Any:
    """The answer of the program's command. Keywords that are None are left out."""
    from dculab._answer import make
    from dculab.answers import ANSWERS

    with shown(progress) as on_progress:
        report = _dculab.answer(command, keywords, on_progress)
    return make(ANSWERS[command], json.loads(report.json), report)
