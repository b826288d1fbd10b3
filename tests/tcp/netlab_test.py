"""usage: netlab_test.py TEST_TCP

Ranks of rill::tcp on an emulated cluster whose links are cut, healed, unplugged and plugged while they sum: all sums are
exact. Needs root and namespaces.
"""

import os
import pathlib
import subprocess
import sys
import time
import unittest

NETLAB = pathlib.Path(__file__).parents[2] / "tools" / "netlab"
SKIPPED = 77  # as tests/CMakeLists.txt says
HOSTS, ROUNDS, TIMEOUT = 3, 40, 120
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RILL_")}
ENVIRONMENT["NETLAB_NAME"] = f"tcp{os.getpid()}"


def netlab(*arguments, check=True):
    return subprocess.run([NETLAB, *map(str, arguments)], env=ENVIRONMENT, check=check, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)


class Ranks:
    """A rank on each host; they sum in rounds."""

    def __init__(self, **variables):
        self.process = subprocess.Popen(
            ["timeout", str(TIMEOUT), NETLAB, "run", str(HOSTS), "--", PROGRAM, "--no-skip",
             "-tc=sums of the ranks that a launcher has started are exact"],
            env=ENVIRONMENT | variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = []

    def await_round(self, number):
        for line in self.process.stdout:
            self.said.append(line)
            if line == f"[0] round {number}\n":
                return
        raise AssertionError("".join(self.said))

    def end(self):
        self.said += self.process.stdout  # until it ends: `timeout` ends the ranks
        self.process.communicate(timeout=TIMEOUT)
        if self.process.returncode != 0 or f"[0] round {ROUNDS}\n" not in self.said:
            raise AssertionError("".join(self.said))


class Links(unittest.TestCase):
    def setUp(self):
        self.addCleanup(netlab, "down")
        netlab("up", HOSTS, "200mbit")

    def check(self, **variables):
        ranks = Ranks(**variables)
        ranks.await_round(2)
        self.lose([("cut", 0, 1)], [("heal", 0, 1)])  # one way
        ranks.await_round(8)
        self.lose([("cut", 1, 2), ("cut", 2, 1)], [("heal", 1, 2), ("heal", 2, 1)])  # both ways
        ranks.await_round(14)
        self.lose([("unplug", 2)], [("plug", 2)])
        ranks.await_round(20)
        self.lose([("unplug", 0)], [("plug", 0)])  # where the ranks have met
        ranks.end()

    @staticmethod
    def lose(these, and_back):
        for command in these:
            netlab(*command)
        time.sleep(2)  # longer than a rank waits until it dials anew
        for command in and_back:
            netlab(*command)

    def test_plain(self):
        self.check()

    def test_two_cards(self):
        netlab("down")
        netlab("up", HOSTS, "20mbit", 2)
        ranks = Ranks(RILL_INTERFACES="eth0,eth1")
        ranks.await_round(2)
        for number, host, card in ((9, 1, 1), (16, 2, 0), (23, 0, 0)):
            self.lose([("unplug", host, card)], [("plug", host, card)])
            ranks.await_round(number)
        netlab("unplug", 0, 1)  # for good
        ranks.await_round(26)
        self.lose([("unplug", 0, 0)], [("plug", 0, 0)])  # both
        ranks.end()

    def test_encrypted(self):
        self.check(RILL_SECURITY="encrypted")

    def test_link_local(self):
        said = netlab("exec", 0, PROGRAM, "-tc=ranks meet by a link-local address*").stdout
        self.assertIn(" 1 passed", said)
        self.assertNotIn("skipped: no interface", said)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    permitted = netlab("check", check=False)
    if permitted.returncode != 0:
        print(f"skipped: {permitted.stderr.strip()}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
