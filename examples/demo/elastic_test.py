"""The demo's processes go on when two are killed and one begins anew, and end with the same parameters.

usage: elastic_test.py RILL_DEMO
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import processes_test

TIMEOUT = 200


def main(demo):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rng = random.Random(1)
        processes_test.write_part(folder, "train", 64, rng)
        processes_test.write_part(folder, "t10k", 16, rng)
        command = [demo, "--elastic", "--ranks", "4", "--steps", "120", "--batch", "2", "--data", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    print(done.stdout + done.stderr)
    due = (r"epoch 1 has 3 members; rank 1 has gone", r"epoch 2 has 4 members; rank 1 has the state and is in",
           r"epoch 3 has 3 members; rank 0 has gone", r"3 members have ended, with the same parameters")
    missing = [what for what in due if not re.search(what, done.stdout)]
    print(f"missing: {missing}")
    return 0 if done.returncode == 0 and not missing else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
