"""What tools/launch gives its ranks, how it ends them, and what it says."""

import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

LAUNCH = pathlib.Path(__file__).parents[2] / "tools" / "launch"
TIMEOUT = 60


def launch(*arguments, environment=None):
    return subprocess.run([LAUNCH, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          env={**os.environ, **(environment or {})})


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

    def test_ranks_end_when_nobody_reads_what_they_say(self):
        command = f"{LAUNCH} -n 1 yes hello | head -1"
        told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(told.stdout, "[0] hello\n")

    def test_ranks_end_with_the_terminal(self):
        begun = subprocess.Popen([LAUNCH, "-n", "1", *python("import os, time; print(os.getpid(), flush=True); time.sleep(50)")],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        rank = int(begun.stdout.readline().split()[1])
        begun.send_signal(signal.SIGHUP)
        self.assertEqual(begun.wait(timeout=TIMEOUT), 128 + signal.SIGHUP)
        begun.stdout.close()
        with self.assertRaises(ProcessLookupError):
            os.kill(rank, 0)

    def test_errors_are_preceded_by_the_rank(self):
        told = launch("-n", "1", *python("import sys; sys.exit('no')"))
        self.assertEqual((told.returncode, told.stderr), (1, "[0] no\n"))

    def test_a_command_that_is_not_there_is_named(self):
        told = launch("-n", "2", "/nowhere/train")
        self.assertEqual((told.returncode, told.stderr), (1, "launch: cannot start /nowhere/train: No such file or directory\n"))

    def test_going_on_the_others_end_by_themselves(self):
        told = launch("-n", "2", "--keep-going",
                      *python("import os, sys, time\nif os.environ['RILL_RANK'] == '1': sys.exit(3)\ntime.sleep(1)\nprint('done')"))
        self.assertEqual((told.returncode, told.stdout), (3, "[0] done\n"))

    def test_all_ranks_have_one_key_that_no_command_line_shows(self):
        print_key = "import os; print(os.environ.get('RILL_KEY'), os.environ.get('RILL_SECURITY'))"
        keys = {line.split()[1] for line in launch("-n", "3", *python(print_key)).stdout.splitlines()}
        self.assertEqual(len(keys), 1)
        self.assertGreaterEqual(len(keys.pop()), 22)
        told = launch("-n", "1", *python(print_key), environment={"RILL_KEY": "my own"})
        self.assertEqual(told.stdout, "[0] my own None\n")
        told = launch("-n", "1", *python(print_key), environment={"RILL_SECURITY": "open"})
        self.assertEqual(told.stdout, "[0] None open\n")

    def test_a_new_key_is_its_owners_alone_and_is_never_replaced(self):
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home, ".config/rill/key")
            told = launch("--make-key", environment={"HOME": home})
            self.assertEqual((told.returncode, told.stdout), (0, f"{path}\n"), told.stderr)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            key = path.read_text()
            self.assertGreaterEqual(len(key.strip()), 22)
            again = launch("--make-key", environment={"HOME": home})
            self.assertEqual((again.returncode, path.read_text()), (1, key))
            self.assertIn("is there already", again.stderr)

    def test_without_ranks_it_says_how_it_is_used(self):
        self.assertIn("usage: launch", launch("true").stderr)
        self.assertIn("usage: launch", launch("-n", "0", "true").stderr)



class Hosts(unittest.TestCase):
    """Hosts are shells of this one, without its variables: a program in place of ssh writes down what it was asked for."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.asked = pathlib.Path(folder.name, "asked")
        self.ssh = pathlib.Path(folder.name, "ssh")
        self.ssh.write_text(f'#!/bin/sh\necho "$*" >>{self.asked}\nshift\nshift\nexec env -i PATH="$PATH" sh -c "$*"\n')
        self.ssh.chmod(0o700)

    def launch(self, *arguments, **more):
        return launch("--ssh", str(self.ssh), *arguments, **more)

    def test_ranks_are_dealt_in_blocks_and_get_the_key_by_standard_input(self):
        told = self.launch("--hosts", "a,user@b", "-n", "3", *python(
            "import os, sys; print(*(os.environ['RILL_' + name] for name in ('RANK', 'RANKS', 'MEETING', 'KEY')), sys.stdin.read())"))
        self.assertEqual(told.returncode, 0, told.stderr)
        lines = sorted(line.split() for line in told.stdout.splitlines())
        self.assertEqual([line[:4] for line in lines], [[f"[{rank}]", str(rank), "3", "a:29400"] for rank in range(3)])
        key, = {line[4] for line in lines}
        self.assertGreaterEqual(len(key), 22)
        asked = self.asked.read_text()
        self.assertNotIn(key, asked)
        self.assertEqual(sorted(line.split()[1] for line in asked.splitlines() if line.startswith("-oBatch")), ["a", "a", "user@b"])

    def test_variables_of_the_job_reach_all_hosts(self):
        wanted = {"RILL_JOB": "job 7", "RILL_SEATS": "4", "RILL_INTERFACES": "eth0,eth1", "RILL_SECURITY": "encrypted"}
        told = self.launch("--hosts", "a,b", *python(f"import os; print([os.environ[name] for name in {list(wanted)}])"),
                           environment=wanted)
        self.assertEqual(sorted(told.stdout.splitlines()), [f"[{rank}] {list(wanted.values())}" for rank in range(2)], told.stderr)

    def test_a_failure_on_one_host_is_the_exit_status_and_ends_the_others(self):
        begun = time.monotonic()
        told = self.launch("--hosts", "a,b", *python("import os, sys, time\nif os.environ['RILL_RANK'] == '1': sys.exit(3)\ntime.sleep(50)"))
        self.assertEqual(told.returncode, 3, told.stderr)
        self.assertLess(time.monotonic() - begun, 40)

    def test_a_signal_reaches_the_ranks(self):
        text = "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(print('told')))\nprint('here', flush=True)\ntime.sleep(50)"
        ran = subprocess.Popen([LAUNCH, "--ssh", str(self.ssh), "--hosts", "a,b", *python(text)], stdout=subprocess.PIPE, text=True)
        self.assertEqual({ran.stdout.readline() for _ in range(2)}, {"[0] here\n", "[1] here\n"})
        ran.send_signal(signal.SIGINT)
        told, _ = ran.communicate(timeout=TIMEOUT)
        self.assertEqual(sorted(told.splitlines()), ["[0] told", "[1] told"])
        self.assertEqual(ran.returncode, 128 + signal.SIGINT)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
