# SPDX-License-Identifier: Apache-2.0
"""What the soak does to an array, by chance. Each kind is a name, how often it is drawn, and a
function that draws whom it hits and for how long: (who, what is to happen, seconds).

GRAY ones break nothing: everybody answers, late. During them nobody may be declared broken, but a
box from which nothing has been heard for the documented silence (false_alarms.py)."""
import contextlib

import network_faults

GRAY = {"box paused for a moment", "boxes pause again and again", "packets lost", "congestion"}
GRAY_SECONDS = (2, 8)
LOSSES = (0.2, 1, 2, 5)  # percent
RATES = ("200mbit", "1gbit")
QUEUES = (12, 16, 24, 40)  # packets


@contextlib.contextmanager
def together(*faults):
    with contextlib.ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault)
        yield


class Faults:
    """`targets` are the names of hosts that may be killed: their clients come back."""

    def __init__(self, array, chance, targets, lease):
        self.array, self.chance, self.targets, self.lease = array, chance, targets, lease
        self.kinds = [
            ("box killed", 6, self.box_killed),
            ("box killed, away for long", 2, self.box_killed_for_long),
            ("two boxes killed", 2, self.two_boxes_killed),
            ("all boxes killed", 2, self.all_boxes_killed),
            ("all boxes and controller killed", 2, self.everything_killed),
            ("box paused for a moment", 3, self.box_paused),
            ("box paused for long", 2, self.box_paused_for_long),
            ("boxes pause again and again", 4, self.boxes_stutter),
            ("box cut off", 3, self.box_cut_off),
            ("box and controller apart", 2, self.box_and_controller_apart),
            ("two boxes apart", 2, self.boxes_apart),
            ("box and host apart", 2, self.box_and_host_apart),
            ("host and controller apart", 1, self.host_and_controller_apart),
            ("host killed", 6, self.host_killed),
            ("host paused", 1, self.host_paused),
            ("controller killed", 5, self.controller_killed),
            ("waiting controller killed", 1, self.standby_killed),
            ("controller paused for a moment", 2, self.controller_paused),
            ("controller paused for long", 3, self.controller_paused_for_long),
            ("controller cut off", 2, self.controller_cut_off),
            ("box killed, controller paused", 2, self.box_killed_and_controller_paused),
            ("box killed, controller killed", 2, self.box_and_controller_killed),
        ]
        if network_faults.can_congest():
            self.kinds.append(("congestion", 4, self.congestion))
        if network_faults.can_lose():
            self.kinds.append(("packets lost", 4, self.packets_lost))
        if array.store:
            self.kinds.append(("controller and store apart", 3, self.controller_and_store_apart))

    def keep_only(self, names):
        self.kinds = [each for each in self.kinds if each[0] in names]

    def draw(self):
        """A kind's name, whom it hits, what is to happen, and for how long."""
        weights = [weight for _, weight, _ in self.kinds]
        name, _, make = self.chance.choices(self.kinds, weights)[0]
        return (name, *make())

    def box(self):
        return self.chance.choice(list(self.array.cluster.boxes.values()))

    def host(self):
        return self.array.cluster.hosts[self.chance.choice(self.targets)]

    def office(self):
        return self.array.in_office()[0]

    def between(self, least, most):
        return self.chance.uniform(least, most)

    def longer_than_lease(self):
        return self.lease * self.between(1.2, 2.5)

    def made(self, roles, fault, seconds):
        return [getattr(role, "name", role) for role in roles], fault, seconds

    def box_killed(self):
        box = self.box()
        return self.made([box], self.array.killed(box), self.between(0, 4))

    def box_killed_for_long(self):
        box = self.box()
        return self.made([box], self.array.killed(box), self.between(10, 25))

    def two_boxes_killed(self):
        boxes = self.chance.sample(list(self.array.cluster.boxes.values()), 2)
        return self.made(boxes, self.array.killed(*boxes), self.between(0, 3))

    def all_boxes_killed(self):
        boxes = list(self.array.cluster.boxes.values())
        self.chance.shuffle(boxes)
        return self.made(["all"], self.array.killed(*boxes), self.between(0, 2))

    def everything_killed(self):
        roles = [*self.array.cluster.boxes.values(), *self.array.controllers()]
        self.chance.shuffle(roles)
        return self.made(["all"], self.array.killed(*roles), self.between(0, 2))

    def box_paused(self):
        box = self.box()
        return self.made([box], self.array.paused(box), self.between(0.1, 1.5))

    def box_paused_for_long(self):
        box = self.box()
        return self.made([box], self.array.paused(box), self.between(5, 25))

    def boxes_stutter(self):
        """One for 60 to 300 ms, then another, or the same one each time."""
        boxes = list(self.array.cluster.boxes.values())
        if self.chance.random() < 0.5:
            boxes = [self.box()]
        return self.made(boxes, network_faults.Stutter(boxes, self.chance),
                         self.between(*GRAY_SECONDS))

    def machines(self):
        """The roles whose network is bad: one box or host, all boxes, or all boxes and hosts."""
        boxes = list(self.array.cluster.boxes.values())
        hosts = list(self.array.cluster.hosts.values())
        return self.chance.choice(
            [[self.chance.choice([*boxes, *hosts])], boxes, [*boxes, *hosts]])

    def packets_lost(self):
        roles, percent = self.machines(), self.chance.choice(LOSSES)
        fault = network_faults.all_of({
            role.name: network_faults.losing(self.array.machine(role), percent) for role in roles})
        return self.made(roles, fault, self.between(*GRAY_SECONDS))

    def congestion(self):
        roles = self.machines()
        rate, queue = self.chance.choice(RATES), self.chance.choice(QUEUES)
        fault = network_faults.all_of({
            role.name: network_faults.congested(self.array.machine(role), rate, queue)
            for role in roles})
        return self.made(roles, fault, self.between(*GRAY_SECONDS))

    def box_cut_off(self):
        box = self.box()
        return self.made([box], self.array.cut_off(box), self.between(0.5, 15))

    def box_and_controller_apart(self):
        box, office = self.box(), self.office()
        return self.made([box, office], self.array.apart(box, office), self.between(1, 15))

    def boxes_apart(self):
        boxes = self.chance.sample(list(self.array.cluster.boxes.values()), 2)
        return self.made(boxes, self.array.apart(*boxes), self.between(1, 15))

    def box_and_host_apart(self):
        box, host = self.box(), self.host()
        return self.made([box, host], self.array.apart(box, host), self.between(1, 15))

    def host_and_controller_apart(self):
        host, office = self.host(), self.office()
        return self.made([host, office], self.array.apart(host, office), self.between(1, 10))

    def host_killed(self):
        host = self.host()
        return self.made([host], self.array.killed(host), self.between(0, 2))

    def host_paused(self):
        host = self.host()
        return self.made([host], self.array.paused(host), self.between(0.5, 8))

    def controller_killed(self):
        office = self.office()
        return self.made([office], self.array.killed(office), self.between(0, 2 * self.lease))

    def standby_killed(self):
        waiting = self.array.in_office()[1]
        return self.made([waiting], self.array.killed(waiting), self.between(0, 5))

    def controller_paused(self):
        office = self.office()
        return self.made([office], self.array.paused(office), self.between(0.1, 0.8 * self.lease))

    def controller_paused_for_long(self):
        office = self.office()
        return self.made([office], self.array.paused(office), self.longer_than_lease())

    def controller_cut_off(self):
        office = self.office()
        return self.made([office], self.array.cut_off(office), self.longer_than_lease())

    def controller_and_store_apart(self):
        office = self.office()
        return self.made([office], self.array.apart(office, "store"), self.longer_than_lease())

    def box_killed_and_controller_paused(self):
        box, office = self.box(), self.office()
        return self.made([box, office],
                         together(self.array.killed(box), self.array.paused(office)),
                         self.longer_than_lease())

    def box_and_controller_killed(self):
        box, office = self.box(), self.office()
        return self.made([box, office], self.array.killed(box, office), self.between(0, self.lease))
