"""Pages show names as text, and may load nothing."""

from pathlib import Path

import pytest

import spie.page
from spie.page.standalone import page
from spie.paper.sections import Row, Table, Text

TEMPLATES = Path(spie.page.__file__).parent / "templates"
HOSTILE = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "javascript:alert(1)", '" onload="x')


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_never_markup(name):
    parts = [Text(name, [name]), Table(name, (name, "steps"), [Row((name, 1))])]
    text = page(name, [name], [(name, parts)], name)
    for wrong in ("<script>alert", "<img src=x", 'href="javascript', '" onload="x'):
        assert wrong not in text


@pytest.mark.parametrize("template", ["report.html", "standalone.html"])
def test_pages_may_load_nothing_and_send_nothing(template):
    text = (TEMPLATES / template).read_text()
    policy = text.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "connect-src" not in policy
    assert "form-action 'none'" in policy
