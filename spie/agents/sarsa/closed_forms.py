"""M, F and N that are given, not learned: closed forms under the uniform random policy."""

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spie import representations
from spie.agents.base import pr_rates
from spie.agents.sarsa.options import F_ROW, M_COL, M_ROW, N_COL
from spie.engine.lanes import check_memory
from spie.tasks.mdp import MDP

if TYPE_CHECKING:
    from spie.agents.sarsa.settings import Sarsa


def closed_forms(mdp: MDP, discounts: NDArray[np.float64], has: dict[str, bool]) -> tuple[NDArray[np.float64], ...]:
    """M, F, N^T and the sums, flat, for each pair (gamma_SR, gamma_PR) of discounts and each phase.

    has: what is asked for. Of F only the sums are ever read, so it is empty.
    """
    S = mdp.n_states
    n = len(discounts) * mdp.n_phases
    dense = has["M"] + has["F"] + has["N"] + has["N_COL"]
    check_memory(8.0 * n * S * S * dense, f"{mdp.name}: closed forms of {S:,} states", "use learned=True")
    M, N = np.zeros((n if has["M"] else 0, S, S)), np.zeros((n if has["N"] else 0, S, S))
    sums = np.zeros((4, n, S))
    for i, ((gamma_sr, gamma_pr), phase) in enumerate(itertools.product(discounts, range(mdp.n_phases))):
        P, terminal = mdp.transition(phase=phase), mdp.terminal[phase]
        if has["M"]:
            M[i] = representations.sr(P, gamma_sr, terminal)
        if has["M_ROW"]:
            sums[M_ROW, i] = representations.sr_row_sums(P, gamma_sr, terminal)
        if has["M_COL"]:
            sums[M_COL, i] = representations.sr_column_sums(P, gamma_sr, terminal)
        if has["F"]:
            sums[F_ROW, i] = representations.fr(P, gamma_sr, terminal).sum(axis=1)
        if has["N"] or has["N_COL"]:
            predecessors = representations.pr(P, gamma_pr, terminal)
            sums[N_COL, i] = predecessors.sum(axis=0)
            if has["N"]:
                N[i] = predecessors.T
    return M.reshape(-1), np.zeros(0), N.reshape(-1), sums.reshape(4, -1)


def given_matrices(mdp: MDP, s: "Sarsa", names: set[str], seeds: int) -> dict[str, NDArray[np.float64]]:
    """The fixed matrices that were asked for, of the first phase; the same for every seed."""
    P, terminal = mdp.transition(), mdp.terminal[0]
    matrices = {
        "M": lambda: representations.sr(P, s.gamma_sr, terminal),
        "F": lambda: representations.fr(P, s.gamma_sr, terminal),
        "N": lambda: representations.pr(P, pr_rates(s)[1], terminal),
    }
    return {name: np.broadcast_to(matrices[name](), (seeds, *P.shape)) for name in names}
