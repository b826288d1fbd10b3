"""What the families of kernels share: one program in three builds, methods timed in turns, ratios of medians."""

import json
import pathlib
import statistics
import subprocess
import sys

# As they are built: -O3 for this machine, -O3 for x86-64-v3, -O2 for x86-64-v2.
BUILDS = {"native": "", "v3": "_v3", "v2": "_v2"}


def samples_of(command):
    """What a program prints: the seconds of each method, turn by turn."""
    command = list(map(str, command))
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return json.loads(ran.stdout.strip().splitlines()[-1])


def ratio(samples, method, baseline):
    """The seconds of one method for each second of another: the median over the turns."""
    return statistics.median(a / b for a, b in zip(samples[method], samples[baseline], strict=True))


def times_as_fast(samples, method, baseline):
    return 1 / ratio(samples, method, baseline)


def seconds(samples):
    return {f"{method}_seconds": statistics.median(each) for method, each in samples.items()}


def main(arguments, usage, name, measure):
    """Calls measure(program path, build) for each build and writes what it returns, by build."""
    if len(arguments) != 2:
        sys.exit(usage)
    figures = {}
    for build, suffix in BUILDS.items():
        program = pathlib.Path(arguments[0]) / "bench" / f"bench_{name}{suffix}"
        if not program.exists():
            sys.exit(f"{program} was not built: is Google Benchmark missing?")
        print(f"-- {build}")
        figures[build] = measure(program, build)
    pathlib.Path(arguments[1]).write_text(json.dumps(figures, indent=2) + "\n")
