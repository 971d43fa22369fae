"""A small image task for tests: a corridor whose last cell pays 1 and ends the episode; the agent is the bright pixels.

It obeys what the deep agent expects of an environment: one that is made of n, gives single frames, does not reset by
itself, tells its true states and can be saved.
"""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv


class Corridor(VectorEnv):
    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(self, n=1, cells=6, cap=30, slip=0.1, size=12):
        self.num_envs, self.n_states, self.cap, self.slip, self.size = n, cells, cap, slip, size
        self.single_observation_space = gym.spaces.Box(0, 255, (size, size), np.uint8)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, n)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, n)
        self.s, self.t = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.rngs = [np.random.default_rng(0) for _ in range(n)]

    def frames(self):
        frames = np.zeros((self.num_envs, self.size, self.size), np.uint8)
        for frame, s in zip(frames, self.s, strict=True):
            frame[:, 2 * s : 2 * s + 2] = 255
        return frames

    def frames_of_all(self):
        """A frame of every cell; made of as many environments as it has cells."""
        self.s = np.arange(self.n_states)
        return self.frames()

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.rngs = [np.random.default_rng(one) for one in np.broadcast_to(seed, self.num_envs)]
        mask = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        self.s[mask] = self.t[mask] = 0
        return self.frames(), {"state": self.s.copy()}

    def step(self, actions):
        slipped = np.array([rng.random() < self.slip for rng in self.rngs])
        self.s = np.clip(self.s + np.where((actions == 1) ^ slipped, 1, -1), 0, self.n_states - 1)
        self.t += 1
        end = self.s == self.n_states - 1
        return self.frames(), end.astype(float), end, (self.t == self.cap) & ~end, {"state": self.s.copy()}

    def get_state(self):
        words = [rng.bit_generator.state["state"] for rng in self.rngs]
        halves = [[w[k] >> shift & (2**64 - 1) for k in ("state", "inc") for shift in (64, 0)] for w in words]
        return {"s": self.s.copy(), "t": self.t.copy(), "random": np.array(halves, np.uint64)}

    def set_state(self, state):
        self.s[:], self.t[:] = state["s"], state["t"]
        for rng, words in zip(self.rngs, state["random"].tolist(), strict=True):
            inner = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}
            rng.bit_generator.state = {"bit_generator": "PCG64", "state": inner, "has_uint32": 0, "uinteger": 0}
