"""What is installed: versions, hashes and least versions."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[1]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (PROJECT / "constraints.txt").read_text(), re.M))
LOCK = (PROJECT / "requirements.lock").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
EXTRAS = METADATA["optional-dependencies"]
# A row of `make bench`, and trackers that bring forty packages: their tests are left out without them
NOT_TESTED = ("jax", "wandb", "mlflow", "minari")
REQUIRED = [
    Requirement(text)
    for texts in (METADATA["dependencies"], *(EXTRAS[extra] for extra in EXTRAS if extra not in NOT_TESTED))
    for text in texts
]


def test_the_lock_has_what_the_constraints_have_with_hashes_and_leaves_out_torch():
    entries = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", LOCK, re.M)
    assert {name: version for name, version, _ in entries} == {n: v for n, v in PINS.items() if n != "torch"}
    assert len(entries) == LOCK.count("==")


def test_setup_installs_by_hash_and_names_no_host():
    makefile = (PROJECT / "Makefile").read_text()
    assert "--require-hashes --no-deps" in makefile
    assert "--no-deps --no-build-isolation" in makefile
    for text in (makefile, LOCK, (PROJECT / "constraints.txt").read_text()):
        assert not re.search(r"://|index-url|trusted-host", text)


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_what_is_tested_is_what_is_asked_for(requirement):
    if requirement.name != METADATA["name"]:
        assert Version(PINS[requirement.name]) in requirement.specifier


# The first versions without holes that are known to be used: code run by strangers (ray), sandbox escapes (jinja2),
# code in files of weights (torch)
@pytest.mark.parametrize(("name", "broken"), [("ray", "2.58.0"), ("jinja2", "3.1.5"), ("torch", "2.5.1")])
def test_versions_with_known_holes_are_refused(name, broken):
    (asked,) = [requirement for requirement in REQUIRED if requirement.name == name]
    assert Version(broken) not in asked.specifier
