import multiprocessing

from hypothesis import settings

# A first call may compile for seconds, so no deadline; the same examples every time, so that a failure comes back.
settings.register_profile("spie", deadline=None, derandomize=True)
settings.load_profile("spie")

# Processes of environments are forked from one that has imported what they need, not each for itself.
multiprocessing.set_forkserver_preload(["spie.sb3"])
