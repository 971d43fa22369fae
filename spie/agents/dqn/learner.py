"""DQN-SF-PF: the losses in the order of the paper, then update, act and loop. The settings are `spie.DQN` (deep.py).

Axes: L lanes (one a seed), B batch, D features. `online` and `target` are theta and theta^-. `discount` is 0 where s'
ended its episode, else 1. A loss is the mean over its batch, one number a lane [L]: lanes never touch.
"""

import ctypes
import functools
import math
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn import bonuses
from spie.agents.dqn.networks import Network, architecture, tiles
from spie.agents.dqn.optimisers import Adam, RMSprop
from spie.agents.dqn.replay import Replay
from spie.rewards import get_reward
from spie.tasks.gymnasium import image_shape

if TYPE_CHECKING:
    from spie.agents.dqn.settings import DQN


# -- The losses


def sf_loss(phi: Tensor, psi: Tensor, psi_next: Tensor, gamma: float, discount: Tensor) -> Tensor:
    """E[(phi(s) + gamma discount psi(s'; theta^-) - psi(s; theta))^2], mean over features  (eq. 10)."""
    return (phi + gamma * discount.unsqueeze(-1) * psi_next - psi).square().mean(dim=(1, 2))


def pf_loss(phi_next: Tensor, xi: Tensor, xi_next: Tensor, gamma: float) -> Tensor:
    """E[(phi(s') + gamma xi(s; theta^-) - xi(s'; theta))^2], mean over features  (eq. 15). An end changes no past."""
    return (phi_next + gamma * xi - xi_next).square().mean(dim=(1, 2))


def td_error(q: Tensor, r: Tensor, q_next: Tensor, gamma: float, discount: Tensor) -> Tensor:
    """r + gamma discount max_a q(s', a; theta^-) - q(s, a; theta), q [L, B], q_next [L, B, A]  (eq. 2)."""
    return r + gamma * discount * q_next.amax(dim=-1) - q


def q_loss(delta_td: Tensor, delta_mc: Tensor, mmc: float, huber: bool = False) -> Tensor:
    """E[((1 - mmc) delta_TD + mmc delta_MC)^2]  (eq. 17). Huber: the square turns into a line at an error of 1."""
    delta = (1 - mmc) * delta_td + mmc * delta_mc if mmc else delta_td
    if huber:
        size = delta.abs()
        return torch.where(size < 1, size.square(), 2 * size - 1).mean(dim=1)
    return delta.square().mean(dim=1)


def reconstruction_loss(frame: Tensor, predicted: Tensor) -> Tensor:
    """E[(s' - predicted s')^2] of the newest frame [L, B, H, W] in grey levels 0 ... 255, mean over pixels."""
    errors = F.mse_loss(predicted, frame, reduction="none")  # one pass forward, one back
    return 255**2 * errors.mean(dim=(1, 2, 3))


