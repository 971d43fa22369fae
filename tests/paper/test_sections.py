import pytest

from spie.paper.sections import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_547_156.4, "2 547 156"),
        (1000, "1 000"),
        (999.5, "999.5"),
        (0.256, "0.26"),
        (-3.0, "−3"),
        (None, "–"),
        (float("nan"), "–"),
        ("sarsa", "sarsa"),
        (True, "True"),
    ],
)
def test_numbers_are_written_for_reading(value, text):
    assert number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == text


def test_numbers_of_claims_have_three_digits_and_commas():
    shown = [number(x, significant=3, thousands=",") for x in (2_547_156.4, 999.5, 0.98765, 1e-9, -1234.5)]
    assert shown == ["2,547,156", "1e+03", "0.988", "1e-09", "-1,234"]
