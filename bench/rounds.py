# SPDX-License-Identifier: Apache-2.0
"""How the benches measure: everyone in turns, round after round, and of all runs the median and the
spread. Also how sizes and numbers are written in tables."""
import math
import re
import statistics
import sys

from surroundings import RUN_SECONDS_MAX, Failed

FIRST_COUNT = 100
GROWTHS_MAX = 10


def take_turns(arguments, contestants, wanted):
    """The samples of each run, by workload and name. Who fails is named and left out."""
    samples = {workload: {} for workload in wanted}
    failures = {}
    for round_number in range(arguments.rounds):
        for workload, by_name in samples.items():
            # The order turns with each round, so that nobody always follows the same one.
            turn = round_number % len(contestants)
            for contestant in contestants[turn:] + contestants[:turn]:
                who = f"{contestant.name}, {workload}"
                if not contestant.can(workload) or who in failures:
                    continue
                try:
                    sample = contestant.measure(workload, arguments.seconds)
                    by_name.setdefault(contestant.name, []).append(sample)
                except Failed as why:
                    failures[who] = str(why)
                    print(f"{who}: {why}", file=sys.stderr)
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
    return samples, failures


class LongEnough:
    """Runs of at least half the time asked for, of a program that is told a count. How many it
    takes is found out by runs that grow, the first time and whenever a slow moment had misled us.
    """

    def __init__(self):
        self.counts = {}

    def run(self, key, seconds, run):
        """run(count) says how many seconds each took; the last answer is returned."""
        count = self.counts.get(key, FIRST_COUNT)
        for _ in range(GROWTHS_MAX):
            each = run(count)
            if each * count >= seconds / 2:
                break
            count = math.ceil(min(count * 8, seconds / each))
        self.counts[key] = count
        return each


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def add_ratios(by_name, base):
    if base in by_name:
        for result in by_name.values():
            result["ratio"] = result["median"] / by_name[base]["median"]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def spread_text(result):
    median, low, high = (number(result[key]) for key in ("median", "low", "high"))
    return f"{median} ({low}–{high})"


def ratio_text(result):
    return f", ×{result['ratio']:.2f}" if "ratio" in result else ""


def parse_size(text):
    """64, 4K, 1M."""
    if not (found := re.fullmatch(r"(\d+)([KM]?)", text)):
        raise ValueError(f"{text} is not a size; say 64, 4K or 1M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20}[found[2]]


def size_text(size):
    for unit, shift in (("M", 20), ("K", 10)):
        if size >> shift and not size % (1 << shift):
            return f"{size >> shift}{unit}"
    return str(size)


def add_usual_options(options, rounds, seconds):
    options.add_argument("--rounds", type=int, default=rounds)
    options.add_argument("--seconds", type=float, default=seconds, help="per run, about")
    options.add_argument("--only", default="",
                         help='only workloads with this in their name, as "write polling 4096"')
    options.add_argument("--without", default=[], action="append", help="a contestant to leave out")
    options.add_argument("--json", action="store_true")


def choose_unsaid(arguments, **usual):
    """What was not said on the command line is as usual."""
    for name, value in usual.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def check_usual_options(options, arguments):
    if arguments.rounds < 1 or not 0 < arguments.seconds <= RUN_SECONDS_MAX / 10:
        options.error(f"at least one round, and at most {RUN_SECONDS_MAX // 10} seconds per run")
    try:
        [parse_size(size) for size in getattr(arguments, "sizes", "1").split(",")]
    except ValueError as why:
        options.error(str(why))
