"""An emulated cluster of two hosts: names, rates, cuts, and that nothing is left of it. Needs root and namespaces."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

NETLAB = pathlib.Path(__file__).parents[2] / "tools" / "netlab"
NAME = f"test{os.getpid()}"
SKIPPED = 77  # as tests/CMakeLists.txt says
TIMEOUT = 60

RECEIVE_STREAM = """
import socket
server = socket.create_server(("h1", 7000))
print("ready", flush=True)
connection, _ = server.accept()
total = 0
while (part := connection.recv(1 << 16)):
    total += len(part)
print(total)
"""

SEND_STREAM = """
import socket, sys
connection = socket.create_connection(("h1", 7000))
connection.sendall(bytes(int(sys.argv[1])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""

RECEIVE_DATAGRAMS = """
import socket
inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inbox.bind(("h1", 7001))
print("ready", flush=True)
while (word := inbox.recv(64).decode()) != "end":
    print(word, flush=True)
"""

SEND_DATAGRAM = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), ("h1", 7001))
"""


def netlab(*arguments, check=True):
    return subprocess.run([NETLAB, *map(str, arguments)], env=os.environ | {"NETLAB_NAME": NAME}, check=check,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)


def start(host, program):
    """A program in a host, once it has said that it is ready."""
    started = subprocess.Popen([NETLAB, "exec", str(host), "python3", "-c", program], text=True,
                               env=os.environ | {"NETLAB_NAME": NAME}, stdout=subprocess.PIPE)
    assert started.stdout.readline() == "ready\n"
    return started


def run_python(host, program, *arguments):
    return netlab("exec", host, "python3", "-c", program, *arguments)


def traces():
    """Whatever of this lab the machine knows."""
    namespaces = subprocess.run(["ip", "netns", "list"], text=True, stdout=subprocess.PIPE).stdout
    return [line for line in namespaces.splitlines() if NAME in line] + [
        str(path) for folder in ("/etc/netns", "/run/rill-netlab") for path in pathlib.Path(folder).glob(f"*{NAME}*")]


class Netlab(unittest.TestCase):
    def setUp(self):
        self.addCleanup(netlab, "down")

    def test_names_and_ranks(self):
        netlab("up", 2, "none")
        self.assertEqual([netlab("exec", host, "hostname").stdout for host in (0, 1)], ["h0\n", "h1\n"])
        self.assertRegex(netlab("status").stdout, r"h0 10\.77\.0\.1 none 0\nh1 10\.77\.0\.2 none 0\n")

    def test_ranks_of_tcp_are_dealt_in_blocks(self):
        netlab("up", 2, "none")
        told = netlab("run", 4, "--", "sh", "-c", "echo $RILL_RANK of $RILL_RANKS on $(hostname) meet at $RILL_MEETING").stdout
        self.assertEqual(sorted(told.splitlines()),
                         [f"[{rank}] {rank} of 4 on h{rank // 2} meet at h0:29400" for rank in range(4)])

    def test_rate_and_bytes(self):
        netlab("up", 2, "none")
        netlab("rate", 0, "20mbit")
        receiver = start(1, RECEIVE_STREAM)
        size, may_pass_at_once = 2_000_000, 2 * 32_768
        begin = time.monotonic()
        run_python(0, SEND_STREAM, size)
        seconds = time.monotonic() - begin
        self.assertEqual(receiver.communicate(timeout=TIMEOUT)[0], f"{size}\n")
        self.assertGreaterEqual(seconds, (size - may_pass_at_once) / 2.5e6)
        rows = [line.split() for line in netlab("bytes").stdout.splitlines()]
        self.assertGreaterEqual(int(rows[1][1]), size)  # h0, bytes_sent
        self.assertGreaterEqual(int(rows[2][2]), size)  # h1, bytes_received
        self.assertLess(int(rows[2][1]), size)

    def test_cut_and_unplugged(self):
        netlab("up", 2, "none")
        receiver = start(1, RECEIVE_DATAGRAMS)
        run_python(0, SEND_DATAGRAM, "before")
        netlab("cut", 0, 1)
        run_python(0, SEND_DATAGRAM, "cut")
        netlab("heal", 0, 1)
        netlab("cut", 1, 0)
        run_python(0, SEND_DATAGRAM, "one way")
        netlab("unplug", 1)
        run_python(0, SEND_DATAGRAM, "unplugged")
        netlab("plug", 1)
        run_python(0, SEND_DATAGRAM, "end")
        self.assertEqual(receiver.communicate(timeout=TIMEOUT)[0], "before\none way\n")

    def test_two_cards_of_which_one_is_unplugged(self):
        netlab("up", 2, "none", 2)
        reach = """
