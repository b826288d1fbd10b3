"""What the families of kernels share: one program in three builds, methods timed in turns, ratios of medians."""

import statistics

import programs

# As they are built: -O3 for this machine, -O3 for x86-64-v3, -O2 for x86-64-v2.
BUILDS = {"native": "", "v3": "_v3", "v2": "_v2"}


def ratio(samples, method, baseline):
    """The seconds of one method for each second of another: the median over the turns."""
    return statistics.median(a / b for a, b in zip(samples[method], samples[baseline], strict=True))


def times_as_fast(samples, method, baseline):
    return 1 / ratio(samples, method, baseline)


def seconds(samples):
    return {f"{method}_seconds": statistics.median(each) for method, each in samples.items()}


def main(usage, name, measure):
    """Calls `measure` with the path of each build of a program and writes what it returns, by build. Where all is small,
    there is one build, which stands for the others."""
    if programs.SMOKE:
        return programs.main(usage, "rill's components", [name], lambda path: dict.fromkeys(BUILDS, measure(path)))

    def measure_builds(*paths):
        figures = {}
        for build, path in zip(BUILDS, paths, strict=True):
            print(f"-- {build}", flush=True)
            figures[build] = measure(path)
        return figures

    programs.main(usage, "rill's components", [f"{name}{suffix}" for suffix in BUILDS.values()], measure_builds)
