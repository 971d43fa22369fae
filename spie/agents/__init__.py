"""Learning agents: settings as frozen dataclasses, each with a `run`."""
