"""What tools/launch gives its ranks, how it ends them, and what it says."""

import pathlib
import subprocess
import sys
import time
import unittest

LAUNCH = pathlib.Path(__file__).parents[2] / "tools" / "launch"
TIMEOUT = 60


def launch(*arguments):
    return subprocess.run([LAUNCH, *arguments], capture_output=True, text=True, timeout=TIMEOUT)


def python(text):
    return sys.executable, "-c", text


class Launch(unittest.TestCase):
    def test_each_rank_knows_who_and_where(self):
        told = launch("-n", "3", *python("import os; print(*(os.environ['RILL_' + name] for name in ('RANK', 'RANKS', 'MEETING', 'JOB')))"))
        self.assertEqual(told.returncode, 0, told.stderr)
        lines = sorted(line.split() for line in told.stdout.splitlines())
        self.assertEqual([line[:3] for line in lines], [[f"[{rank}]", str(rank), "3"] for rank in range(3)])
        self.assertEqual(len({tuple(line[3:]) for line in lines}), 1)
        self.assertRegex(lines[0][3], r"^127\.0\.0\.1:\d+$")

    def test_the_first_failure_is_the_exit_status_and_ends_the_others(self):
        begun = time.monotonic()
        told = launch("-n", "2", *python("import os, sys, time\nif os.environ['RILL_RANK'] == '1': sys.exit(3)\ntime.sleep(50)"))
        self.assertEqual(told.returncode, 3)
        self.assertLess(time.monotonic() - begun, 40)  # the others would sleep for 50 s

    def test_errors_are_preceded_by_the_rank(self):
        told = launch("-n", "1", *python("import sys; sys.exit('no')"))
        self.assertEqual((told.returncode, told.stderr), (1, "[0] no\n"))

    def test_a_command_that_is_not_there_is_named(self):
        told = launch("-n", "2", "/nowhere/train")
        self.assertEqual((told.returncode, told.stderr), (1, "launch: cannot start /nowhere/train: No such file or directory\n"))

    def test_without_ranks_it_says_how_it_is_used(self):
        self.assertIn("usage: launch", launch("true").stderr)
        self.assertIn("usage: launch", launch("-n", "0", "true").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
