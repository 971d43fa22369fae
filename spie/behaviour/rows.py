"""Small tables: rows of named values that print well and go into CSV files."""

import math
import os
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from spie.files import csv_text, write_whole
from spie.notebook import html_table
from spie.numbers import number


class Rows(Sequence[Mapping[str, Any]]):
    """Rows of a table, each a mapping from the same columns; `title` and `notes` are sentences around them.

    even: columns whose numbers stand below each other, with as many digits after the point each.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        title: str = "",
        notes: Sequence[str] = (),
        even: Collection[str] = (),
    ) -> None:
        self.rows, self.title, self.notes, self.even = list(rows), title, tuple(notes), frozenset(even)
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

    def cells(self, thousands: str = ",") -> list[list[str]]:
        """The values for reading, row by row."""
        digits = {name: _digits(self.column(name)) for name in self.even}
        return [
            [
                number(_rounded(row.get(name), digits[name]), digits[name], thousands=thousands)
                if name in digits
                else short(row.get(name), thousands)
                for name in self.columns
            ]
            for row in self.rows
        ]

    def text(self) -> str:
        """The table as a CSV file holds it: every digit, nothing for none."""
        return csv_text([self.columns, *([_exact(row.get(name)) for name in self.columns] for row in self.rows)])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table whole, or leave what was there."""
        write_whole(path, self.text())

    def __str__(self) -> str:
        return self.shown()

    __repr__ = __str__

    def shown(self, width: int | None = None) -> str:
        """The table for reading; what is wider than `width` goes on below: columns in blocks, notes in lines."""
        cells = [self.columns, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [all(_is_number(row.get(name)) for row in self.rows) for name in self.columns]
        lines = [self.title] if self.title else []
        for i, block in enumerate(_blocks(widths, width)):
            lines += [""] * (i > 0)
            for row in cells:
                padded = (row[j].rjust(widths[j]) if numbers[j] else row[j].ljust(widths[j]) for j in block)
                lines.append("  ".join(padded).rstrip())
        for note in self.notes:
            lines += wrapped(note, width)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = [dict(zip(self.columns, row, strict=True)) for row in self.cells()]
        return html_table(self.title, self.columns, shown, self.notes)


def _blocks(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """The columns that stand side by side, those of the first block first; the first column begins every block."""
    blocks: list[list[int]] = [[]]
    for i in range(len(widths)):
        beside = sum(widths[j] + 2 for j in blocks[-1]) + widths[i]
        if width is not None and beside > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(i)
    return blocks


def wrapped(text: str, width: int | None) -> list[str]:
    """The lines of a sentence, broken between words; one line where no width is given."""
    if width is None:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def short(value: Any, thousands: str = ",") -> str:
    """A value for reading: four digits that count, thousands set apart; a dash for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 1 if isinstance(value, float) else None, significant=4, thousands=thousands)


def _digits(values: Sequence[Any]) -> int:
    """Digits after the point: four below 10, else as many as make four in all, and at least one."""
    sizes = [abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    return 4 if largest < 10 else max(1, 4 - len(str(int(largest))))


def _rounded(value: Any, digits: int) -> Any:
    """The number with that many digits; what rounds to nothing is 0, not -0."""
    return round(value, digits) + 0.0 if isinstance(value, float) and math.isfinite(value) else value


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _exact(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else value
