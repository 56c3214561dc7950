"""Answers in notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def value(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def lines(texts: Iterable[str]) -> str:
    shown = [html.escape(text) for text in texts]
    return f"<p>{'<br>'.join(shown)}</p>" if shown else ""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """The first column is aligned left, the others right, as on the terminal."""

    def row(cells: Sequence[str], tag: str) -> str:
        aligned = (
            f'<{tag} style="text-align: {"right" if index else "left"}">{html.escape(cell)}</{tag}>'
            for index, cell in enumerate(cells)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    caption = f'<caption style="text-align: left">{html.escape(title)}</caption>' if title else ""
    body = "".join(row(cells, "td") for cells in rows)
    return f"<table>{caption}<thead>{row(columns, 'th')}</thead><tbody>{body}</tbody></table>{lines(notes)}"
