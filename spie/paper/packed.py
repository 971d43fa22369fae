"""What a run left as plain values, for files of results that grow: every array, compressed, as text."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from spie.runs.run import arrays_of, result_of
from spie.runs.store import unpack as array_of
from spie.trace import Result


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
