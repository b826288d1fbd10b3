#!/usr/bin/env python3
"""usage: ends.py SECONDS PATTERN... -- COMMAND...

Runs a job that must end, with a failure, within the time, and say what matches each of the patterns. Processes of which
it says "process NUMBER stops" are killed when it has said all that (some launchers wait for them), and in any case.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

GRACE = 10  # seconds for a launcher that is told to end


def end_stopped(said):
    for number in re.findall(r"^process (\d+) stops", said, re.MULTILINE):
        try:
            os.kill(int(number), signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(command, timeout, patterns):
    """What the job says, and its status: None where it did not end."""
    end = time.monotonic() + timeout
    with tempfile.NamedTemporaryFile("w") as output:
        def said():
            with open(output.name, errors="replace") as so_far:
                return so_far.read()
        job = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while job.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
            if all(re.search(pattern, said()) for pattern in patterns):
                end_stopped(said())
        status = job.poll()
        if status is None:
            job.terminate()
        end_stopped(said())
        try:
            job.wait(GRACE)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        return said(), status


split = sys.argv.index("--")
timeout, patterns, command = float(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
said, status = run(command, timeout, patterns)
if status is None:
    sys.exit(f"the job hangs:\n{said}")
if status == 0:
    sys.exit(f"the job ends as if nothing had happened:\n{said}")
for pattern in patterns:
    if not re.search(pattern, said):
        sys.exit(f"the job does not say {pattern!r}, but ends with status {status}:\n{said}")
print(f"the job has ended with status {status}:\n{said}")
