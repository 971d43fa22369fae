"""Tables by their columns: of CSV and TSV files, of mappings, and of data frames of pandas or polars."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spie.errors import told
from spie.files import cell_text


def read_file(path: str | Path) -> dict[str, list[str]]:
    """The columns of a file."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a CSV or TSV file")
    try:
        return read_text(path.read_text(encoding="utf-8-sig"), str(path))
    except FileNotFoundError:
        raise ValueError(f"no file {told(str(path))}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; give a CSV or TSV file in UTF-8") from None


def read_text(text: str, name: str) -> dict[str, list[str]]:
    """The columns of a CSV or TSV file."""
    header = text.lstrip("\ufeff").partition("\n")[0]
    delimiter = max("\t;,", key=header.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}") from None
    if len(rows) < 2:
        raise ValueError(f"{name} holds no rows; it needs a header, such as subject,step,state, and a row per step")
    names = [cell.strip().lower() for cell in rows[0]]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise ValueError(f"{name}: row {number} has {len(row)} columns, the header has {len(names)}")
    return {column: [cell_text(row[i].strip()) for row in rows[1:]] for i, column in enumerate(names)}


def column_values(name: str, values: Any) -> list[Any]:
    """The values of a column, one after the other."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.ndim != 1:
        raise ValueError(f"column {told(name)} must hold a value for each row, not {told(values)}")
    found: list[Any] = array.tolist()
    return found


def read_columns(table: Any) -> dict[str, list[Any]]:
    """The columns of a mapping, or of a data frame of pandas or polars."""
    try:
        names = list(table) if isinstance(table, Mapping) else list(table.columns)
    except AttributeError:
        what = f"a data frame, or a mapping from columns to values, not {told(table)}"
        raise ValueError(f"a table must be {what}") from None
    columns = {str(name).strip().lower(): column_values(str(name), table[name]) for name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns differ in length: {', '.join(f'{name} {n}' for name, n in lengths.items())}")
    return columns
