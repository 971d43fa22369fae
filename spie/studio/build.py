"""The studio's page, put together from its parts: one file that holds everything it needs."""

import importlib.metadata
import importlib.resources
import json
import re
from typing import Any

import numpy as np

from spie.agents.registry import AGENTS
from spie.agents.sarsa.settings import Sarsa
from spie.rewards import get_reward
from spie.tasks.grids import write_map
from spie.tasks.mdp import MDP
from spie.tasks.registry import task as make_task

PARTS = ("engine", "world", "view", "csv", "studio", "editor", "walk", "controls")  # in the order of their use
WORLDS = (
    "cluster-simple", "cluster-hard", "of-small", "of-large", "cluster-simple-large", "four-rooms",
    "t-maze", "tree", "hexgrid", "tartarus", "riverswim", "sixarms",
)  # fmt: skip
MOST_STATES = 1600  # as many as a board of the studio has cells; M has the square of that


def page(mdp: MDP | None = None) -> str:
    """The page as text; with an MDP, it opens with that."""
    worlds = [_world(make_task(name, kind="table"), name) for name in WORLDS]
    first = worlds[0]["name"]
    if mdp is not None:
        own = _world(mdp, mdp.name)
        worlds = [own, *(world for world in worlds if world["name"] != mdp.name)]
        first = own["name"]
    told = {"version": importlib.metadata.version("spie-rl"), "agents": _agents(), "worlds": worlds, "first": first}
    parts = importlib.resources.files(__package__) / "page"
    script = "\n".join((parts / f"{part}.js").read_text("utf-8") for part in PARTS)
    content = {
        "STYLE": (parts / "studio.css").read_text("utf-8"),
        "TOLD": _json(told),
        "SCRIPT": f"(() => {{\n{script}\n}})();",
    }
    # All at once: a name of the user's that looks like a mark is none
    return re.sub(
        r"/\*(STYLE|TOLD|SCRIPT)\*/", lambda mark: content[mark[1]], (parts / "studio.html").read_text("utf-8")
    )


def _json(value: Any) -> str:
    """JSON that can stand in a page: no text of a user's ends the script or begins markup."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _agents() -> dict[str, dict[str, Any]]:
    """Settings of the agents that the page's engine runs: SARSA with learned matrices and a reward of ours."""
    return {
        name: entry.settings
        for name, entry in AGENTS.items()
        if entry.make is Sarsa and entry.settings.get("learned", True) and get_reward(entry.settings["reward"]).built_in
    }


def _world(mdp: MDP, name: str) -> dict[str, Any]:
    """A maze that can be drawn in, where it is a map; else its tables."""
    if mdp.n_states > MOST_STATES or mdp.n_actions > 30:
        raise ValueError(
            f"{mdp.name} has {mdp.n_states:,} states and {mdp.n_actions} actions; the studio takes at most "
            f"{MOST_STATES:,} states and 30 actions"
        )
    try:
        text, options = write_map(mdp)
    except ValueError:
        return {"name": name, "tables": _tables(mdp)}
    if options.get("task") == "trials" or options.get("episodes_per_goal", 30) != 30:
        return {"name": name, "tables": _tables(mdp)}
    return {"name": name, "map": text, "options": {key: options[key] for key in ("task", "bumps") if key in options}}


def _tables(mdp: MDP) -> dict[str, Any]:
    bits = 1 << np.arange(mdp.n_actions)
    layout = mdp.layout
    return {
        "S": mdp.n_states,
        "A": mdp.n_actions,
        "K": mdp.n_successors,
        "G": mdp.n_phases,
        "next": mdp.next.ravel().tolist(),
        "prob": mdp.prob.ravel().tolist(),
        "reward": mdp.reward.ravel().tolist(),
        "start": mdp.start.tolist(),
        "terminal": mdp.terminal.astype(int).ravel().tolist(),
        "available": (mdp.available * bits).sum(axis=1).tolist(),
        "episodesPerPhase": mdp.episodes_per_phase,
        "actions": [f"action {a + 1}" for a in range(mdp.n_actions)],
        "labels": list(mdp.labels),
        "positions": layout.positions.round(4).tolist(),
        "cell": layout.cell,
        "letters": list(layout.letters) or [""] * mdp.n_states,
        "walls": layout.walls.round(4).tolist(),
        "arrows": layout.arrows.tolist(),
        "links": layout.links.tolist(),
    }
