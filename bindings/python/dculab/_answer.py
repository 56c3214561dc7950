"""What every answer can do."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dculab import _html
from dculab._rows import Part

if TYPE_CHECKING:
    import pandas

    from dculab._dculab import Report


class Table(NamedTuple):
    """A table as the program prints it: texts with units, rounded."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]

    def _repr_html_(self) -> str:
        return _html.table(*self)


class Answer(Part):
    """An answer: its fields are the keys of the JSON that the program writes. Printed it is what the program prints."""

    _report: ClassVar[Report]  # of each answer its own, set when it is made

    @property
    def json(self) -> str:
        """What the program writes with --format json, byte for byte."""
        return self._report.json

    @property
    def heading(self) -> list[str]:
        """The lines above the tables, warnings among them."""
        return self._report.heading

    @property
    def tables(self) -> list[Table]:
        """The tables that the program prints."""
        return [Table(*each) for each in self._report.tables]

    def to_csv(self) -> str:
        """What the program writes with --format csv: the first table, exact values without units."""
        return self._report.csv

    def to_pandas(self) -> pandas.DataFrame:
        """The first table, with exact values. Lists of rows have a `to_pandas` of their own: `answer.ops.to_pandas()`.
        """
        import pandas

        table = list(csv.reader(io.StringIO(self.to_csv())))
        if not table:
            return pandas.DataFrame()
        columns = zip(*table[1:]) if len(table) > 1 else ([] for _ in table[0])
        return pandas.DataFrame({name: _numbers(list(column)) for name, column in zip(table[0], columns)})

    def write_page(self, file: str | os.PathLike[str]) -> None:
        """Writes what the program writes with --report: a page with charts that needs no network."""
        with open(file, "w", encoding="utf-8") as page:
            page.write(self._report.page)

    def __str__(self) -> str:
        return self._report.text.removesuffix("\n")

    def __repr__(self) -> str:
        return f"<dculab.answers.{type(self).__name__}; print() shows it, .json has all of it>"

    def _repr_html_(self) -> str:
        return _html.lines(self.heading) + "".join(_html.table(*each) for each in self.tables)


def _numbers(texts: list[str]) -> list[Any]:
    """A column as numbers where all that is not empty is one, which pandas would round as it reads them."""
    for kind in (int, float):
        try:
            return [kind(text) if text else None for text in texts]
        except ValueError:
            continue
    return texts


def make(classes: tuple[type[Answer], ...], json: Any, report: Report) -> Any:
    from dculab._rows import one_of

    answer = one_of(*(each._of for each in classes))(json)
    object.__setattr__(answer, "_report", report)
    return answer
