"""`make fuzz`: made-up inputs of every kind for some minutes; see harness.py for what counts as a failure.

python tests/fuzz/__main__.py                              all kinds, five minutes
python tests/fuzz/__main__.py maps --seconds 60 --seed 3   one kind
python tests/fuzz/__main__.py maps --seed 3 --case 1234    one input again, with all that it says
"""

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import commands  # noqa: E402
import doors  # noqa: E402
import files  # noqa: E402
import library  # noqa: E402
from harness import Fuzzer, Tally, repeat, run  # noqa: E402

FUZZERS = {fuzzer.name: fuzzer for fuzzer in (*doors.FUZZERS, *library.FUZZERS, *files.FUZZERS, *commands.FUZZERS)}
COLUMNS = ("right", "refused", "raw error", "hang", "crash", "difference")


def campaign(fuzzers: list[Fuzzer], seed: int, seconds: float, most: int) -> dict[str, Tally]:
    """Every fuzzer for its share of the time; prints a line each, and the failures."""
    shares = sum(fuzzer.share for fuzzer in fuzzers)
    print(f"{'inputs':<18}{'tried':>10}" + "".join(f"{name:>12}" for name in COLUMNS) + f"{'seconds':>10}", flush=True)
    tallies = {}
    for fuzzer in fuzzers:
        tally = tallies[fuzzer.name] = run(fuzzer, seed, seconds * fuzzer.share / shares, most)
        counts = "".join(f"{tally.counts[name]:>12,}" for name in COLUMNS)
        print(f"{fuzzer.name:<18}{tally.inputs:>10,}{counts}{tally.seconds:>10.0f}", flush=True)
        for place, again in tally.failures.items():
            print(f"  {place}: {again}", flush=True)
    print(f"{sum(t.inputs for t in tallies.values()):,} inputs of {len(tallies)} kinds, seed {seed}")
    return tallies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=f"of inputs; all without: {', '.join(FUZZERS)}")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10**9, help="inputs of each kind")
    parser.add_argument("--case", type=int, help="the number of one input, to try it again")
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in FUZZERS:
            parser.error(f"no kind {kind}; kinds are {', '.join(FUZZERS)}")
    chosen = [FUZZERS[kind] for kind in asked.kinds or FUZZERS]
    if asked.case is not None:
        return int(repeat(chosen[0], asked.seed, asked.case) not in ("right", "refused"))
    tallies = campaign(chosen, asked.seed, asked.seconds, asked.most)
    return int(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
