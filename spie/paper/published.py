"""The numbers the paper prints, and nothing else: Tables 1 to 5 and the settings given in its text.

A cell is (mean, spread). The paper calls the spread of Tables 1 to 3 a standard error; several are plainly standard
deviations (docs/paper.md says why), which is how `stats.agreement` reads it unless told otherwise.
"""

from typing import Any, NamedTuple


class Cell(NamedTuple):
    mean: float
    spread: float


TABLE_1 = {
    ("riverswim", "sarsa"): Cell(25_075, 1_224),
    ("riverswim", "sarsa-sr"): Cell(1_197_075, 36_999),
    ("riverswim", "sarsa-fr"): Cell(1_547_243, 34_050),
    ("riverswim", "sarsa-srr"): Cell(2_547_156, 479_655),
    ("riverswim", "sarsa-sr-pr"): Cell(2_857_324, 419_922),
    ("sixarms", "sarsa"): Cell(376_655, 8_449),
    ("sixarms", "sarsa-sr"): Cell(1_025_750, 49_095),
    ("sixarms", "sarsa-fr"): Cell(119_149, 42_942),
    ("sixarms", "sarsa-srr"): Cell(2_199_291, 1_024_726),
    ("sixarms", "sarsa-sr-pr"): Cell(1_845_229, 1_032_050),
}
SEEDS_OF_TABLES_1_AND_3 = 100  # Table 4 does not say

TABLE_2 = {  # Atari scores, 10 seeds
    ("freeway", "dqn"): Cell(32.4, 0.3),
    ("freeway", "dqn-mmc"): Cell(29.5, 0.1),
    ("freeway", "rnd"): Cell(28.2, 0.2),
    ("freeway", "dqn-sr"): Cell(29.4, 0.1),
    ("freeway", "dqn-sf-pf"): Cell(27.5, 0.2),
    ("gravitar", "dqn"): Cell(118.5, 22.0),
    ("gravitar", "dqn-mmc"): Cell(1078.3, 254.1),
    ("gravitar", "rnd"): Cell(714.1, 105.9),
    ("gravitar", "dqn-sr"): Cell(457.4, 120.3),
    ("gravitar", "dqn-sf-pf"): Cell(1223.0, 408.9),
    ("montezuma-revenge", "dqn"): Cell(0.0, 0.0),
    ("montezuma-revenge", "dqn-mmc"): Cell(0.0, 0.0),
    ("montezuma-revenge", "rnd"): Cell(528, 314.0),
    ("montezuma-revenge", "dqn-sr"): Cell(1395.4, 1121.8),
    ("montezuma-revenge", "dqn-sf-pf"): Cell(1530.0, 1072.1),
    ("private-eye", "dqn"): Cell(1447.4, 2567.9),
    ("private-eye", "dqn-mmc"): Cell(113.4, 42.3),
    ("private-eye", "rnd"): Cell(61.3, 53.7),
    ("private-eye", "dqn-sr"): Cell(104.4, 50.4),
    ("private-eye", "dqn-sf-pf"): Cell(488.2, 390.9),
    ("solaris", "dqn"): Cell(783.4, 55.3),
    ("solaris", "dqn-mmc"): Cell(2132.6, 394.8),
    ("solaris", "rnd"): Cell(1395.2, 401.7),
    ("solaris", "dqn-sr"): Cell(1890.1, 163.1),
    ("solaris", "dqn-sf-pf"): Cell(2455.8, 262.0),
    ("venture", "dqn"): Cell(4.4, 5.4),
    ("venture", "dqn-mmc"): Cell(1220.1, 51.0),
    ("venture", "rnd"): Cell(953.7, 167.3),
    ("venture", "dqn-sr"): Cell(1348.5, 56.5),
    ("venture", "dqn-sf-pf"): Cell(1274.0, 133.2),
}

RECONSTRUCTION = {  # Appendix D: Montezuma's Revenge, by agent and whether it has the auxiliary task
    ("dqn-sf-pf", True): TABLE_2["montezuma-revenge", "dqn-sf-pf"],
    ("dqn-sf-pf", False): Cell(551.5, 618.4),  # 5 seeds
    ("dqn-sr", False): Cell(398.5, 230.1),  # quoted from elsewhere
}
FRAMES_TO_LEARN = {"dqn-sf-pf": 8 * 10**6, "dqn-sr": 24 * 10**6}  # Montezuma's Revenge, until the score saturates

TABLE_3 = {
    ("riverswim", "sarsa-sr-fixed"): Cell(327_402, 787_118),
    ("riverswim", "sarsa-fr-fixed"): Cell(278_096, 666_752),
    ("riverswim", "sarsa-srr-fixed"): Cell(3_096_913, 230_059),
    ("sixarms", "sarsa-sr-fixed"): Cell(969_781, 2_895_306),
    ("sixarms", "sarsa-fr-fixed"): Cell(1_143_037, 1_939_021),
    ("sixarms", "sarsa-srr-fixed"): Cell(2_059_424, 3_292_936),
}

