"""Small tables: rows of named values that print well and go into CSV files."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spie.files import csv_text, write_whole
from spie.notebook import html_table
from spie.numbers import number


class Rows(Sequence[Mapping[str, Any]]):
    """Rows of a table, each a mapping from the same columns; `title` and `notes` are sentences around them."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], title: str = "", notes: Sequence[str] = ()) -> None:
        self.rows, self.title, self.notes = list(rows), title, tuple(notes)
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """The values of one column, in the order of the rows."""
        return [row.get(name) for row in self.rows]

    def text(self) -> str:
        """The table as a CSV file holds it: every digit, nothing for none."""
        return csv_text([self.columns, *([_exact(row.get(name)) for name in self.columns] for row in self.rows)])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table whole, or leave what was there."""
        write_whole(path, self.text())

    def __str__(self) -> str:
        cells = [self.columns, *([short(row.get(name)) for name in self.columns] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        number = [all(_is_number(row.get(name)) for row in self.rows) for name in self.columns]
        lines = [
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, number, strict=True)
            )
            for row in cells
        ]
        return "\n".join([*([self.title] if self.title else []), *(line.rstrip() for line in lines), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.title, self.columns, self.rows, self.notes)


def short(value: Any) -> str:
    """A value for reading: four digits that count, thousands set apart; a dash for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 1 if isinstance(value, float) else None, significant=4, thousands=",")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _exact(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else value