import socket
def reaches(*to):
    with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET) as tried:
        tried.settimeout(0.5)
        try:
            return tried.connect(to) is None
        except ConnectionRefusedError:  # the host answers that nobody listens
            return True
        except TimeoutError:
            return False
print(*[int(reaches(name, 7002)) for name in ("10.77.0.2", "fd77:0:0:0::2", "10.78.0.2", "fd77:0:0:1::2")])
"""
        self.assertEqual(run_python(0, reach).stdout, "1 1 1 1\n")
        netlab("unplug", 1, 1)
        self.assertEqual(run_python(0, reach).stdout, "1 1 0 0\n")
        netlab("plug", 1, 1)
        netlab("unplug", 0, 0)
        self.assertEqual(run_python(0, reach).stdout, "0 0 1 1\n")
        netlab("plug", 0)
        netlab("cut", 1, 0)
        self.assertEqual(run_python(0, reach).stdout, "0 0 0 0\n")
        netlab("heal", 1, 0)
        self.assertEqual(run_python(0, reach).stdout, "1 1 1 1\n")
        names = netlab("exec", 0, "python3", "-c",
                       "import socket; print({a[4][0] for a in socket.getaddrinfo('h1-1', 80)})").stdout
        self.assertIn("10.78.0.2", names)
        self.assertIn("fd77:0:0:1::2", names)

    def test_killed(self):
        netlab("up", 2, "none")
        receiver = start(1, RECEIVE_DATAGRAMS)
        netlab("kill", 1)
        receiver.communicate(timeout=TIMEOUT)
        self.assertEqual(receiver.returncode, -9)

    def test_down_leaves_nothing(self):
        netlab("up", 2, "1gbit")
        receiver = start(1, RECEIVE_DATAGRAMS)
        self.assertNotEqual(traces(), [])
        netlab("down")
        receiver.communicate(timeout=TIMEOUT)
        self.assertEqual(traces(), [])
        netlab("down")

    def test_refusals(self):
        self.refused("no lab .* is up", "bytes")
        self.refused("no rate 'fast'", "up", 2, "fast")
        self.refused("CARDS must be 1 to 8, not '9'", "up", 2, "none", 9)
        self.refused("HOSTS must be 2 to 200, not '1'", "up", 1, "none")
        self.assertEqual(traces(), [])
        netlab("up", 2, "none")
        self.refused("is up already", "up", 2, "none")
        self.refused("no host '2': there are 0 to 1", "cut", 0, 2)
        self.refused("no card '1': there are 0 to 0", "unplug", 0, 1)
        self.refused("nothing is cut from 0 to 1", "heal", 0, 1)
        self.refused("RANKS must be 1 to 4096, not 'x'", "run", "x", "--", "true")
        self.refused("usage: netlab run RANKS", "run", 2, "true", "false")
        self.refused("openmpi or mpich, not 'lam'", "mpirun", "lam", 2, "--", "true")

    def refused(self, message, *arguments):
        ran = netlab(*arguments, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, message)


if __name__ == "__main__":
    permitted = netlab("check", check=False)
    if permitted.returncode != 0:
        print(f"skipped: {permitted.stderr.strip()}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
