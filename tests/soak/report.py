# SPDX-License-Identifier: Apache-2.0
"""What a soak has done and seen, as a table or as JSON."""
import json
import os
import statistics
import time
import traceback


def clock(seconds):
    seconds = max(0, int(seconds))
    return f"{seconds // 60}:{seconds % 60:02d}"


def show_octets(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


class Report:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.kinds = {}  # name: those that were survived
        self.under_way = None
        self.scrubbed = {}
        self.unclean = []
        self.result = {}

    def drawn(self, fault):
        self.under_way = f"{fault[0]} ({', '.join(fault[1])}), {fault[3]:.1f} s"
        return fault

    def suffered(self, kind, **figures):
        self.under_way = None
        self.kinds.setdefault(kind, []).append(figures)

    def last_line(self, kind, who):
        last = self.kinds[kind][-1]
        return (f"{kind} ({', '.join(who)}) for {last['lasted']:.1f} s; first request "
                f"{last['first']:.2f} s, longest {last['longest']:.2f} s")

    def finish(self, counts, failure, folder, shadows):
        def longest(figures):
            return round(max(each["longest"] for each in figures), 2)
        self.result = {
            "seed": self.options.seed, "minutes": round((time.monotonic() - self.began) / 60, 1),
            "store": self.options.store, "load_average": round(os.getloadavg()[2], 1),
            "faults": {kind: {
                "count": len(figures),
                "first_median": round(statistics.median(each["first"] for each in figures), 2),
                "first_longest": round(max(each["first"] for each in figures), 2),
                "longest": longest(figures)} for kind, figures in sorted(self.kinds.items())},
            "counts": counts, "scrub_mismatches": self.scrubbed, "ended_badly": self.unclean,
            "longest_pause": round(max((each.pauses.longest_ever for each in shadows), default=0),
                                   2),
            "outcome": "ok",
        }
        if failure:
            self.result.update(
                outcome=f"{type(failure).__name__}: {failure}", during=self.under_way,
                logs=str(folder), where=traceback.format_exception(failure)[-3:])

    def show(self, no_guest):
        result = self.result
        if no_guest:
            result["guest"] = no_guest
        if self.options.json:
            print(json.dumps(result, indent=1))
            return
        print(f"\n{'what happened':34} {'times':>5} {'first request, s':>17} {'longest':>8}")
        print(f"{'':34} {'':>5} {'median    longest':>17} {'s':>8}")
        for kind, figures in result["faults"].items():
            print(f"{kind:34} {figures['count']:5} {figures['first_median']:7.2f} "
                  f"{figures['first_longest']:9.2f} {figures['longest']:8.2f}")
        counts = result["counts"]
        total = sum(figures["count"] for figures in result["faults"].values())
        print(f"{'all':34} {total:5} {'':17} {result['longest_pause']:8.2f}\n")
        if counts:
            self.show_counts(counts)
        print(f"scrub        {result['scrub_mismatches'] or 'not done'} mismatches")
        print(f"seed {result['seed']}, {result['minutes']} minutes, store {result['store']}")
        if no_guest:
            print(f"without the guest: {no_guest}")
        if result["ended_badly"]:
            print(f"ended badly when told to stop: {', '.join(result['ended_badly'])}")
        if result["outcome"] != "ok":
            print(f"FAILED: {result['outcome']}\nduring: {result['during']}\n"
                  f"{''.join(result['where'])}\nlogs: {result['logs']}")
        else:
            print("nothing lost, nothing wrong")

    @staticmethod
    def show_counts(counts):
        print(f"shadow       {counts['shadow_writes']} writes, {counts['shadow_reads']} reads, "
              f"{show_octets(counts['shadow_octets'])}; {counts['unanswered_writes']} writes were "
              "not answered")
        print(f"fio          {counts['fio_requests']} requests, "
              f"{show_octets(counts['fio_octets'])}")
        print(f"guest        {counts['guest_operations']} operations on files, "
              f"{show_octets(counts['guest_octets'])}, {counts['guest_rounds']} rounds with fsck")
