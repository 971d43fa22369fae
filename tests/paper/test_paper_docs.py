"""The table of claims in docs/paper.md is that of the claims as they are. (Names in backticks: tests/test_docs.py.)"""

import re
from pathlib import Path

import pytest

from spie.paper.claims_table import BEGIN, END, fresh, fresh_rules
from spie.paper.registry import claims

DOCUMENT = Path(__file__).parents[2] / "docs" / "paper.md"


def test_the_document_lists_every_claim_as_it_is():
    text = DOCUMENT.read_text()
    assert text == fresh(text), "stale: python -m spie.paper.claims_table docs/paper.md"


def test_the_document_states_the_rules_as_they_are():
    text = DOCUMENT.read_text()
    assert text == fresh_rules(text), "stale: python -m spie.paper.claims_table docs/paper.md"


def test_a_row_says_where_a_claim_stands_in_the_paper_and_how_it_is_measured():
    rows = fresh(f"{BEGIN}\n{END}").splitlines()[3:-1]
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    for cells, claim in zip(found, claims(), strict=True):
        words = f"{'Ours: ' if claim.ours else ''}{claim.text}", claim.measured.replace("|", "\\|")
        assert cells == [f"`{claim.id}`", claim.where, *words]


def test_a_stale_table_is_noticed_and_the_text_around_it_stays():
    text = f"before\n{BEGIN}\n| id |\n{END}\nafter\n"
    assert fresh(text) != text
    assert fresh(text).startswith(f"before\n{BEGIN}\n| id | where |")
    assert fresh(text).endswith(f"|\n{END}\nafter\n")
    assert fresh(fresh(text)) == fresh(text)


def test_a_document_without_a_place_for_the_table_is_refused():
    with pytest.raises(ValueError, match="no place for the table of claims"):
        fresh("nothing")
