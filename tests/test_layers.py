"""Imports go downwards only and never in a circle; heavy libraries have one place each, and load on first use."""

import ast
import subprocess
import sys
import textwrap

import pytest

from source_code import circles, imports, trees

# From the top down. Names of one line do not import each other; `*` is whatever is not named, and may.
LAYERS = {
    "spie": [
        "__init__",
        "cli",
        "plot",
        "page studio",
        "paper comparison data",
        "behaviour",
        "search",
        "runs",
        "sb3",
        "dropin",
        "agents",
        "engine",
        "tasks",
        "spatial",
        "representations rewards features novelty stats trace trackers",
        "registry",
        "notebook",
        "errors files numbers",
    ],
    "spie.cli": [
        "__main__",
        "__init__",
        "check compare data demo film fit listing repair report run show studio sweep train",
        "*",
        "terminal",
    ],
    "spie.page": ["behaviour comparison", "standalone", "report", "*", "plots"],
    "spie.page.plots": ["__init__", "maps gif", "frames", "states curves diagrams files", "style"],
    "spie.agents": ["__init__", "registry", "sarsa planner linear_q dqn", "tables", "base", "replay"],
    "spie.tasks": ["__init__", "*", "mdp continuous", "draw registry minigrid", "layout maps", "base"],
}
# Modules, or packages with all that is in them.
ONLY_IN = {
    "torch": ("spie.agents.dqn",),
    "stable_baselines3": (
        "spie.dropin.sb3",
        "spie.dropin.sb3_agents",
        "spie.paper.beyond",
    ),  # the latter trains its agents
    "matplotlib": ("spie.page.plots", "spie.plot"),
    "ray": ("spie.runs.backends",),
    "optuna": ("spie.search.tune",),
}
ALSO_LOADED_BY = {"matplotlib": ("spie.page", "spie.plot"), "stable_baselines3": ("spie.sb3",)}  # through those above
VECTOR_CODE = ("spie.engine.simd", "spie.engine.matrix")
AT_THE_TOP_ONLY_IN = {"numba": VECTOR_CODE, "llvmlite": VECTOR_CODE, "scipy": (), "ray": (), "optuna": ()}

MODULES = trees()
IMPORTS = imports(MODULES)


def within(module, places):
    return any(f"{module}.".startswith(f"{place}.") for place in places)


def level(module, package, layers):
    """The layer of a module within a package: its number from above, and whether the layer is `*`."""
    name = module.removeprefix(f"{package}.").partition(".")[0]
    for i, names in enumerate(layers[package]):
        if name in names.split():
            return name, i, False
    return name, layers[package].index("*") if "*" in layers[package] else None, True


def upward(found, layers):
    """The imports that do not go downwards."""
    wrong = []
    for one in found:
        for package in layers:
            if one.module.startswith(f"{package}.") and one.name.startswith(f"{package}."):
                (here, above, open_), (there, below, _) = (level(m, package, layers) for m in (one.module, one.name))
                if here != there and not (above == below and open_) and not above < below:
                    wrong.append(str(one))
    return wrong


def loaded_by(module, found):
    """All that importing a module imports at once, directly or through other modules."""
    seen, waiting = set(), [module]
    while waiting:
        here = waiting.pop()
        new = {one.name for one in found if one.module == here and one.top} - seen
        seen |= new
        waiting += new
    return seen


def made_up(**sources):
    """The imports of a package with these modules."""
    modules = {f"toy.{name}": ast.parse(textwrap.dedent(text)) for name, text in sources.items()}
    return imports(modules | {"toy.__init__": ast.parse("")})


