#!/usr/bin/env python3
"""Runs the fuzz targets of a build, or makes their seeds anew.

usage: run.py [--seconds N] BUILD [TARGET...]     run all targets, or some, for N seconds in total
       run.py --seeds BUILD [TARGET...]           make the committed corpus anew

What a run finds is kept in BUILD/corpus, from which the next one starts; inputs that crash go to BUILD/crashes.
"""

import argparse
import concurrent.futures
import filecmp
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
# A finding that has become a regression test: no encoder makes it.
FOUND = "found-"
LONGEST = {"collective": 1200}
LIMITS = ["-rss_limit_mb=2048", "-malloc_limit_mb=64", "-timeout=30"]


def targets_of(build, chosen):
    all_of_them = sorted(path.name for path in CORPUS.iterdir() if (build / f"fuzz_{path.name}").exists())
    unknown = [name for name in chosen if name not in all_of_them]
    if unknown:
        sys.exit(f"run.py: no target {', '.join(unknown)}; there are {', '.join(all_of_them)}")
    return chosen or all_of_them


def files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def generated(build, folder):
    subprocess.run([build / "fuzz_seeds", folder], check=True)


def stale_seeds(build, targets):
    """Committed seeds that the generator does not make any more."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder)
        generated(build, fresh)
        return [seed for target in targets for seed in files(CORPUS / target)
                if not seed.name.startswith(FOUND)
                and not ((fresh / target / seed.name).exists()
                         and filecmp.cmp(seed, fresh / target / seed.name, shallow=False))]


def remake_seeds(build, targets):
    """Keeps of the generated seeds those that cover something that the findings do not cover."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder)
        generated(build, fresh)
        for target in targets:
            kept = fresh / "kept" / target
            kept.mkdir(parents=True)
            subprocess.run([build / f"fuzz_{target}", "-merge=1", kept, fresh / target], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            digests = {path.name for path in kept.iterdir()}
            for seed in files(CORPUS / target):
                if not seed.name.startswith(FOUND):
                    seed.unlink()
            for seed in files(fresh / target):
                digest = hashlib.sha1(seed.read_bytes()).hexdigest()
                if digest in digests:
                    digests.discard(digest)
                    shutil.copy(seed, CORPUS / target / seed.name)
            print(f"{target:12} {len(files(CORPUS / target)):4} of {len(files(fresh / target))} seeds")


def run(build, target, seconds):
    """Runs one target; returns its line of the report and whether it held."""
    corpus, crashes = build / "corpus" / target, build / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    program = build / f"fuzz_{target}"
    # Weighing inputs by their rarity takes longer than these targets do.
    command = [program, f"-max_total_time={seconds}", f"-max_len={LONGEST.get(target, 400)}", "-entropic=0", *LIMITS,
               f"-artifact_prefix={crashes}/{target}-", corpus, CORPUS / target]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        reproducer = re.search(r"Test unit written to (\S+)", done.stderr)
        text = "\n".join(line for line in done.stderr.splitlines() if not re.match(r"#\d+\s+(NEW|REDUCE|pulse)", line))
        print(f"{text}\n\n{target}: FAILED; reproduce it with\n    {program} {reproducer[1] if reproducer else ''}\n")
        return f"{target:12} FAILED", False
    runs = re.search(r"Done (\d+) runs in (\d+) second", done.stderr)
    edges = re.findall(r"cov: (\d+)", done.stderr)
    return f"{target:12} {int(runs[1]):10} runs  {runs[2]:>4} s  {edges[-1]:>6} edges", True


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    build = options.build.resolve()
    targets = targets_of(build, options.targets)
    if options.seeds:
        remake_seeds(build, targets)
        return 0

    stale = stale_seeds(build, targets)
    for seed in stale:
        print(f"{seed}: not what fuzz_seeds makes; run ./dev fuzz --seeds", file=sys.stderr)
    at_once = min(len(targets), int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", os.cpu_count() or 1)))
    share = max(1, options.seconds * at_once // len(targets))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda target: run(build, target, share), targets))
    for line, _ in results:
        print(line)
    return 0 if not stale and all(held for _, held in results) else 1


if __name__ == "__main__":
    sys.exit(main())
