"""SARSA-SRR as one would write it in JAX, what a user may pick instead: `scan` over steps, `vmap` over seeds."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spie import MDP, Sarsa

jax.config.update("jax_enable_x64", True)  # as the engine computes


def sarsa_srr(agent: Sarsa, mdp: MDP, steps: int, seeds: int) -> Callable[[], np.ndarray]:
    """A function that runs Algorithm 1 on a task without end on all seeds; it returns their total rewards."""
    S, A = mdp.n_states, mdp.n_actions
    following, reward = jnp.asarray(mdp.next), jnp.asarray(mdp.reward[0])
    cumulative = jnp.asarray(mdp.prob.cumsum(axis=2)[:, :, :-1])
    start = jnp.asarray(mdp.start)

    def policy(q: Any, explore: Any, pick: Any) -> Any:
        best = q.max()
        ties = q >= best - agent.tie_tolerance * jnp.maximum(1.0, jnp.abs(best))
        options = jnp.where(explore < agent.epsilon, jnp.ones(A, bool), ties)
        return jnp.argmax(jnp.cumsum(options) > jnp.floor(pick * options.sum()))

    def step(state: Any, key: Any) -> tuple[Any, None]:
        s, Q, M, total = state
        u = jax.random.uniform(key, (5,))
        a = policy(Q[s], u[0], u[1])
        k = (u[2] >= cumulative[s, a]).sum()
        s_next, r = following[s, a, k], reward[s, a, k]
        M = M.at[s].add(agent.eta * (jnp.zeros(S).at[s].set(1.0) + agent.gamma_sr * M[s_next] - M[s]))
        bonus = M[s, s_next] - M[:, s_next].sum()
        a_next = policy(Q[s_next], u[3], u[4])
        error = r + agent.beta * bonus + agent.gamma * Q[s_next, a_next] - Q[s, a]
        return (s_next, Q.at[s, a].add(agent.alpha * error), M, total + r), None

    def one(key: Any) -> Any:
        first, rest = jax.random.split(key)
        s = jax.random.choice(first, S, p=start).astype(following.dtype)
        state = s, jnp.zeros((S, A)), jnp.zeros((S, S)), 0.0
        return jax.lax.scan(step, state, jax.random.split(rest, steps))[0][3]

    keys, run = jax.random.split(jax.random.key(0), seeds), jax.jit(jax.vmap(one))
    return lambda: np.asarray(run(keys))
