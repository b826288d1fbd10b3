"""usage: netlab_elastic_test.py TEST_TCP [SECONDS [SEED]]

An elastic team on an emulated cluster of eight hosts, on which for some time (20 s) processes are killed and begin anew, links
are cut in one direction or in both, and hosts are unplugged. All who are in the same step of the same view have the same
checksum, the steps go on, and in the end all eight are members. Needs root and namespaces.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

NETLAB = pathlib.Path(__file__).parents[2] / "tools" / "netlab"
SKIPPED = 77  # as tests/CMakeLists.txt says
HOSTS = 8
MOST_AWAY = 3  # of eight members: the others are always a quorum
LONGEST_PAUSE = 60  # s
PORT = 29400
SAYS = re.compile(r"(?:epoch (\d+), (\d+) members|end): step (\d+), (\w+)$")
CASE = "members of an elastic team say in each step what they hold*"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RILL_")}
ENVIRONMENT |= {"NETLAB_NAME": f"elastic{os.getpid()}", "RILL_SECURITY": "open", "RILL_RANKS": str(HOSTS), "RILL_SEATS": str(HOSTS),
                "RILL_MEETING": ",".join(f"10.77.0.{host + 1}:{PORT}" for host in range(HOSTS))}


def netlab(*arguments, check=True):
    return subprocess.run([NETLAB, *map(str, arguments)], env=ENVIRONMENT, check=check, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


class Host:
    """The process of a rank, and what it and those before it have said."""

    def __init__(self, rank, folder):
        self.rank = rank
        self.end_file = folder / "end"
        self.log = (folder / f"rank{rank}").open("w+")
        self.read_to = 0
        self.is_away = True  # is not known to be a member
        self.was_killed = False
        self.last = None
        self.begin(joins=False)

    def begin(self, joins):
        variables = {"RILL_RANK": str(self.rank), "END_FILE": str(self.end_file)} | ({"RILL_JOINS": "1"} if joins else {})
        self.is_away, self.was_killed, self.begins_at = True, False, None
        self.process = subprocess.Popen([NETLAB, "exec", str(self.rank), PROGRAM, "--no-skip", f"-tc={CASE}"],
                                        env=ENVIRONMENT | variables, stdout=self.log, stderr=subprocess.STDOUT)

    def kill(self):
        self.is_away = self.was_killed = True
        self.process.kill()

    def heard(self):
        """What it has said since the last call."""
        with open(self.log.name, encoding="utf-8") as log:
            log.seek(self.read_to)
            text = log.read()
        text = text[: text.rfind("\n") + 1]
        self.read_to += len(text.encode())
        return text.splitlines()

    def said(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")


class Campaign:
    def __init__(self, seconds, seed, folder):
        self.draw = random.Random(seed)
        self.until = time.monotonic() + seconds
        self.folder = folder
        self.hosts = [Host(rank, folder) for rank in range(HOSTS)]
        self.sums = {}  # of (epoch, step)
        self.undo = []  # (when, what)
        self.counts = dict.fromkeys(("kill", "begun anew", "cut", "unplug"), 0)
        self.moved_at, self.longest, self.step = time.monotonic(), 0.0, 0

    def fail(self, what):
        for host in self.hosts:
            print(f"--- rank {host.rank}\n" + "\n".join(host.said().splitlines()[-30:]))
        sys.exit(f"after {self.counts}: {what}")

    def listen(self):
        now = time.monotonic()
        for host in self.hosts:
            for line in host.heard():
                found = SAYS.match(line)
                if found is None:
                    if "differs" in line or "SIGSEGV" in line or "SIGABRT" in line:
                        self.fail(f"rank {host.rank}: {line}")
                    continue
                epoch, members, step, checksum = found.groups()
                host.last = (epoch, members, step, checksum)
                if self.sums.setdefault((epoch, step), checksum) != checksum:
                    self.fail(f"two checksums in epoch {epoch}, step {step}")
                if int(step) > self.step:
                    self.longest = max(self.longest, now - self.moved_at)
                    self.step, self.moved_at = int(step), now
                if not any(what[0] == "plug" and what[1] == host.rank for _, what in self.undo):
                    host.is_away = False
        if now - self.moved_at > LONGEST_PAUSE:
            self.fail(f"no step for {LONGEST_PAUSE} s")

    def tend(self):
        """Undoes what is due, and begins anew who has ended."""
        now = time.monotonic()
        for each in [each for each in self.undo if each[0] <= now]:
            self.undo.remove(each)
            netlab(*each[1])
        for host in self.hosts:
            status = host.process.poll()
            if status is None:
                continue
            if host.begins_at is None:
                host.is_away = True
                host.begins_at = now + self.draw.uniform(0, 3)
                if status < 0 and not host.was_killed:
                    self.fail(f"rank {host.rank} ends by signal {-status}")
            elif now >= host.begins_at:
                self.counts["begun anew"] += 1
                host.begin(joins=True)

    def disturb(self):
        kind = self.draw.choice(("kill", "cut", "cut", "unplug"))
        host = self.draw.choice(self.hosts)
        until = time.monotonic() + self.draw.uniform(0.3, 6)
        if kind == "cut":
            one, other = self.draw.sample(range(HOSTS), 2)
            links = [(one, other), (other, one)][: self.draw.choice((1, 2))]
            busy = {what[1:] for _, what in self.undo if what[0] == "heal"}
            if len(busy) > 3 or busy & set(links):
                return
            for link in links:
                netlab("cut", *link)
                self.undo.append((until, ("heal", *link)))
        elif host.is_away or sum(each.is_away for each in self.hosts) >= MOST_AWAY:
            return
        elif kind == "kill":
            host.kill()
        else:
            host.is_away = True
            netlab("unplug", host.rank)
            self.undo.append((until, ("plug", host.rank)))
        self.counts[kind] += 1

    def run(self):
        self.await_all()
        while time.monotonic() < self.until:
            self.disturb()
            pause = time.monotonic() + self.draw.uniform(0.1, 2)
            while time.monotonic() < pause:
                self.listen()
                self.tend()
                time.sleep(0.05)
        self.undo = [(0, what) for _, what in self.undo]
        self.await_all()
        steps = self.step
        self.hosts[0].end_file.touch()
        end = time.monotonic() + LONGEST_PAUSE
        for host in self.hosts:
            try:
                host.process.wait(max(end - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {host.rank} does not end")
        self.listen()
        lasts = {host.last for host in self.hosts}
        if len(lasts) != 1 or next(iter(lasts))[0] is not None:
            self.fail(f"not all have ended with the same state: {lasts}")
        print(f"{self.counts}; {steps} steps in {len({epoch for epoch, _ in self.sums})} views, one checksum in each; no step "
              f"for {self.longest:.1f} s at most")

    def await_all(self):
        """Until all hosts have been members of one view that has them all."""
        end = time.monotonic() + 2 * LONGEST_PAUSE
        while True:
            self.listen()
            self.tend()
            views = {host.last[:2] if host.last and not host.is_away else None for host in self.hosts}
            if len(views) == 1 and (view := views.pop()) is not None and view[1] == str(HOSTS):
                return
            if time.monotonic() > end:
                self.fail("not all come back")
            time.sleep(0.05)

    def close(self):
        for host in self.hosts:
            host.process.kill()
            host.process.wait()
            host.log.close()


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    netlab("up", HOSTS, "200mbit")
    try:
        with tempfile.TemporaryDirectory(prefix="rill-elastic") as folder:
            campaign = Campaign(seconds, seed, pathlib.Path(folder))
            try:
                campaign.run()
            finally:
                campaign.close()
    finally:
        netlab("down")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    permitted = netlab("check", check=False)
    if permitted.returncode != 0:
        print(f"skipped: {permitted.stderr.strip()}")
        sys.exit(SKIPPED)
    main()