TOY = {"toy": ["top", "middle other", "bottom"], "toy.middle": ["a", "*", "z"]}
QUIET = {"top": "import toy.middle.a", "middle.__init__": "", "middle.a": "from toy.middle import z", "middle.z": ""}
QUIET |= {"bottom": "import numpy", "other": "from toy.bottom import something"}


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        ({}, []),
        ({"bottom": "import toy.top"}, ["toy.bottom imports toy.top"]),
        ({"bottom": "def f():\n    from toy.top import g"}, ["toy.bottom imports toy.top"]),
        ({"bottom": "from toy import top"}, ["toy.bottom imports toy.top"]),
        ({"other": "import toy.middle"}, ["toy.other imports toy.middle.__init__"]),
        ({"middle.z": "from toy.middle.a import g"}, ["toy.middle.z imports toy.middle.a"]),
        ({"middle.b": "from toy.middle.a import g"}, ["toy.middle.b imports toy.middle.a"]),
        ({"middle.b": "import toy.middle.c", "middle.c": ""}, []),
        ({"bottom": "if TYPE_CHECKING:\n    import toy.top"}, []),
        ({"bottom": "if TYPE_CHECKING:\n    pass\nelse:\n    import toy.top"}, ["toy.bottom imports toy.top"]),
    ],
)  # fmt: skip
def test_a_planted_upward_import_is_found(planted, what):
    assert upward(made_up(**QUIET | planted), TOY) == what


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        ({}, set()),
        ({"bottom": "import toy.other"}, {frozenset({"toy.bottom", "toy.other"})}),
        ({"bottom": "def f():\n    import toy.other"}, {frozenset({"toy.bottom", "toy.other"})}),
        ({"middle.z": "import toy.bottom", "bottom": "import toy.top"},
         {frozenset({"toy.top", "toy.middle.a", "toy.middle.z", "toy.bottom"})}),
        ({"middle.__init__": "import toy.top"}, {frozenset({"toy.top", "toy.middle.__init__"})}),
        ({"bottom": "if TYPE_CHECKING:\n    import toy.other"}, set()),
    ],
)  # fmt: skip
def test_a_planted_circle_is_found(planted, what):
    assert circles((one.module, one.name) for one in made_up(**QUIET | planted)) == what


def test_a_library_that_loads_through_others_is_found():
    found = made_up(top="import toy.middle", middle="import torch", bottom="def f():\n    import toy.middle")
    assert loaded_by("toy.top", found) == {"toy.middle", "torch"}
    assert loaded_by("toy.bottom", found) == set()


@pytest.mark.parametrize("package", LAYERS)
def test_a_layer_imports_only_what_lies_below_it(package):
    wrong = upward(IMPORTS, {package: LAYERS[package]})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", LAYERS)
def test_every_module_has_its_layer(package):
    modules = [module for module in MODULES if module.startswith(f"{package}.")]
    assert modules
    assert [module for module in modules if level(module, package, LAYERS)[1] is None] == []


def test_no_modules_import_each_other():
    found = circles((one.module, one.name) for one in IMPORTS)
    assert not found, "\n".join(" and ".join(sorted(circle)) for circle in found)


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_heavy_library_is_imported_only_where_it_belongs(library):
    users = {one.module for one in IMPORTS if one.name.partition(".")[0] == library}
    assert users  # else the rule is about nothing
    assert {module for module in users if not within(module, ONLY_IN[library])} == set()


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_heavy_library_is_loaded_by_nobody_else(library):
    places = ONLY_IN[library] + ALSO_LOADED_BY.get(library, ())
    for module in MODULES:
        if not within(module, places):
            assert library not in {name.partition(".")[0] for name in loaded_by(module, IMPORTS)}, module


@pytest.mark.parametrize("library", AT_THE_TOP_ONLY_IN)
def test_a_slow_library_is_imported_on_first_use(library):
    at_the_top = {one.module for one in IMPORTS if one.top and one.name.partition(".")[0] == library}
    assert at_the_top <= set(AT_THE_TOP_ONLY_IN[library])


@pytest.mark.parametrize("module", ["spie", "spie.cli"])
def test_importing_loads_nothing_heavy(module):
    heavy = "numba llvmlite scipy torch matplotlib ray stable_baselines3 optuna sqlite3".split()
    program = f"import sys, {module}; print(*(name for name in {heavy} if name in sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == []


def test_public_names_are_there_and_the_agents_among_them_load_on_first_use():
    program = (
        "import sys, spie; print(any(name.startswith(('spie.agents', 'spie.dropin')) for name in sys.modules));"
        "print([name for name in spie.__all__ if name not in dir(spie) or getattr(spie, name, None) is None])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split("\n")[:2] == ["False", "[]"]
