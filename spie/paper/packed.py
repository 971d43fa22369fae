"""What files of results say, as plain values and back: parts of a section, and what a run left."""

import base64
import binascii
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from spie.paper.sections import Curve, CurvePanels, Look, Panel, Row, SectionPart, Span, Table, Text
from spie.runs.run import arrays_of, result_of
from spie.runs.store import unpack as array_of
from spie.trace import Result

# Parts of a section


def encode(part: SectionPart) -> dict[str, Any]:
    """A part as JSON has it."""
    if isinstance(part, Table):
        rows = [[row.kind, *map(plain, row.values)] for row in part.rows]
        return {"table": part.caption, "columns": list(part.columns), "rows": rows, "texts": part.texts}
    if isinstance(part, Text):
        return {"text": part.title, "lines": list(part.lines)}
    if isinstance(part, CurvePanels):
        panels = [
            panel._asdict()
            | {"horizontal": {name: float(y) for name, y in panel.horizontal.items()}}
            | {"vertical": [float(x) for x in panel.vertical]}
            | {"curves": {name: [_rounded(column) for column in curve[:4]] for name, curve in panel.curves.items()}}
            | {"looks": {name: list(curve.look) for name, curve in panel.curves.items() if curve.look is not None}}
            for panel in part.panels
        ]
        return {"panels": panels, "caption": part.caption}
    raise TypeError(f"a {type(part).__name__} does not ship; give tables, texts and curves")


def decode(values: Mapping[str, Any]) -> Table | Text | CurvePanels:
    """The part that `encode` was given."""
    if "table" in values:
        rows = [Row([_value(value) for value in row], kind) for kind, *row in values["rows"]]
        return Table(values["table"], values["columns"], rows, values["texts"])
    if "text" in values:
        return Text(values["text"], values["lines"])
    panels = []
    for panel in values["panels"]:
        looks = {name: Look(*look) for name, look in panel.get("looks", {}).items()}  # none in files of format 2
        curves = {}
        for name, columns in panel["curves"].items():
            x, mean, low, high = (np.array(column, np.float64) for column in columns)
            curves[name] = Curve(x, mean, low, high, looks.get(name))
        known = {name: value for name, value in panel.items() if name != "looks"}
        panels.append(Panel(**known | {"curves": curves}))
    return CurvePanels(values["caption"], panels)


def plain(value: Any) -> Any:
    """A cell of a table: text, a number, None for no number."""
    if isinstance(value, Span):
        return {"span": value.text, "columns": value.columns}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _value(value: Any) -> Any:
    return Span(value["span"], value["columns"]) if isinstance(value, dict) else value


def _rounded(values: Any) -> list[float | None]:
    """A curve with six digits that count; None where it has no number."""
    return [float(f"{x:.6g}") if math.isfinite(x) else None for x in np.asarray(values, np.float64)]


# What a run left: every array, compressed, as text


def pack(result: Result) -> dict[str, Any]:
    """A result as JSON has it; zeros and small numbers, of which there are many, cost next to nothing."""
    arrays = {}
    for name, array in arrays_of(result).items():
        data = zlib.compress(np.ascontiguousarray(array).tobytes(), 9)
        arrays[name] = [array.dtype.str, list(array.shape), base64.b85encode(data).decode()]
    return {"kind": result.kind, "arrays": arrays}


def unpack(values: Mapping[str, Any]) -> Any:
    """The result that `pack` was given; ValueError where the values are none."""
    try:
        arrays = {
            name: array_of(dtype, json.dumps(shape), base64.b85decode(data))
            for name, (dtype, shape, data) in values["arrays"].items()
        }
        return result_of(values["kind"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError, MemoryError, zlib.error, binascii.Error) as error:
        raise ValueError(f"what it says a run left cannot be read ({error})") from error
