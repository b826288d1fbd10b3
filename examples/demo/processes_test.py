"""The demo as four processes ends with the bits that it gives as four threads. Where it chooses the topology itself, it
ends with the bits of the topology that it says it has chosen.

usage: processes_test.py RILL_DEMO TRANSPORT LAUNCHER... (a launcher that starts four processes)
"""

import gzip
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

TIMEOUT = 100


def write_part(folder, part, images, rng):
    pixels = rng.randbytes(images * 28 * 28)
    labels = bytes(rng.randrange(10) for _ in range(images))
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4I", 0x803, images, 28, 28) + pixels)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2I", 0x801, images) + labels)


def run(folder, command):
    done = subprocess.run(
        [*command, "--steps", "3", "--batch", "2", "--data", folder, "--json", folder / "demo.json"]
        + ["--picture", folder / "demo.svg"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    found = re.search(r"checksums of the final parameters: dense (\w{16}), sparse (\w{16})", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit(f"{command} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return found.groups(), done.stdout + done.stderr


def chooses_alike(folder, demo):
    """In simulated time, in which the same is chosen in every run."""
    command = [demo, "--ranks", "4", "--transport", "simulated"]
    chosen, text = run(folder, [*command, "--topology", "auto"])
    names = re.findall(r"auto: (?:Do not compress: )?(\w+) with (dense vectors|streams)", text)
    if [form for _, form in names] != ["dense vectors", "streams"]:
        sys.exit(f"a dense and a sparse choice were due:\n{text}")
    by_name = [run(folder, [*command, "--topology", name])[0][i] for i, (name, _) in enumerate(names)]
    print(f"chosen {names}: {chosen}, by name: {by_name}")
    return list(chosen) == by_name


def main(demo, transport, *launcher):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rng = random.Random(1)
        write_part(folder, "train", 64, rng)
        write_part(folder, "t10k", 16, rng)
        threads, _ = run(folder, [demo, "--ranks", "4"])
        processes, _ = run(folder, [*launcher, demo, "--transport", transport])
        print(f"four threads: {threads}, four processes: {processes}")
        return 0 if threads == processes and threads[0] != threads[1] and chooses_alike(folder, demo) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
