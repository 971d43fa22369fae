"""The table of claims in docs/paper.md, made from the claims themselves:

python -m spie.paper.claims_table docs/paper.md
"""

import sys
from pathlib import Path

from spie.files import write_whole
from spie.paper.registry import claims

BEGIN = "<!-- claims: made by python -m spie.paper.claims_table docs/paper.md -->"
END = "<!-- end of claims -->"


def table() -> str:
    """A row for every claim."""
    rows = ["| id | where | claim | measured by |", "| --- | --- | --- | --- |"]
    for claim in claims():
        text = f"Ours: {claim.text}" if claim.ours else claim.text
        cells = (f"`{claim.id}`", claim.where, text, claim.measured)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def fresh(text: str) -> str:
    """A text with the table as it is now between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for the table of claims; it goes between the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_whole(path, fresh(path.read_text(encoding="utf-8")))
    print(f"wrote the claims to {path}")
