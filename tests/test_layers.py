"""Modules import downwards only, and `import spie` loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spie

PACKAGE = Path(spie.__file__).parent
BASE = {"errors", "mdp", "continuous", "trace", "representations"}  # data and equations, which any layer above may use
LAYERS = {
    "errors": set(),
    "trace": set(),
    "mdp": {"errors"},
    "continuous": {"errors"},
    "representations": {"errors"},
    "features": {"errors"},
    "rewards": {"errors"},
    "store": {"errors", "trace"},
    "stats": {"errors"},
    "envs": {"errors", "mdp", "continuous"},
    "agents": BASE | {"envs", "rewards", "features"},
    "wrappers": BASE | {"rewards", "features", "agents.bonuses", "agents.networks"},
    "sb3": BASE | {"wrappers", "rewards", "features"},
    "run": BASE | {"store", "rewards"},  # knows no agent
    "experiments": BASE | {"run", "store", "agents", "envs", "features", "wrappers", "sb3"},
    "sweeps": BASE | {"agents", "envs", "run", "store", "experiments"},
    "tune": BASE | {"agents", "rewards", "experiments"},
    "check": BASE | {"wrappers", "agents", "envs", "rewards", "features"},
    "ledger": BASE | {"envs", "experiments", "stats"},
    "plots": BASE | {"stats"},
    "report": BASE | {"experiments", "ledger", "stats", "plots", "run", "store"},
    "cli": None,  # whatever a command needs
    "": None,  # spie/__init__.py
}
ONLY_IN = {
    "torch": ("agents.dqn", "agents.networks", "agents.optimisers", "agents.bonuses"),
    "stable_baselines3": ("sb3", "experiments.dropin"),
    "matplotlib": ("plots",),
    "ray": ("run",),
    "optuna": ("tune",),
}
VECTOR_CODE = ("agents.vector", "agents.matrix")
AT_THE_TOP_ONLY_IN = {"numba": VECTOR_CODE, "llvmlite": VECTOR_CODE, "scipy": (), "ray": (), "optuna": ()}


def imports():
    """(module, what it imports, whether at its top) of every import in the package, `spie.` left out."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        tree = ast.parse(path.read_text())
        inside = {node for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: imports are absolute"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                yield module, name, node not in inside


IMPORTS = list(imports())


def within(module, places):
    return any(module == place or module.startswith(f"{place}.") for place in places)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer):
    allowed = LAYERS[layer]
    for module, name, _ in IMPORTS:
        if module.partition(".")[0] == layer and name.startswith("spie.") and allowed is not None:
            assert within(name.removeprefix("spie."), {layer, *allowed}), f"{module} imports {name}"


def test_every_module_has_its_layer():
    layers = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert layers - {"__init__"} <= set(LAYERS)


def test_layers_form_no_circle():
    depth = {}

    def visit(layer, above=()):
        assert layer not in above, f"{' -> '.join([*above, layer])} is a circle"
        for below in LAYERS[layer] or ():
            visit(below.partition(".")[0], (*above, layer))
        depth[layer] = True

    for layer in LAYERS:
        visit(layer)
    assert len(depth) == len(LAYERS)


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_heavy_library_is_imported_only_where_it_belongs(library):
    for module, name, _ in IMPORTS:
        assert name.partition(".")[0] != library or module in ONLY_IN[library], f"{module} imports {name}"


@pytest.mark.parametrize("library", AT_THE_TOP_ONLY_IN)
def test_a_slow_library_is_imported_on_first_use(library):
    for module, name, top in IMPORTS:
        if name.partition(".")[0] == library and top:
            assert module in AT_THE_TOP_ONLY_IN[library], f"{module} imports {name} at its top"


@pytest.mark.parametrize("module", ["spie", "spie.cli"])
def test_importing_loads_nothing_heavy(module):
    heavy = "numba llvmlite scipy torch matplotlib ray stable_baselines3 optuna sqlite3".split()
    program = f"import sys, {module}; print(*(name for name in {heavy} if name in sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == []
