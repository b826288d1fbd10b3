#!/usr/bin/env python3
"""usage: dies.py SECONDS COMMAND...

Runs a job of which one rank is killed. The launcher must end it, with a failure, within the time.
"""

import subprocess
import sys

patience, command = float(sys.argv[1]), sys.argv[2:]
job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    said, _ = job.communicate(timeout=patience)
except subprocess.TimeoutExpired:
    job.terminate()
    said, _ = job.communicate()
    sys.exit(f"the job hangs after the death of a rank:\n{said}")
if job.returncode == 0:
    sys.exit(f"the job ends as if nothing had happened:\n{said}")
print(f"the launcher has ended the job with status {job.returncode}")