def total_loss(losses: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """w_q L_q + w_SF delta_SF + w_PF delta_PF + w_recon L_recon: those that an agent has  (eq. 18)."""
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum(dim=0)


@contextmanager
def on_threads(n: int) -> Iterator[None]:
    """On n threads of torch within: results are the same to the bit only on equally many."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_of(name: str) -> str:
    """A device that there is; "auto": cuda where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {name} cannot be used here ({why}); use auto, cpu or cuda") from error
    return name


@functools.cache
def keep_memory() -> None:
    """Have the C library keep what torch gives back: to get it anew, zeroed page by page, is a tenth of an update."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(-3, 2**26)  # M_MMAP_THRESHOLD: above activations and gradients, below segments of the replay
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


@functools.cache
def check_bf16() -> None:
    """Raise ValueError where bf16 would kill the process.

    Some virtual machines announce a matrix unit (AMX) that they do not have. The first product then ends in an illegal
    instruction, which no program survives; so a second one tries it.
    """
    program = "import torch; torch.ones(32, 64, dtype=torch.bfloat16) @ torch.ones(64, 32, dtype=torch.bfloat16)"
    if subprocess.run([sys.executable, "-c", program], capture_output=True).returncode != 0:
        raise ValueError(
            "bf16 crashes on this processor; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment before the "
            "program starts, or use precision=fp32"
        )


# -- The agent


@dataclass(frozen=True)
class Episode:
    """An episode that just ended."""

    lane: int
    env: int
    step: int  # of the lane, when it ended
    reward: float  # extrinsic, undiscounted, before clipping
    length: int
    terminal: bool  # False: cut off


@dataclass(frozen=True)
class Step:
    """A step that was played, not learned from, by the first environment of the first lane."""

    frame: NDArray[np.uint8]  # [H, W] seen before it
    q: NDArray[np.float32]  # [A]
    action: int
    reward: float
    bonus: float  # raw
    predicted: NDArray[np.uint8] | None  # [H, W] the frame that the decoder expected after it
    over: bool


class Learner:
    """The agent of one settings on some seeds, side by side, with all that changes while it learns."""

    def __init__(
        self,
        settings: "DQN",
        env: Any,
        seeds: Sequence[int],
        steps: int,
        folder: Path | None = None,
    ) -> None:
        """env: a VectorEnv with the environments of all lanes, lane by lane, which gives single frames [H, W] and does
        not reset by itself. steps: of each lane. folder: of a replay on disk.
        """
        keep_memory()
        self.settings, self.env, self.steps = settings, env, steps
        self.lanes, self.envs = len(seeds), env.num_envs // len(seeds)
        height, width = image_shape(env)
        self.actions = int(env.single_action_space.n)
        self.frame_skip = int(getattr(env, "frame_skip", 1))
        self.device = device_of(settings.device)
        if settings.replay_on_disk and folder is None:
            raise ValueError("replay_on_disk needs a folder: give out=..., or leave it off")
        if settings.precision == "bf16" and self.device == "cpu":
            check_bf16()
        words = [np.random.SeedSequence(seed).generate_state(3, np.uint64) >> np.uint64(1) for seed in seeds]
        self.rngs = [np.random.default_rng(int(word[0])) for word in words]
        heads = {"sf": ("psi",), "sf-pf": ("psi", "xi")}.get(settings.bonus, ())
        if settings.bonus == "sf-pf" and settings.sf_pf == "printed":
            heads = ("psi",)
        sizes = architecture(settings.network)
        self.online, self.target = (
            Network(
                (settings.stack, height, width),
                self.actions,
                sizes,
                [torch.Generator().manual_seed(int(word[1])) for word in words],
                heads=heads,
                decoder=settings.reconstruction,
                psi_actions=settings.psi == "state-action",
                tiled=True,
            ).to(self.device)
            for _ in range(2)
        )
        self.target.decoder = None
        self.target.requires_grad_(False)
        self.parameters = list(self.online.parameters())
        self.optimiser: RMSprop | Adam
        if settings.optimiser == "rmsprop":
            self.optimiser = RMSprop(self.parameters, settings.rate, settings.decay, settings.eps)
        else:
            self.optimiser = Adam(self.parameters, settings.rate, settings.eps)
        self.rnd: bonuses.RND | None = None
        if settings.bonus == "rnd":
            rnd_seeds = [int(word[2]) for word in words]
            options: dict[str, Any] = {"rate": settings.rnd_rate, "device": self.device, "tiled": True}
            self.rnd = bonuses.RND((height, width), sizes, rnd_seeds, **options)
        self.scale = bonuses.Scale(settings.scale, self.lanes, settings.offset)

        self.replays = [
            Replay(
                settings.replay,
                (height, width),
                envs=self.envs,
                stack=settings.stack,
                gamma=settings.gamma,
                folder=None if folder is None or not settings.replay_on_disk else folder,
            )
            for _ in range(self.lanes)
        ]
        self.n_states = int(getattr(env, "n_states", 0))  # 0: true states are not known
        if settings.bonus == "count" and not self.n_states:
            raise ValueError(
                "bonus count needs an env that tells its true states (info['state'], n_states); this has none"
            )
        self.visits = np.zeros((self.lanes, self.n_states), np.int64)
        self.first_visit = np.full((self.lanes, self.n_states), -1, np.int64)
        self.step = 0  # of each lane; one of every environment of a lane at a time
        self.updates = 0
        self.stacks = np.zeros((self.lanes, self.envs, settings.stack, height, width), np.uint8)
        self.phi: Tensor | None = None  # phi(s; theta^-) of the current states, where the bonus needs it
        self.reward = np.zeros((self.lanes, self.envs))  # of the episodes so far
        self.length = np.zeros((self.lanes, self.envs), np.int64)
        self.recent: dict[str, deque[float]] = {}  # what there is to report

        seeds_of_envs = [
            int(np.random.SeedSequence([seed, i]).generate_state(1)[0]) for seed in seeds for i in range(self.envs)
        ]
        frames, info = env.reset(seed=seeds_of_envs)
        self._begin(frames, info, np.ones(env.num_envs, np.bool_))

    # -- update

    def _precision(self) -> AbstractContextManager[Any]:
        enabled = self.settings.precision == "bf16"
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=enabled)

    def _images(self, frames: NDArray[np.uint8]) -> Tensor:
        return torch.from_numpy(frames).to(self.device).float().mul_(1 / 255)

    def update(self) -> None:
        """One step of the optimiser on a batch, theta; then theta^- where it follows at every update."""
        cfg = self.settings
        batches = [
            r.sample(cfg.batch, rng, finished=cfg.mmc > 0) for r, rng in zip(self.replays, self.rngs, strict=True)
        ]

        def stacked(name: str) -> Tensor:
            return torch.from_numpy(np.stack([getattr(batch, name) for batch in batches])).to(self.device)

        frames = self._images(np.stack([batch.frames for batch in batches]))  # [L, B, stack + 1, H, W]
        s, s_next = frames[:, :, :-1], frames[:, :, 1:]
        a, discount = stacked("action"), stacked("discount")
        online, target = self.online, self.target
        heads = online.psi is not None

        # theta^-: one pass over s and s' together
        with torch.no_grad(), self._precision():
            if heads:
                phi_target, phi_next = target.phi(torch.cat([s, s_next], dim=1)).split(cfg.batch, dim=1)
            else:
                phi_next = target.phi(s_next)
            q_next = target.q(phi_next).float()
            if target.psi is not None:
                psi_next = target.psi(phi_next, q_next.argmax(dim=-1)).float()
            if target.xi is not None:
                xi = target.xi(phi_target).float()
            if cfg.bonus_at == "sampling" and heads:
                bonus = self._successor_bonus(phi_target, a, phi_next).cpu().numpy()
        r = stacked("total")
        if cfg.bonus_at == "sampling" and cfg.bonus != "none":
            if self.rnd is not None:
                bonus = self.rnd.compute(s_next[:, :, -1])
            elif not heads:
                bonus = self._table_bonus(np.stack([batch.state for batch in batches]))
            if cfg.mmc == 0:  # else it was observed when it was collected
                self.scale.observe(bonus)
            r = torch.from_numpy(self._pay(stacked("reward").cpu().numpy(), bonus)).to(self.device)

        # theta: one pass over s. The PF head reads phi(s') of theta^-; no gradient would go past phi anyway.
        with self._precision():
            phi = online.phi(s)
            q = online.q(phi).float().gather(2, a.unsqueeze(-1)).squeeze(-1)
            delta_td = td_error(q, r, q_next, cfg.gamma, discount)
            delta_mc = stacked("value") - q if cfg.mmc else delta_td
            losses = {"q": q_loss(delta_td, delta_mc, cfg.mmc, cfg.loss == "huber")}
            if online.psi is not None:
                psi = online.psi(phi, a).float()
                losses["sf"] = sf_loss(phi_target, psi, psi_next, cfg.gamma_sr, discount)
            if online.xi is not None:
                losses["pf"] = pf_loss(phi_next, xi, online.xi(phi_next).float(), cfg.gamma_pr)
            if online.decoder is not None:
                losses["recon"] = reconstruction_loss(frames[:, :, -1], online.decoder(phi, a).float())
            weights = {"q": cfg.w_q, "sf": cfg.w_sf, "pf": cfg.w_pf, "recon": cfg.w_recon}
            loss = total_loss(losses, weights)
        loss.sum().backward()
        self.optimiser.step()
        self.updates += 1
        if cfg.target == "polyak":
            self._follow(cfg.polyak)
        if self.rnd is not None:
            self._note("rnd_loss", self.rnd.learn(s_next[:, :, -1]))
        for name, value in losses.items():
            self._note(f"{name}_loss", value.detach().cpu().numpy())
        mean_loss = float(loss.detach().mean())
        if not math.isfinite(mean_loss):
            raise ValueError(
                f"step {self.step}: the loss is {mean_loss}; a smaller rate may help ({cfg.optimiser} {cfg.rate})"
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

    def _successor_bonus(self, phi: Tensor, a: Tensor, phi_next: Tensor) -> Tensor:
        """r_SF or r_SF-PF [L, B] from theta^-, given its phi(s) and phi(s')."""
        assert self.target.psi is not None
        psi = self.target.psi(phi, a).float()
        if self.settings.bonus == "sf":
            return bonuses.sf(psi, self.settings.norm)
        xi_next = phi_next if self.target.xi is None else self.target.xi(phi_next).float()
        return bonuses.sf_pf(xi_next, psi, self.settings.norm)

    def _table_bonus(self, states: NDArray[np.int64]) -> NDArray[Any]:
        """The controls, of the true states [L, B] that were reached."""
        if self.settings.bonus == "constant":
            return np.full(states.shape, get_reward("constant").function())
        counts = np.take_along_axis(self.visits, states, axis=1)
        return np.asarray(get_reward("count").function(np.maximum(counts, 1)))

    def _pay(self, reward: NDArray[Any], bonus: NDArray[Any]) -> NDArray[np.float32]:
        """What the agent learns from [L, B]: reward + beta bonus, clipped before and after the sum."""
        limit = 1 if self.settings.clip else np.inf
        total = np.clip(reward, -limit, limit)
        if self.settings.bonus != "none":
            total = np.clip(total + self.settings.beta * self.scale(bonus), -limit, limit)
        return np.asarray(total, np.float32)

    def _look(self, stacks: NDArray[np.uint8]) -> Tensor:
        """phi(s; theta^-) of stacks [L, n, stack, H, W]."""
        with torch.no_grad(), self._precision():
            return self.target.phi(self._images(stacks)).float()

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
        with torch.no_grad(), self._precision():
            q = self.online.q(self.online.phi(self._images(stacks)))
        return np.where(random, actions, q.argmax(dim=-1).cpu().numpy())

    # -- loop

    def _begin(self, frames: NDArray[np.uint8], info: Mapping[str, Any], fresh: NDArray[np.bool_]) -> None:
        """Episodes begin in the environments marked `fresh` [L n]."""
        where = fresh.reshape(self.lanes, self.envs)
        self.stacks[where] = tiles(frames[fresh], self.online.encoder.tile)[:, None]
        self.reward[where] = 0
        self.length[where] = 0
        self._count(info, where)
        if self._collects and self.target.psi is not None:
            phi = self._look(self.stacks)
            self.phi = (
                phi
                if self.phi is None
                else torch.where(torch.from_numpy(where).to(self.device)[..., None], phi, self.phi)
            )

    def _count(self, info: Mapping[str, Any], where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count arrivals; the true states [L, n], -1 where unknown."""
        if not self.n_states:
            return np.full(where.shape, -1)
        states = np.asarray(info["state"], np.int64).reshape(where.shape)
        lanes = np.nonzero(where)[0]
        np.add.at(self.visits, (lanes, states[where]), 1)
        new = self.first_visit[lanes, states[where]] < 0
        self.first_visit[lanes[new], states[where][new]] = self.step
        return states

    @property
    def _collects(self) -> bool:
        """Whether the bonus is needed when a step is taken, not only when it is sampled."""
        s = self.settings
        return s.bonus != "none" and (s.bonus_at == "collection" or s.mmc > 0)

    def loop(self) -> Iterator[list[Episode]]:
        """Learn, one step of every environment at a time; yields the episodes that ended in it."""
        while self.step < self.steps:
            yield self.advance()

    def advance(self) -> list[Episode]:
        """One step of every environment, stored, and the updates that are due."""
        cfg = self.settings
        random = self.step < cfg.learning_starts
        a = self.act(self.stacks, 1.0 if random else self.epsilon, self.rngs)
        frames, rewards, terminated, truncated, info = self.env.step(a.ravel())
        before = self.step
        self.step += self.envs
        shape = (self.lanes, self.envs)
        r, terminal = np.asarray(rewards, np.float64).reshape(shape), np.asarray(terminated).reshape(shape)
        over = terminal | np.asarray(truncated).reshape(shape)
        states = self._count(info, np.ones(shape, np.bool_))
        s = self.stacks[:, :, -1]
        frames = tiles(frames, self.online.encoder.tile).reshape(*shape, 1, *frames.shape[1:])
        next_stacks = np.concatenate([self.stacks[:, :, 1:], frames], axis=2)

        bonus = np.zeros(shape)
        if self._collects:
            if self.target.psi is not None:
                assert self.phi is not None
                phi_next = self._look(next_stacks)
                with torch.no_grad(), self._precision():
                    bonus = self._successor_bonus(self.phi, torch.from_numpy(a).to(self.device), phi_next).cpu().numpy()
                self.phi = phi_next
            elif self.rnd is not None:
                bonus = self.rnd.compute(self._images(next_stacks[:, :, -1]))
            else:
                bonus = self._table_bonus(states)
            self.scale.observe(bonus)
            self._note("bonus", bonus)
            self._note("scaled_bonus", cfg.beta * self.scale(bonus))
            if self.n_states:
                self._note("log_visits", np.log(np.take_along_axis(self.visits, states, axis=1)))
        total = self._pay(r, bonus)
        for lane, replay in enumerate(self.replays):
            for env in range(self.envs):
                replay.add(
                    env,
                    s[lane, env],
                    int(a[lane, env]),
                    float(r[lane, env]),
                    float(total[lane, env]),
                    bonus=float(bonus[lane, env]),
                    terminal=bool(terminal[lane, env]),
                    state=int(states[lane, env]),
                )
        self.stacks = next_stacks
        self.reward += r
        self.length += 1
        episodes = self._end(over, terminal) if over.any() else []
        if self.step >= cfg.learning_starts:
            ready = all(r.ready(finished=cfg.mmc > 0) for r in self.replays)
            due = self.step // cfg.train_every - max(before, cfg.learning_starts - 1) // cfg.train_every if ready else 0
            for _ in range(due):
                self.update()
            copy = cfg.target == "periodic" and self.step // cfg.target_every > before // cfg.target_every
            if copy:
                self._follow(1)
            if self.phi is not None and (copy or (due and cfg.target == "polyak")):
                self.phi = self._look(self.stacks)  # as the theta^- of the next bonus sees them
        return episodes

    def _end(self, over: NDArray[np.bool_], terminal: NDArray[np.bool_]) -> list[Episode]:
        """The episodes that are over [L, n]: their last frames and returns to the replay, and new ones begin."""
        value = np.zeros(over.shape)
        cut = over & ~terminal
        if self.settings.mmc and cut.any():  # what a time limit cut off would have been worth
            with torch.no_grad(), self._precision():
                q = self.target.q(self._look(self.stacks)).float().amax(dim=-1)
            value = np.where(cut, q.cpu().numpy(), 0)
        episodes = []
        for lane, env in np.argwhere(over).tolist():
            self.replays[lane].end(env, self.stacks[lane, env, -1], float(value[lane, env]))
            reward, length = float(self.reward[lane, env]), int(self.length[lane, env])
            episodes.append(Episode(lane, env, self.step, reward, length, bool(terminal[lane, env])))
        frames, info = self.env.reset(options={"reset_mask": over.ravel()})
        self._begin(frames, info, over.ravel())
        return episodes

    def end_episodes(self) -> None:
        """Cut off all episodes that are under way, and begin new ones."""
        under_way = self.length > 0
        if under_way.any():
            self._end(under_way, np.zeros_like(under_way))

    def play(self, epsilon: float, rng: np.random.Generator) -> Iterator[Step]:
        """Act without learning, from the current state of the environment on, over and over."""
        while True:
            with torch.no_grad(), self._precision():
                phi = self.online.phi(self._images(self.stacks))
                q = self.online.q(phi)[0, 0].float().cpu().numpy()
            a = int(rng.integers(self.actions)) if rng.random() < epsilon else int(q.argmax())
            action = torch.tensor([[a]], device=self.device)
            frame, before = self.stacks[0, 0, -1].copy(), self._look(self.stacks)
            frames, reward, terminated, truncated, info = self.env.step(np.array([a]))
            self.stacks = np.concatenate([self.stacks[:, :, 1:], frames[None, :, None]], axis=2)
            states = self._count(info, np.ones((1, 1), np.bool_))
            bonus, predicted = 0.0, None
            with torch.no_grad(), self._precision():
                if self.target.psi is not None:
                    bonus = float(self._successor_bonus(before, action, self._look(self.stacks)))
                elif self.rnd is not None:
                    bonus = float(self.rnd.compute(self._images(self.stacks[:, :, -1]))[0, 0])
                elif self.settings.bonus != "none":
                    bonus = float(self._table_bonus(states)[0, 0])
                if self.online.decoder is not None:
                    levels = (255 * self.online.decoder(phi, action)[0, 0].float()).clamp(0, 255)
                    predicted = levels.byte().cpu().numpy()
            over = bool(terminated[0] or truncated[0])
            yield Step(frame, q, a, float(reward[0]), bonus, predicted, over)
            if over:
                whole = np.ones(1, np.bool_)
                frames, info = self.env.reset(options={"reset_mask": whole})
                self._begin(frames, info, whole)

    # -- checkpoints: all that changes

    def weights(self) -> dict[str, NDArray[Any]]:
        """Weights of both networks, of the optimiser, of RND."""
        tensors = {f"online.{name}": p for name, p in self.online.state_dict().items()}
        tensors |= {f"target.{name}": p for name, p in self.target.state_dict().items()}
        tensors |= {f"optimiser.{name}": p for name, p in self.optimiser.state().items()}
        if self.rnd is not None:
            tensors |= {f"rnd.{name}": p for name, p in self.rnd.state().items()}
        return {name: p.detach().cpu().numpy() for name, p in tensors.items()}

    def load_weights(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `weights`."""
        parts: dict[str, dict[str, Tensor]] = {"online": {}, "target": {}, "rnd": {}, "optimiser": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = torch.tensor(array)
        self.online.load_state_dict(parts["online"])
        self.target.load_state_dict(parts["target"])
        self.optimiser.load(parts["optimiser"])
        if self.rnd is not None:
            self.rnd.load(parts["rnd"])

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
        if hasattr(self.env, "get_state"):
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
        if hasattr(self.env, "set_state"):
            self.env.set_state({name[4:]: array for name, array in arrays.items() if name.startswith("env.")})
        else:
            self.end_episodes()
            frames_now, info = self.env.reset()
            self._begin(frames_now, info, np.ones(self.env.num_envs, np.bool_))


_ARRAYS = ("stacks", "reward", "length", "visits", "first_visit")
