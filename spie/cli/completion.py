"""What the shell completes: the names in the registries, those of plug-ins included.

`spie --install-completion` makes the shell ask; nothing of this is imported before it does.
"""


def experiment_names(incomplete: str) -> list[str]:
    from spie.paper.registry import experiments

    return _beginning_with(incomplete, [experiment.name for experiment in experiments()])


def agent_names(incomplete: str) -> list[str]:
    from spie.agents.registry import names

    return _beginning_with(incomplete, names())


def image_agent_names(incomplete: str) -> list[str]:
    from spie.agents.registry import names

    return _beginning_with(incomplete, names("images"))


def task_names(incomplete: str) -> list[str]:
    from spie.tasks.registry import names

    return _beginning_with(incomplete, names())


def image_task_names(incomplete: str) -> list[str]:
    from spie.tasks.registry import names

    return _beginning_with(incomplete, names("images"))


def sweep_names(incomplete: str) -> list[str]:
    """An experiment or a task."""
    return [*experiment_names(incomplete), *task_names(incomplete)]


def reward_names(incomplete: str) -> list[str]:
    from spie.dropin.known import bonus_names

    return _beginning_with(incomplete, list(bonus_names()))


def _beginning_with(incomplete: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