TABLE_4 = {
    ("riverswim", "sarsa-srr"): TABLE_1["riverswim", "sarsa-srr"],
    ("riverswim", "sarsa-srr-a"): Cell(127_703, 530_564),
    ("riverswim", "sarsa-srr-b"): Cell(2_629_947, 930_170),
    ("riverswim", "sarsa-srr-c"): Cell(95_691, 181_216),
    ("sixarms", "sarsa-srr"): TABLE_1["sixarms", "sarsa-srr"],
    ("sixarms", "sarsa-srr-a"): Cell(893_530, 2_601_324),
    ("sixarms", "sarsa-srr-b"): Cell(1_902_553, 2_211_960),
    ("sixarms", "sarsa-srr-c"): Cell(562_346, 1_748_455),
}


def _row(alpha: float, eta: float | None, gamma_sr: float | None, beta: float | None, epsilon: float) -> dict[str, Any]:
    row = {"alpha": alpha, "eta": eta, "gamma": 0.95, "gamma_sr": gamma_sr, "beta": beta, "epsilon": epsilon}
    return {name: value for name, value in row.items() if value is not None}


TABLE_5: dict[tuple[str, str], dict[str, Any]] = {
    ("riverswim", "sarsa"): _row(0.005, None, None, None, 0.01),
    ("riverswim", "sarsa-sr"): _row(0.25, 0.1, 0.95, 10, 0.1),
    ("riverswim", "sarsa-fr"): _row(0.25, 0.01, 0.95, 50, 0.1),
    ("riverswim", "sarsa-srr"): _row(0.1, 0.25, 0.95, 10, 0.01),
    ("riverswim", "sarsa-sr-pr"): _row(0.25, 0.25, 0.95, 1, 0.01) | {"eta_pr": 0.1, "gamma_pr": 0.99},
    ("riverswim", "sarsa-sr-fixed"): _row(0.01, None, 0.95, 10, 0.05),
    ("riverswim", "sarsa-fr-fixed"): _row(0.1, None, 0.95, 10, 0.1),
    ("riverswim", "sarsa-srr-fixed"): _row(0.25, None, 0.95, 10, 0.01),
    ("sixarms", "sarsa"): _row(0.5, None, None, None, 0.01),
    ("sixarms", "sarsa-sr"): _row(0.1, 0.01, 0.99, 100, 0.01),
    ("sixarms", "sarsa-fr"): _row(0.1, 0.01, 0.99, 100, 0.01),
    ("sixarms", "sarsa-srr"): _row(0.01, 0.01, 0.99, 10_000, 0.01),
    ("sixarms", "sarsa-sr-pr"): _row(0.05, 0.25, 0.95, 10, 0.01) | {"eta_pr": 0.25, "gamma_pr": 0.99},
    ("sixarms", "sarsa-sr-fixed"): _row(0.5, None, 0.95, 1, 0.01),
    ("sixarms", "sarsa-fr-fixed"): _row(0.5, None, 0.95, 1, 0.01),
    ("sixarms", "sarsa-srr-fixed"): _row(0.5, None, 0.95, 10, 0.01),
}
GRID_SETTINGS = _row(0.1, 0.1, 0.95, 1.0, 0.1)
CHAIN_STEPS, COVERAGE_STEPS = 5_000, 8_000
FIGURE_6_STEPS = (200, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 5000, 6000)
SWEEP: dict[str, tuple[float, ...]] = {  # the printed grid and the printed choices together; only the latter have 0.01
    "alpha": (0.005, 0.01, 0.05, 0.1, 0.25, 0.5),
    "eta": (0.005, 0.01, 0.05, 0.1, 0.25, 0.5),
    "gamma_sr": (0.5, 0.8, 0.9, 0.95, 0.99),
    "eta_pr": (0.005, 0.01, 0.05, 0.1, 0.25, 0.5),
    "gamma_pr": (0.5, 0.8, 0.9, 0.95, 0.99),
    "beta": (1.0, 10.0, 50.0, 100.0, 1000.0, 10000.0),
    "epsilon": (0.01, 0.05, 0.1),
}

MOUNTAIN_CAR = {  # Appendix E; the rest of what an agent needs is in docs/paper.md
    "alpha": 0.1, "eta": 0.2, "eta_pr": 0.2, "gamma": 0.99, "gamma_sr": 0.95, "gamma_pr": 0.95, "beta": 1000.0,
    "epsilon": 0.3, "dimension": 128,
}  # fmt: skip
MOUNTAIN_CAR_EPISODES = 1000
