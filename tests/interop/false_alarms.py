# SPDX-License-Identifier: Apache-2.0
"""Which events of an array say that something is broken: none of them may be about a box, a link, a
host or a controller that nobody has touched."""
import re

BROKEN = re.compile(
    r"box (lost|failed|refused|fenced)|\babsent\b|fenced|removed from|unreachable"
    r"|not reach|down:|volume stopped|given up|beyond repair|could not be repaired|mismatch"
    r"|did not add up|lost a write|lost its power|has forgotten|epoch")


def last_number(events):
    return max((each["number"] for each in events), default=0)


def false_alarms(events, touched=()):
    """A sentence for each event that says so of none of the boxes `touched`."""
    return [f"'{each['box']}: {each['what']}'" for each in events
            if BROKEN.search(each["what"]) and each["box"] not in touched
            and not set(touched) & set(each["what"].split())]
