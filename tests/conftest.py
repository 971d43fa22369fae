from hypothesis import settings

# A first call may compile for seconds, so no deadline; the same examples every time, so that a failure comes back.
settings.register_profile("spie", deadline=None, derandomize=True)
settings.load_profile("spie")
