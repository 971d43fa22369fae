"""One place for the wording of a wrong name, so that every part of spie answers it alike."""

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is not `known`: what it is, the nearest known one, and the whole list."""
    names = sorted(set(known))
    close = difflib.get_close_matches(str(name).lower(), names, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "."
    return ValueError(f'no {kind} "{name}"{hint} Known: {", ".join(names)}')
