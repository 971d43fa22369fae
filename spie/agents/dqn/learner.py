"""DQN-SF-PF: update, act and loop, made of parts that `build` puts together. The losses are in losses.py.

Axes: L lanes (one per seed), B batch, D features. `online` and `target` are theta and theta^-. Lanes never touch.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn import losses
from spie.agents.dqn.batch import UpdateBatch
from spie.agents.dqn.bonuses import Transition
from spie.agents.dqn.networks import tiles
from spie.agents.dqn.outlook import FIRST
from spie.agents.dqn.parts import Episode, Parts
from spie.agents.dqn.paying import OF_TARGET, Paying
from spie.agents.dqn.settings import LOSSES, DQNSettings
from spie.tasks import vector

TENTHS = 10  # of a run, by which the size of the losses is kept


class Learner(Paying):
    """The agent on some seeds, side by side, with all that changes while it learns."""

    def __init__(self, settings: DQNSettings, parts: Parts, steps: int) -> None:
        """steps: of each lane. The environment is reset by `begin`."""
        super().__init__(settings, parts)
        self.env, self.online, self.optimiser, self.steps = parts.env, parts.online, parts.optimiser, steps
        self.replays, self.rngs, self.frame_skip = parts.replays, parts.rngs, parts.frame_skip
        self.lanes = len(self.replays)
        self.envs = self.env.num_envs // self.lanes
        self.actions = int(self.env.single_action_space.n)
        self.env_is_saved = vector.can_be_saved(self.env)
        self.n_states = vector.true_states(self.env)  # 0: true states are not known
        if "visits_next" in self.uses and not self.n_states:
            need = "needs an env that tells its true states (info['state'], n_states)"
            raise ValueError(f"bonus {settings.bonus} {need}; this has none")
        shape = (self.lanes, self.envs)
        self.visits = np.zeros((self.lanes, self.n_states), np.int64)
        self.first_visit = np.full((self.lanes, self.n_states), -1, np.int64)
        self.step = 0
        self.updates = 0
        self.stacks = np.zeros((*shape, settings.stack, *self.replays[0].shape), np.uint8)
        self.starts = np.zeros_like(self.stacks)  # the first states of these episodes
        self.phi = None
        self.reward = np.zeros(shape)  # of the episodes so far
        self.length = np.zeros(shape, np.int64)
        self.total_bonus = np.zeros(self.lanes)  # raw, of all steps that were paid one
        self.first_reward = np.full(self.lanes, -1, np.int64)  # step of the first reward other than 0; -1: none yet
        self.loss_sums = np.zeros((self.lanes, TENTHS, len(LOSSES)))  # of the updates of each tenth of the run
        self.loss_counts = np.zeros(TENTHS, np.int64)
        self.recent: dict[str, deque[float]] = {}  # what there is to report

    # -- update

    def _sampled(self, finished: bool, draws: int = 1) -> UpdateBatch:
        """A batch of every lane."""
        batches = [
            replay.sample(self.settings.batch, rng, finished=finished, draws=draws)
            for replay, rng in zip(self.replays, self.rngs, strict=True)
        ]
        frames = self.images(np.stack([batch.frames for batch in batches]))
        return UpdateBatch(batches, frames, self.device, self.replays)

    def update(self) -> None:
        """One step of the optimiser on a batch, theta; then theta^- where it follows at every update."""
        cfg, online, target = self.settings, self.online, self.target
        batch = self._sampled(finished=cfg.mmc > 0, draws=cfg.draws)
        s, s_next, a, discount = batch.s, batch.s_next, batch["action"], batch["discount"]

        # theta^-: one pass over s and s' together
        with torch.no_grad(), self.precision():
            if online.psi is not None or online.xi is not None or "phi" in self.uses:
                phi_target, phi_next = target.phi(torch.cat([s, s_next], dim=1)).split(cfg.batch, dim=1)
            else:
                phi_target, phi_next = None, target.phi(s_next)
            q_next = target.values(phi_next)
        seen, r, value = None, batch["total"], batch["value"]
        novelty, u, u_next = self.looked_at(batch)
        if self.bonus is not None and (self.bonus_learns or cfg.bonus_at == "sampling"):
            seen = self.transition(a, phi_target, phi_next, s_next[:, :, -1], batch.array("state"), novelty)
        if seen is not None and cfg.bonus_at == "sampling":
            r = self.paid_now(batch, seen)
        ahead = discount
        if cfg.n_step > 1:
            r, after, ahead = self.paid_ahead(batch)
            q_next, u_next = self._seen_after(after)
        if u is not None and u_next is not None:  # shaped: values are those without potential less U(s)
            r, value = losses.shaped(r, u, u_next, cfg.gamma, ahead), value - u

        # theta: one pass over s, and one over s' without gradient, for the PF head alone
        with self.precision():
            phi = online.phi(s)
            q = online.values(phi).gather(2, a[:, :, None, None].expand(-1, -1, 1, q_next.shape[-1])).squeeze(2)
            found = {"q": self._q_loss(q, q_next, (r, value, ahead), batch)}
            best = self.preferred(q_next).argmax(dim=-1)
            found |= self._head_losses(s_next, phi, a, (phi_target, phi_next), best, discount)
            if online.decoder is not None:
                found["recon"] = losses.reconstruction_loss(s_next[:, :, -1], online.decoder(phi, a).float())
            weights = {"q": cfg.w_q, "sf": cfg.w_sf, "pf": cfg.w_pf, "recon": cfg.w_recon}
            loss = losses.total_loss(found, weights)
        loss.sum().backward()
        self.optimiser.step()
        self.updates += 1
        if cfg.target == "polyak":
            self._follow(cfg.polyak)
        if self.bonus_learns and seen is not None:
            self._learn_bonus(seen)
        self._report(found, loss, q[..., 0])

    def _seen_after(self, after: Tensor) -> tuple[Tensor, Tensor | None]:
        """The values of theta^- in states [L, B, stack, H, W] some steps on, and U where there is a potential."""
        with torch.no_grad(), self.precision():
            q = self.target.values(self.target.phi(after))
        if self.outlook is None or not self.settings.potential:
            return q, None
        return q, self.outlook.potential(self.outlook.of(after[:, :, -1]))

    def _q_loss(self, q: Tensor, q_next: Tensor, paid: tuple[Tensor, Tensor, Tensor], batch: UpdateBatch) -> Tensor:
        """Eq. 17, of values q [L, B, heads] and q_next [L, B, A, heads] of theta^-.

        paid: by the step, by all that follow, and the discount of q_next over gamma.
        """
        cfg, (r, value, discount) = self.settings, paid
        huber = cfg.loss == "huber"
        if q.shape[-1] == 1:
            delta_td = losses.td_error(q[..., 0], r, q_next[..., 0], cfg.gamma, discount)
            delta_mc = value - q[..., 0] if cfg.mmc else delta_td
            return losses.q_loss(delta_td, delta_mc, cfg.mmc, huber)
        with torch.no_grad(), self.precision():
            q_start = self.target.values(self.look(self.starts))
        ahead, at_start = (_greedy(values, self.preferred(values)) for values in (q_next, q_start))
        bonus = torch.from_numpy(self.scale(batch.array("bonus")).astype(np.float32)).to(self.device)
        deltas = losses.two_head_errors(q, r, bonus, ahead, at_start, (cfg.gamma, cfg.gamma_bonus), discount)
        return losses.q_loss(deltas[0], deltas[0], 0.0, huber) + losses.q_loss(deltas[1], deltas[1], 0.0, huber)

    def preferred(self, values: Tensor) -> Tensor:
        """What the agent goes by [L, n, A], of values [L, n, A, heads]: of rewards, plus beta times that of bonuses."""
        return values[..., 0] if values.shape[-1] == 1 else values[..., 0] + self.settings.beta * values[..., 1]

    def _head_losses(
        self, s_next: Tensor, phi: Tensor, a: Tensor, of_target: tuple[Any, Tensor], best: Tensor, discount: Tensor
    ) -> dict[str, Tensor]:
        """Losses of the heads that there are. of_target: phi(s), phi(s') of theta^-. best: the actions after s'."""
        cfg, found, (phi_target, phi_next) = self.settings, {}, of_target
        if self.online.psi is not None and self.target.psi is not None:
            with torch.no_grad():
                psi_next = self.target.psi(phi_next, best).float()
            psi = self.online.psi(phi, a).float()
            first = phi_target if cfg.sf_start == "s" else phi_next
            found["sf"] = losses.sf_loss(first, psi, psi_next, cfg.gamma_sr, discount)
        if self.online.xi is not None and self.target.xi is not None:
            with torch.no_grad():
                xi = self.target.xi(phi_target).float()
                read = self.online.phi(s_next) if cfg.pf_reads == "online" else phi_next
            found["pf"] = losses.pf_loss(phi_next, xi, self.online.xi(read).float(), cfg.gamma_pr)
        return found

    def _learn_bonus(self, seen: Transition) -> None:
        assert self.bonus is not None
        for name, of_bonus in self.bonus.learn(seen).items():
            self._note(name, of_bonus)

    def _learn_early(self, before: int) -> None:
        """Updates of a bonus that learns while actions are still drawn at random."""
        every = self.settings.train_every
        if not all(replay.ready() for replay in self.replays):
            return
        for _ in range(self.step // every - before // every):
            batch = self._sampled(finished=False)
            phi = phi_next = None
            if self.uses & OF_TARGET:
                with torch.no_grad(), self.precision():
                    phi, phi_next = self.target.phi(batch.s), self.target.phi(batch.s_next)
            frame_next = batch.s_next[:, :, -1]
            self._learn_bonus(self.transition(batch["action"], phi, phi_next, frame_next, batch.array("state")))

    def _learn_features(self, before: int) -> None:
        """Where novelty learns its features: it does after the steps at random, and when the steps have doubled."""
        if self.outlook is None or not self.outlook.features.updates:
            return
        first = max(self.settings.learning_starts, FIRST)
        if (self.step // first).bit_length() == (before // first).bit_length():
            return
        for _ in range(self.outlook.features.updates):
            batch = self._sampled(finished=False)
            ends = batch.s[:, :, -1], batch["action"], batch.s_next[:, :, -1]
            self._note("inverse_loss", self.outlook.features.learn(*ends))
        self.outlook.renew(self.replays, self.images, self.images(self.stacks[:, :, -1]))

    def _report(self, found: Mapping[str, Tensor], loss: Tensor, q: Tensor) -> None:
        """Note the losses of an update; ValueError where they are no longer finite."""
        tenth = min(TENTHS * self.step // self.steps, TENTHS - 1)
        self.loss_counts[tenth] += 1
        for name, value in found.items():
            values = value.detach().cpu().numpy()
            self._note(f"{name}_loss", values)
            self.loss_sums[:, tenth, LOSSES.index(name)] += values
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
            q = self.preferred(self.online.values(self.online.phi(self.images(stacks))))
        return np.where(random, actions, q.argmax(dim=-1).cpu().numpy())

    # -- loop

    def begin(self, frames: NDArray[np.uint8], info: Mapping[str, Any], fresh: NDArray[np.bool_]) -> None:
        """Episodes begin in the environments marked `fresh` [L n]."""
        where = fresh.reshape(self.lanes, self.envs)
        self.stacks[where] = tiles(frames[fresh], self.online.encoder.tile)[:, None]
        self.starts[where] = self.stacks[where]
        self.reward[where] = 0
        self.length[where] = 0
        self.count(info, where)
        if self.outlook is not None:
            self.outlook.begin(self.images(self.stacks[:, :, -1]), torch.from_numpy(where).to(self.device))
        if self.uses & OF_TARGET:
            phi = self.look(self.stacks)
            if self.phi is not None:
                phi = torch.where(torch.from_numpy(where).to(self.device)[..., None], phi, self.phi)
            self.phi = phi

    def look_again(self) -> None:
        """Have phi(s) of the current states as theta^- is now."""
        if self.uses & OF_TARGET:
            self.phi = self.look(self.stacks)

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
        random, paid = self.step < self.settings.learning_starts, self.pays
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
        bonus = self.bonus_of_step(paid, a, next_stacks, states)
        self._store(a, r, bonus, terminal, states, paid)
        self.stacks = next_stacks
        self.first_reward[(self.first_reward < 0) & (r != 0).any(axis=1)] = self.step
        self.reward += r
        self.length += 1
        episodes = self._end(over, terminal) if over.any() else []
        self._learn_features(before)
        if self.step >= self.settings.learning_starts:
            self._update_all(before)
        elif self.bonus is not None and self.bonus.early:
            self._learn_early(before)
        if self.pays and not paid:
            self.look_again()
        return episodes

    def _store(
        self,
        a: NDArray[np.int64],
        r: NDArray[Any],
        bonus: NDArray[Any],
        terminal: NDArray[Any],
        states: NDArray[Any],
        paid: bool,
    ) -> None:
        """Steps [L, n] that were just taken, to the replays and to the books."""
        self.total_bonus += bonus.sum(axis=1, dtype=np.float64) if paid else 0.0
        if paid and self.observes:
            self.scale.observe(bonus)
            self._note("bonus", bonus)
            self._note("scaled_bonus", self.settings.beta * self.scale(bonus))
            if self.n_states:
                self._note("log_visits", np.log(np.take_along_axis(self.visits, states, axis=1)))
        total = self.pay(r, bonus if paid else None)
        self.leave(total, terminal)
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
                q = self.target.values(self.look(self.stacks))[..., 0].amax(dim=-1)
            value = np.where(truncated, q.cpu().numpy() + self.potential_now(), 0)
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


def _greedy(values: Tensor, preferred: Tensor) -> Tensor:
    """Values [L, n, A, heads] of the action that is preferred: [L, n, heads]."""
    best = preferred.argmax(dim=-1)[..., None, None]
    return values.gather(2, best.expand(-1, -1, 1, values.shape[-1])).squeeze(2)
