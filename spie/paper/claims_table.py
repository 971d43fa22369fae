"""The tables of claims and of rules in docs/paper.md, made from the claims and the rules themselves:

python -m spie.paper.claims_table docs/paper.md
"""

import sys
from pathlib import Path

from spie.files import write_whole
from spie.paper.registry import claims
from spie.paper.rules import tables

BEGIN = "<!-- claims: made by python -m spie.paper.claims_table docs/paper.md -->"
END = "<!-- end of claims -->"
BEGIN_RULES, END_RULES = "<!-- rules: made by the same command -->", "<!-- end of rules -->"


def table() -> str:
    """A row for every claim."""
    rows = ["| id | where | claim | measured by |", "| --- | --- | --- | --- |"]
    for claim in claims():
        text = f"Ours: {claim.text}" if claim.ours else claim.text
        cells = (f"`{claim.id}`", claim.where, text, claim.measured)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def rules_tables() -> str:
    """The rules by which verdicts are made, as the page shows them."""
    found = []
    for t in tables():
        rows = [t.columns, ["---"] * len(t.columns), *(row.values for row in t.rows)]
        found.append("\n".join([f"{t.caption}:", "", *(f"| {' | '.join(map(str, row))} |" for row in rows)]))
    return "\n\n".join(found)


def fresh(text: str) -> str:
    """A text with the table as it is now between the two marks."""
    return _between(text, BEGIN, END, table(), "the table of claims")


def fresh_rules(text: str) -> str:
    """A text with the rules as they are now between theirs."""
    return _between(text, BEGIN_RULES, END_RULES, f"\n{rules_tables()}\n", "the rules")


def _between(text: str, begin: str, end: str, content: str, what: str) -> str:
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no place for {what}; it goes between the lines {begin} and {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_whole(path, fresh_rules(fresh(path.read_text(encoding="utf-8"))))
    print(f"wrote the claims and the rules to {path}")
