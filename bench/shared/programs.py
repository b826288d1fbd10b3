"""What the scripts share: programs that print JSON, started alike, and figures that are written as JSON.

A script takes the arguments BUILD_DIR and JSON. With --smoke behind them all is as small as can be: the figures mean
nothing, but every program runs and checks its results.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

NETLAB = pathlib.Path(__file__).resolve().parents[2] / "tools" / "netlab"
SMOKE = sys.argv[3:] == ["--smoke"]
CORES = len(os.sched_getaffinity(0))
# Open MPI as root, with more processes than cores; and the name of the emulated cluster.
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "NETLAB_NAME": "bench",
}


def sized(full, smoke):
    """A size, or what is to be measured: what it is, and what it is where all is small."""
    return smoke if SMOKE else full


def output(*command):
    """The JSON that a program prints. The script ends where the program fails."""
    command = list(map(str, command))
    ran = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, timeout=600)
    if ran.returncode != 0:
        sys.exit(f"{sys.argv[0]}: failed: {' '.join(command)}")
    return json.loads(ran.stdout)


def mpirun(ranks):
    """What `output` takes before a program that is to run in so many processes. They give their cores away while they
    wait only where there are more of them than cores, as Open MPI has it by default."""
    return "mpirun", "--mca", "mpi_yield_when_idle", int(ranks > CORES), "-np", ranks


@contextlib.contextmanager
def emulated_cluster(hosts, rate, cards=1):
    """A cluster of so many hosts with so many network cards each, as long as the context lasts: what `output` takes before a
    program that is to run on each of them, or None where a cluster is not permitted."""
    def netlab(*command, check=True):
        return subprocess.run([NETLAB, *command], env=ENVIRONMENT, check=check).returncode == 0

    if SMOKE:
        yield mpirun(2)
        return
    if not netlab("check", check=False):
        yield None
        return
    netlab("up", str(hosts), rate, str(cards))
    try:
        yield NETLAB, "mpirun", "openmpi", hosts, "--"
    finally:
        netlab("down")


def main(usage, libraries, names, measure):
    """Calls `measure` with the path of each program bench_<name> and writes what it returns; `libraries` are what the
    programs are not built without."""
    if len(sys.argv) != 3 and not SMOKE:
        sys.exit(usage)
    paths = [pathlib.Path(sys.argv[1]) / "bench" / f"bench_{name}" for name in names]
    for path in paths:
        if not path.exists():
            sys.exit(f"{sys.argv[0]}: {path} was not built: is {libraries} missing?")
    figures = measure(*paths)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(figures, indent=2) + "\n")
