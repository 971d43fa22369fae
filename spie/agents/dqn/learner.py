"""DQN-SF-PF: update, act and loop, made of parts that `build` puts together. The losses are in losses.py.

Axes: L lanes (one a seed), B batch, D features. `online` and `target` are theta and theta^-. Lanes never touch.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn import losses
from spie.agents.dqn.bonuses import DeepBonus, Transition
from spie.agents.dqn.networks import tiles
from spie.agents.dqn.parts import Parts
from spie.agents.dqn.settings import DQNSettings
from spie.tasks import vector

_OF_TARGET = {"phi", "phi_next", "psi", "xi_next"}  # what theta^- computes of a transition


@dataclass(frozen=True)
class Episode:
    """An episode that just ended."""

    lane: int
    env: int
    step: int  # of the lane, when it ended
    reward: float  # extrinsic, undiscounted, before clipping
    length: int
    terminal: bool  # False: truncated


class Learner:
    """The agent on some seeds, side by side, with all that changes while it learns."""

    def __init__(self, settings: DQNSettings, parts: Parts, steps: int) -> None:
        """steps: of each lane. The environment is reset by `begin`."""
        self.settings, self.steps = settings, steps
        self.env, self.online, self.target, self.optimiser = parts.env, parts.online, parts.target, parts.optimiser
        self.bonus, self.scale, self.replays, self.rngs = parts.bonus, parts.scale, parts.replays, parts.rngs
        self.device, self.frame_skip = parts.device, parts.frame_skip
        self.lanes = len(self.replays)
        self.envs = self.env.num_envs // self.lanes
        self.actions = int(self.env.single_action_space.n)
        self.env_is_saved = vector.can_be_saved(self.env)
        self.n_states = vector.true_states(self.env)  # 0: true states are not known
        self.uses = frozenset(() if self.bonus is None else self.bonus.uses)
        self.bonus_learns = self.bonus is not None and type(self.bonus).learn is not DeepBonus.learn
        if "visits_next" in self.uses and not self.n_states:
            need = "needs an env that tells its true states (info['state'], n_states)"
            raise ValueError(f"bonus {settings.bonus} {need}; this has none")
        shape = (self.lanes, self.envs)
        self.visits = np.zeros((self.lanes, self.n_states), np.int64)
        self.first_visit = np.full((self.lanes, self.n_states), -1, np.int64)
        self.step = 0  # of each lane; one of every environment of a lane at a time
        self.updates = 0
        self.stacks = np.zeros((*shape, settings.stack, *self.replays[0].shape), np.uint8)
        self.phi: Tensor | None = None  # phi(s; theta^-) of the current states, where the bonus needs it
        self.reward = np.zeros(shape)  # of the episodes so far
        self.length = np.zeros(shape, np.int64)
        self.total_bonus = np.zeros(self.lanes)  # raw, of all steps that were collected
        self.recent: dict[str, deque[float]] = {}  # what there is to report

    # -- update

    def precision(self) -> AbstractContextManager[Any]:
        """What the networks compute in."""
        enabled = self.settings.precision == "bf16"
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=enabled)

    def images(self, frames: NDArray[np.uint8]) -> Tensor:
        """Frames in 0 ... 1."""
        return torch.from_numpy(frames).to(self.device).float().mul_(1 / 255)

    def update(self) -> None:
        """One step of the optimiser on a batch, theta; then theta^- where it follows at every update."""
        cfg = self.settings
        batches = [
            r.sample(cfg.batch, rng, finished=cfg.mmc > 0) for r, rng in zip(self.replays, self.rngs, strict=True)
        ]

        def stacked(name: str) -> Tensor:
            return torch.from_numpy(np.stack([getattr(batch, name) for batch in batches])).to(self.device)

        frames = self.images(np.stack([batch.frames for batch in batches]))  # [L, B, stack + 1, H, W]
        s, s_next = frames[:, :, :-1], frames[:, :, 1:]
        a, discount = stacked("action"), stacked("discount")
        online, target = self.online, self.target

        # theta^-: one pass over s and s' together
        with torch.no_grad(), self.precision():
            if online.psi is not None or online.xi is not None or "phi" in self.uses:
                phi_target, phi_next = target.phi(torch.cat([s, s_next], dim=1)).split(cfg.batch, dim=1)
            else:
                phi_target, phi_next = None, target.phi(s_next)
            q_next = target.q(phi_next).float()
        seen, r = None, stacked("total")
        if self.bonus is not None and (self.bonus_learns or cfg.bonus_at == "sampling"):
            states = np.stack([batch.state for batch in batches])
            seen = self._transition(a, phi_target, phi_next, s_next[:, :, -1], states)
        if seen is not None and cfg.bonus_at == "sampling":
            r = self._paid_now(stacked("reward").cpu().numpy(), seen)

        # theta: one pass over s. The PF head reads phi(s') of theta^-; no gradient would go past phi anyway.
        found: dict[str, Tensor] = {}
        with self.precision():
            phi = online.phi(s)
            q = online.q(phi).float().gather(2, a.unsqueeze(-1)).squeeze(-1)
            delta_td = losses.td_error(q, r, q_next, cfg.gamma, discount)
            delta_mc = stacked("value") - q if cfg.mmc else delta_td
            found["q"] = losses.q_loss(delta_td, delta_mc, cfg.mmc, cfg.loss == "huber")
            found |= self._head_losses(phi, a, phi_target, phi_next, q_next, discount)
            if online.decoder is not None:
                found["recon"] = losses.reconstruction_loss(frames[:, :, -1], online.decoder(phi, a).float())
            weights = {"q": cfg.w_q, "sf": cfg.w_sf, "pf": cfg.w_pf, "recon": cfg.w_recon}
            loss = losses.total_loss(found, weights)
        loss.sum().backward()
        self.optimiser.step()
        self.updates += 1
        if cfg.target == "polyak":
            self._follow(cfg.polyak)
        if self.bonus is not None and self.bonus_learns and seen is not None:
            for name, of_bonus in self.bonus.learn(seen).items():
                self._note(name, of_bonus)
        self._report(found, loss, q)

    def _head_losses(
        self, phi: Tensor, a: Tensor, phi_target: Any, phi_next: Tensor, q_next: Tensor, discount: Tensor
    ) -> dict[str, Tensor]:
        """The losses of the SF and PF heads, of those that there are."""
        cfg, found = self.settings, {}
        if self.online.psi is not None and self.target.psi is not None:
            with torch.no_grad():
                psi_next = self.target.psi(phi_next, q_next.argmax(dim=-1)).float()
            psi = self.online.psi(phi, a).float()
            found["sf"] = losses.sf_loss(phi_target, psi, psi_next, cfg.gamma_sr, discount)
        if self.online.xi is not None and self.target.xi is not None:
            with torch.no_grad():
                xi = self.target.xi(phi_target).float()
            found["pf"] = losses.pf_loss(phi_next, xi, self.online.xi(phi_next).float(), cfg.gamma_pr)
        return found

    def _report(self, found: Mapping[str, Tensor], loss: Tensor, q: Tensor) -> None:
        """Note the losses of an update; ValueError where they are no longer finite."""
        for name, value in found.items():
            self._note(f"{name}_loss", value.detach().cpu().numpy())
        mean_loss = float(loss.detach().mean())
        if not math.isfinite(mean_loss):
            s = self.settings
            raise ValueError(
                f"step {self.step}: the loss is {mean_loss}; a smaller rate may help ({s.optimiser} {s.rate})"
            )
        self._note("loss", mean_loss)
        self._note("q_mean", q.detach().mean().item())

    def _note(self, name: str, values: Any) -> None:
        self.recent.setdefault(name, deque(maxlen=10_000)).extend(np.ravel(values).tolist())

    def _follow(self, weight: float) -> None:
        """theta^- moves towards theta."""
        ours = dict(self.online.named_parameters())
        with torch.no_grad():
            old: list[Tensor] = list(self.target.parameters())
            new: list[Tensor] = [ours[name] for name, _ in self.target.named_parameters()]
            if weight == 1:
                torch._foreach_copy_(old, new)
            else:
                torch._foreach_lerp_(old, new, weight)

    # -- bonus

    def _transition(
        self,
        a: Tensor,
        phi: Tensor | None,
        phi_next: Tensor | None,
        frame_next: Tensor | None,
        states: NDArray[np.int64],
    ) -> Transition:
        """What the bonus uses of transitions [L, B]; states: the true ones that they lead to."""
        psi = xi_next = visits = None
        with torch.no_grad(), self.precision():
            if "psi" in self.uses and self.target.psi is not None:
                psi = self.target.psi(phi, a).float()
            if "xi_next" in self.uses and self.target.xi is not None:
                xi_next = self.target.xi(phi_next).float()
        if "visits_next" in self.uses:
            visits = np.maximum(np.take_along_axis(self.visits, states, axis=1), 1)
        return Transition(a, frame_next, phi, phi_next, psi, xi_next, visits)

    def collected_bonus(
        self, a: NDArray[np.int64], next_stacks: NDArray[np.uint8], states: NDArray[np.int64]
    ) -> NDArray[Any]:
        """The raw bonus [L, n] of a step from the current states; 0 where there is none. Learns nothing."""
        if self.bonus is None:
            return np.zeros(a.shape)
        phi_next = self._look(next_stacks) if self.uses & _OF_TARGET else None
        frame_next = self.images(next_stacks[:, :, -1]) if "frame_next" in self.uses else None
        action = torch.from_numpy(a).to(self.device)
        bonus = self.bonus.compute(self._transition(action, self.phi, phi_next, frame_next, states))
        self.phi = phi_next
        return bonus

    def _paid_now(self, reward: NDArray[Any], seen: Transition) -> Tensor:
        """Rewards of a batch with the bonus as it is now, not as it was when they were collected."""
        assert self.bonus is not None
        bonus = self.bonus.compute(seen)
        if not self._observes:
            self.scale.observe(bonus)
        return torch.from_numpy(self.pay(reward, bonus)).to(self.device)

    def pay(self, reward: NDArray[Any], bonus: NDArray[Any]) -> NDArray[np.float32]:
        """What the agent learns from [L, B]: reward + beta bonus, clipped before and after the sum."""
        limit = 1 if self.settings.clip else np.inf
        total = np.clip(reward, -limit, limit)
        if self.bonus is not None:
            total = np.clip(total + self.settings.beta * self.scale(bonus), -limit, limit)
        return np.asarray(total, np.float32)

    @property
    def _observes(self) -> bool:
        """Whether the bonuses that are collected are those that are paid, and so measured by the scale."""
        return self.bonus is not None and (self.settings.bonus_at == "collection" or self.settings.mmc > 0)

    def _look(self, stacks: NDArray[np.uint8]) -> Tensor:
        """phi(s; theta^-) of stacks [L, n, stack, H, W]."""
        with torch.no_grad(), self.precision():
            return self.target.phi(self.images(stacks)).float()

    # -- act

    @property
    def epsilon(self) -> float:
        """Chance of an action at random: from 1 down to its last value, in a line."""
        s = self.settings
        length = s.epsilon_fraction * self.steps if s.epsilon_fraction else s.epsilon_frames / self.frame_skip
        return s.epsilon + (1 - s.epsilon) * max(0.0, 1 - self.step / length)

    def act(self, stacks: NDArray[np.uint8], epsilon: float, rngs: Sequence[np.random.Generator]) -> NDArray[np.int64]:
        """Epsilon-greedy actions [L, n]. One forward pass for all, and none where all are drawn at random."""
        n = stacks.shape[1]
        random = np.stack([rng.random(n) < epsilon for rng in rngs])
        actions = np.stack([rng.integers(self.actions, size=n) for rng in rngs])
        if random.all():
            return actions
        with torch.no_grad(), self.precision():
            q = self.online.q(self.online.phi(self.images(stacks)))
        return np.where(random, actions, q.argmax(dim=-1).cpu().numpy())

    # -- loop

    def begin(self, frames: NDArray[np.uint8], info: Mapping[str, Any], fresh: NDArray[np.bool_]) -> None:
        """Episodes begin in the environments marked `fresh` [L n]."""
        where = fresh.reshape(self.lanes, self.envs)
        self.stacks[where] = tiles(frames[fresh], self.online.encoder.tile)[:, None]
        self.reward[where] = 0
        self.length[where] = 0
        self.count(info, where)
        if self.uses & _OF_TARGET:
            phi = self._look(self.stacks)
            if self.phi is not None:
                phi = torch.where(torch.from_numpy(where).to(self.device)[..., None], phi, self.phi)
            self.phi = phi

    def look_again(self) -> None:
        """Have phi(s) of the current states as theta^- is now."""
        if self.uses & _OF_TARGET:
            self.phi = self._look(self.stacks)

    def count(self, info: Mapping[str, Any], where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count arrivals; the true states [L, n], -1 where unknown."""
        if not self.n_states:
            return np.full(where.shape, -1)
        states = np.asarray(info["state"], np.int64).reshape(where.shape)
        lanes = np.nonzero(where)[0]
        np.add.at(self.visits, (lanes, states[where]), 1)
        new = self.first_visit[lanes, states[where]] < 0
        self.first_visit[lanes[new], states[where][new]] = self.step
        return states

    def loop(self) -> Iterator[list[Episode]]:
        """Learn, one step of every environment at a time; yields the episodes that ended in it."""
        while self.step < self.steps:
            yield self.advance()

    def advance(self) -> list[Episode]:
        """One step of every environment, stored, and the updates that are due."""
        random = self.step < self.settings.learning_starts
        a = self.act(self.stacks, 1.0 if random else self.epsilon, self.rngs)
        frames, rewards, terminated, truncated, info = self.env.step(a.ravel())
        before = self.step
        self.step += self.envs
        shape = (self.lanes, self.envs)
        r, terminal = np.asarray(rewards, np.float64).reshape(shape), np.asarray(terminated).reshape(shape)
        over = terminal | np.asarray(truncated).reshape(shape)
        states = self.count(info, np.ones(shape, np.bool_))
        frames = tiles(frames, self.online.encoder.tile).reshape(*shape, 1, *frames.shape[1:])
        next_stacks = np.concatenate([self.stacks[:, :, 1:], frames], axis=2)
        bonus = self.collected_bonus(a, next_stacks, states)
        self._store(a, r, bonus, terminal, states)
        self.stacks = next_stacks
        self.reward += r
        self.length += 1
        episodes = self._end(over, terminal) if over.any() else []
        if self.step >= self.settings.learning_starts:
            self._update_all(before)
        return episodes

    def _store(
        self, a: NDArray[np.int64], r: NDArray[Any], bonus: NDArray[Any], terminal: NDArray[Any], states: NDArray[Any]
    ) -> None:
        """Steps [L, n] that were just taken, to the replays and to the books."""
        self.total_bonus += bonus.sum(axis=1, dtype=np.float64)
        if self._observes:
            self.scale.observe(bonus)
            self._note("bonus", bonus)
            self._note("scaled_bonus", self.settings.beta * self.scale(bonus))
            if self.n_states:
                self._note("log_visits", np.log(np.take_along_axis(self.visits, states, axis=1)))
        total = self.pay(r, bonus)
        for lane, replay in enumerate(self.replays):
            for env in range(self.envs):
                replay.add(
                    env,
                    self.stacks[lane, env, -1],
                    int(a[lane, env]),
                    float(r[lane, env]),
                    float(total[lane, env]),
                    bonus=float(bonus[lane, env]),
                    terminal=bool(terminal[lane, env]),
                    state=int(states[lane, env]),
                )

    def _update_all(self, before: int) -> None:
        """The updates that have become due since step `before`, and theta^- where it is copied now and then."""
        cfg = self.settings
        ready = all(r.ready(finished=cfg.mmc > 0) for r in self.replays)
        due = self.step // cfg.train_every - max(before, cfg.learning_starts - 1) // cfg.train_every if ready else 0
        for _ in range(due):
            self.update()
        copy = cfg.target == "periodic" and self.step // cfg.target_every > before // cfg.target_every
        if copy:
            self._follow(1)
        if copy or (due and cfg.target == "polyak"):
            self.look_again()

    def _end(self, over: NDArray[np.bool_], terminal: NDArray[np.bool_]) -> list[Episode]:
        """The episodes that are over [L, n]: their last frames and returns to the replay, and new ones begin."""
        value = np.zeros(over.shape)
        truncated = over & ~terminal
        if self.settings.mmc and truncated.any():  # what would have come after a time limit
            with torch.no_grad(), self.precision():
                q = self.target.q(self._look(self.stacks)).float().amax(dim=-1)
            value = np.where(truncated, q.cpu().numpy(), 0)
        episodes = []
        for lane, env in np.argwhere(over).tolist():
            self.replays[lane].end(env, self.stacks[lane, env, -1], float(value[lane, env]))
            reward, length = float(self.reward[lane, env]), int(self.length[lane, env])
            episodes.append(Episode(lane, env, self.step, reward, length, bool(terminal[lane, env])))
        frames, info = self.env.reset(options={"reset_mask": over.ravel()})
        self.begin(frames, info, over.ravel())
        return episodes

    def end_episodes(self) -> None:
        """Truncate all episodes that are under way, and begin new ones."""
        under_way = self.length > 0
        if under_way.any():
            self._end(under_way, np.zeros_like(under_way))

    # -- checkpoints: all that changes

    def weights(self) -> dict[str, NDArray[Any]]:
        """Weights of both networks, of the optimiser, of the bonus."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state(),
            "bonus": {} if self.bonus is None else self.bonus.state(),
        }
        tensors = {f"{part}.{name}": p for part, of_part in parts.items() for name, p in of_part.items()}
        return {name: p.detach().cpu().numpy() for name, p in tensors.items()}

    def load_weights(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `weights`."""
        parts: dict[str, dict[str, Tensor]] = {"online": {}, "target": {}, "bonus": {}, "optimiser": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = torch.tensor(array)
        self.online.load_state_dict(parts["online"])
        self.target.load_state_dict(parts["target"])
        self.optimiser.load(parts["optimiser"])
        if self.bonus is not None:
            self.bonus.load(parts["bonus"])

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All but the weights and the frames: arrays, and plain values."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {"scale.mean": self.scale.mean, "scale.square": self.scale.square}
        if self.phi is not None:
            arrays["phi"] = self.phi.cpu().numpy()
        values: dict[str, Any] = {"step": self.step, "updates": self.updates, "scale": self.scale.count}
        values["random"] = [rng.bit_generator.state for rng in self.rngs]
        values["replays"] = []
        for lane, replay in enumerate(self.replays):
            replay_arrays, replay_values = replay.fields()
            arrays |= {f"replay{lane}.{name}": array for name, array in replay_arrays.items()}
            values["replays"].append(replay_values)
        if self.env_is_saved:
            arrays |= {f"env.{name}": array for name, array in self.env.get_state().items()}
        return arrays, values

    def restore(
        self,
        arrays: Mapping[str, NDArray[Any]],
        values: Mapping[str, Any],
        frames: Path,
        segments: Sequence[Sequence[Mapping[str, Any]]],
    ) -> None:
        """The inverse of `state`, with the frames from the folder `frames`, lane by lane."""
        for name in _ARRAYS:
            getattr(self, name)[...] = arrays[name]
        self.scale.mean[...], self.scale.square[...] = arrays["scale.mean"], arrays["scale.square"]
        self.scale.count, self.step, self.updates = (int(values[name]) for name in ("scale", "step", "updates"))
        if self.phi is not None:
            self.phi.copy_(torch.from_numpy(arrays["phi"]))
        for rng, state in zip(self.rngs, values["random"], strict=True):
            rng.bit_generator.state = state
        for lane, replay in enumerate(self.replays):
            prefix = f"replay{lane}."
            fields = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            replay.restore(fields, values["replays"][lane], frames, segments[lane])
        if self.env_is_saved:
            self.env.set_state({name[4:]: array for name, array in arrays.items() if name.startswith("env.")})
        else:
            self.end_episodes()
            frames_now, info = self.env.reset()
            self.begin(frames_now, info, np.ones(self.env.num_envs, np.bool_))


_ARRAYS = ("stacks", "reward", "length", "visits", "first_visit", "total_bonus")
