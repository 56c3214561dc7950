"""Answers in notebooks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any


def value(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def lines(texts: Iterable[str]) -> str:
    shown = [html.escape(text) for text in texts]
    return f"<p>{'<br>'.join(shown)}</p>" if shown else ""


NUMBER = re.compile(r"[±+−-]?\d")


def is_right(cells: Iterable[str]) -> bool:
    """Columns of numbers are aligned right, as on the terminal."""
    numbers = [bool(NUMBER.match(cell)) for cell in cells if cell not in ("", "-")]
    return 2 * sum(numbers) > len(numbers)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    rows = list(rows)
    right = [is_right(row[index] for row in rows if index < len(row)) for index in range(len(columns))]

    def row(cells: Sequence[str], tag: str) -> str:
        aligned = (
            f'<{tag} style="text-align: {"right" if is_number else "left"}">{html.escape(cell)}</{tag}>'
            for cell, is_number in zip(cells, right)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    caption = f'<caption style="text-align: left">{html.escape(title)}</caption>' if title else ""
    body = "".join(row(cells, "td") for cells in rows)
    return f"<table>{caption}<thead>{row(columns, 'th')}</thead><tbody>{body}</tbody></table>{lines(notes)}"
