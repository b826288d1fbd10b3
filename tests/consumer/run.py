#!/usr/bin/env python3
"""Uses rill as other people's projects do, and says of each way whether it works.

usage: run.py [--junit FILE] [--conan CONAN] [CASE...]      (default: every case)

Works in a temporary folder, on what `git archive` gives out, on an installed tree that has been moved since, and on copies
of the projects next to this script, so that nothing is found by way of the working copy. Prints one line per case and
`N passed, N failed`; exits 1 when one failed. CONAN is Conan's command; CMAKE_BUILD_PARALLEL_LEVEL says how many cases
run at a time, as many as there are cores by default.
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
import time
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
CONFIGURE = ["cmake", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
# Each component has a program of its name. ./dev installs what the programs link.
COMPONENTS = sorted(path.stem for path in (ROOT / "tests/consumer/program").glob("*.cpp")
                    if path.stem not in ("eigen", "xtensor") or (ROOT / f"include/rill/adapt/{path.stem}.hpp").exists())
PACKAGES = ["Threads", "Boost", "Eigen3", "ZLIB", "MPI", "xtensor", "TBB"]
# Variables by which a project could find the working copy, or what a developer has built.
LEAKS = ["CMAKE_PREFIX_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "CXXFLAGS", "PKG_CONFIG_PATH", "CMAKE_CXX_COMPILER_LAUNCHER"]
# MPI on a machine of few cores and by root, as in a container.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_mpi_yield_when_idle": "1"}
CASES = {}
# The cases that take longest; they start first, and the short ones then share what is left of the time.
LONGEST = ["conan", "pkg_config", "find_package_components", "subdirectory", "single_header"]


class Failed(Exception):
    """A case does not work; the text says what it printed."""


def case(function):
    CASES[function.__name__] = function
    return function


def expect(condition, what):
    if not condition:
        raise Failed(what)


def run(*command, expected=0, **more):
    """The output of a command that must end with the status `expected` (None: with any other than 0)."""
    command = [str(word) for word in command]
    environment = {name: value for name, value in os.environ.items() if name not in LEAKS}
    environment.update({"CMAKE_BUILD_PARALLEL_LEVEL": "1", "CTEST_PARALLEL_LEVEL": "1", **MPI, **more.pop("env", {})})
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=900, env=environment, **more)
    if done.returncode == 0 if expected is None else done.returncode != expected:
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


class Ground:
    """The temporary folder: rill's source, its installed tree and the projects, made once for all cases."""

    def __init__(self, folder, conan):
        self.folder, self.conan = folder, conan
        self.archive = folder / "rill.tar.gz"
        self.source, self.prefix, self.projects = folder / "source", folder / "moved", folder / "projects"
        config = (ROOT / "include/rill/core/config.hpp").read_text()
        self.version = [int(number) for number in re.findall(r"^#define RILL_VERSION_\w+ (\d+)$", config, re.MULTILINE)]
        self.pack()
        self.source.mkdir()
        run("tar", "-xf", self.archive, "-C", self.source, "--strip-components=1")
        shutil.copytree(self.source / "tests/consumer", self.projects)
        self.install(folder / "first")
        (folder / "first").rename(self.prefix)

    def pack(self):
        """Packs what git tracks, with uncommitted changes. Where there is no git repository: everything but build/."""
        if not (ROOT / ".git").exists():
            run("tar", "-czf", self.archive, "--exclude=./build", "--transform=s,^[.],rill,", "-C", ROOT, ".")
            return
        git = ["git", "-C", ROOT, "-c", f"safe.directory={ROOT}", "-c", "user.name=rill", "-c", "user.email=rill@localhost"]
        run(*git, "archive", "--prefix=rill/", "-o", self.archive, run(*git, "stash", "create").strip() or "HEAD")

    def install(self, prefix, *options):
        build = self.work("build of " + prefix.name)
        run(*CONFIGURE, "-S", self.source, "-B", build, "-DRILL_BUILD_TESTS=OFF", "-DRILL_BUILD_BENCH=OFF",
            "-DRILL_BUILD_EXAMPLES=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}", *options)
        run("cmake", "--install", build)

    def work(self, name):
        return self.folder / name.replace(" ", "_")

    def configure(self, project, name, *options, **more):
        return run(*CONFIGURE, "-S", self.projects / project, "-B", self.work(name),
                   f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS[1:])}", *options, **more)

    def try_project(self, project, name, *options):
        """Configures, builds and runs a project: the list of programs that ran."""
        self.configure(project, name, *options)
        run("cmake", "--build", self.work(name))
        report = run("ctest", "--test-dir", self.work(name), "--no-tests=error", "--output-on-failure", "--timeout", "60")
        return [line.split()[2] for line in report.splitlines() if "Start" in line.split()[:1]]

    def installed(self):
        return f"-DCMAKE_PREFIX_PATH={self.prefix}"


def no_package(names):
    return [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in names]


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@case
def installed_tree(ground):
    """The installed tree does not depend on which libraries the machine has, and names no path of the machine."""
    bare = ground.folder / "bare"
    ground.install(bare, *no_package(PACKAGES))
    names = files_of(ground.prefix)
    expect(names == files_of(bare), f"installed files depend on the machine: {set(names) ^ set(files_of(bare))}")
    _, other, unread = filecmp.cmpfiles(ground.prefix, bare, names, shallow=False)
    expect(not other + unread, f"installed files depend on the machine: {other + unread}")
    for name in names:
        expect(str(ground.folder) not in (ground.prefix / name).read_text(), f"{name} names a path of this machine")
    headers = [name.removeprefix("include/") for name in names if name.startswith("include/")]
    expect(headers == files_of(ground.source / "include"), "not every header is installed")
    shutil.rmtree(bare)


@case
def headers_apart(ground):
    """Where headers are installed by an absolute path, rill::compiled has its source there."""
    prefix, headers = ground.folder / "apart", ground.folder / "headers"
    ground.install(prefix, f"-DCMAKE_INSTALL_INCLUDEDIR={headers}")
    targets = (prefix / "share/cmake/rill/rill-compiled-targets.cmake").read_text()
    named = re.findall(r'INTERFACE_SOURCES "(.*)"', targets)
    expect(named == [str(headers / "rill/compiled.cpp")], f"rill::compiled has the sources {named}")
    expect(pathlib.Path(named[0]).exists(), f"there is no {named[0]}")


@case
def find_package(ground):
    expect(ground.try_project("find_package", "found", ground.installed()) == ["threads"], "the wrong program ran")


@case
def find_package_components(ground):
    wanted = [name for name in COMPONENTS if name != "threads"]
    ran = ground.try_project("components", "components", ground.installed(), f"-DWANTED={';'.join(wanted)}")
    expect(ran == wanted, f"only {ran} ran")


@case
def find_package_refusals(ground):
    """Each bad request must be refused for its own reason."""
    major, minor, _ = ground.version
    this = f"{major}.{minor}"
    others = [f"{major}.{minor + 1}", f"{major + 1}"]
    if major == 0 and minor > 0:
        others.append(f"{major}.{minor - 1}")
    has = f"rill {'.'.join(map(str, ground.version))} has only threads, simulated,"
    for number, (version, components, expected, *without) in enumerate([
            *((other, "threads", f'compatible with requested version "{other}"') for other in others),
            (this, "tree", f"no component tree: {has}"),
            (this, "simulated", "no component simulated: Boost::context was not found by find_package(Boost COMPONENTS "
             "context), on Debian it is in libboost-context-dev", "Boost"),
            (this, "testing;train", "no component train: Eigen3::Eigen was not found by find_package(Eigen3 NO_MODULE), on "
             "Debian it is in libeigen3-dev, ZLIB::ZLIB was not found by", "Eigen3", "ZLIB")]):
        said = ground.configure("refused", f"refused {number}", ground.installed(), f"-DVERSION={version}",
                                f"-DCOMPONENTS={components}", *no_package(without), expected=None)
        expect(expected in " ".join(said.split()), f"not refused by '{expected}':\n{said}")


@case
def find_package_without(ground):
    """Where the library of an optional component is missing, find_package leaves the component out without a message."""
    said = ground.configure("components", "without", ground.installed(), "-DWANTED=simulated", *no_package(["ZLIB"]))
    expect("zlib" not in said.lower().replace("cmake_disable_find_package_zlib", ""), said)


@case
def subdirectory(ground):
    ran = ground.try_project("subdirectory", "subdirectory", f"-DRILL_SOURCE={ground.source}")
    expect(ran == ["threads", "simulated"], f"only {ran} ran")
    for number, (components, expected, *without) in enumerate([
            ("tree", "rill: RILL_COMPONENTS asks for tree, which is none of rill's components: threads, simulated,"),
            ("simulated", "rill: no component simulated, which RILL_COMPONENTS asks for: Boost::context was not found by",
             "Boost")]):
        said = ground.configure("subdirectory", f"bad subdirectory {number}", f"-DRILL_SOURCE={ground.source}",
                                f"-DRILL_COMPONENTS={components}", *no_package(without), expected=None)
        expect(expected in " ".join(said.split()), f"not refused by '{expected}':\n{said}")


@case
def fetch_content(ground):
    checksum = hashlib.sha256(ground.archive.read_bytes()).hexdigest()
    ran = ground.try_project("fetch_content", "fetched", f"-DRILL_URL=file://{ground.archive}", f"-DRILL_SHA256={checksum}")
    expect(ran == ["threads"], f"only {ran} ran")


def compile_and_run(ground, compiler, sources, name, *flags):
    program = ground.work(name)
    run(compiler, *WARNINGS, "-O0", *sources, "-o", program, *flags)
    run(program, cwd=ground.folder)  # where a program may leave files


@case
def single_header(ground):
    """Plain compilers and single_include/: alone, twice, in two translation units, all together; refused together with
    the header tree."""
    only = ground.work("single include")
    shutil.copytree(ground.source / "single_include", only)
    programs, units = ground.projects / "program", ground.projects / "single_header"
    # With one header a program leaves out what rill.hpp holds.
    trainer = ground.work("trainer.cpp")
    trainer.write_text((programs / "threads.cpp").read_text().replace("#include <rill/transport/in_process.hpp>\n", ""))
    compile_and_run(ground, "g++", [trainer], "single", f"-I{only}", f"-I{programs}", "-pthread")
    compile_and_run(ground, "clang++-16", [units / "one.cpp", units / "two.cpp"], "two_units", f"-I{only}", "-pthread",
                    "-lboost_context")
    all_of_it = ground.work("all.cpp")
    all_of_it.write_text("".join(f"#include <{name}>\n" for name in files_of(only)) + "int main() {}\n")
    brought = run("pkg-config", "--cflags", "eigen3").split()
    run("mpicxx", "-std=c++20", "-fsyntax-only", all_of_it, f"-I{only}", *brought)
    said = run("g++", *WARNINGS, "-fsyntax-only", units / "mixed.cpp", f"-I{only}", f"-I{ground.source}/include", expected=1)
    expect("single_include/ stands before a header of include/" in said, said)


@case
def pkg_config(ground):
    """Plain compilers and the installed tree; MPI's own for MPI."""
    def ask(*words):
        return run("pkg-config", *words, env={"PKG_CONFIG_PATH": str(ground.prefix / "share/pkgconfig")}).split()

    expect(ask("--modversion", "rill") == [".".join(map(str, ground.version))], "rill.pc is of another version")
    for name in COMPONENTS:
        modules, compiler = ([], "mpicxx") if name == "mpi" else ([f"rill-{name}"], "g++")
        own = [ground.prefix / "include/rill/compiled.cpp"] if name == "compiled" else []
        compile_and_run(ground, compiler, [ground.projects / f"program/{name}.cpp", *own], f"pkg_config_{name}",
                        *ask("--cflags", "--libs", "rill-threads", *modules))


@case
def vcpkg_dry_run(ground):
    run("cmake", f"-DWORK={ground.work('vcpkg')}", "-P", ground.source / "packaging/vcpkg/dry_run.cmake")
    ran = ground.try_project("find_package", "found by vcpkg", f"-DCMAKE_PREFIX_PATH={ground.work('vcpkg')}/installed")
    expect(ran == ["threads"], f"only {ran} ran")


@case
def conan(ground):
    """`conan create`, with the system's libraries by the recipes of packaging/conan-index and no network."""
    expect(ground.conan, "no --conan")
    home = {"CONAN_HOME": str(ground.work("conan home"))}
    run(ground.conan, "profile", "detect", env=home)
    run(ground.conan, "remote", "disable", "*", env=home)
    run(ground.conan, "remote", "add", "system", ground.source / "packaging/conan-index", env=home)
    options = [word for name in COMPONENTS if name != "threads" for word in ("-o", f"&:{name}=True")]
    for setting in ("tools.system.package_manager:mode=check", "tools.cmake.cmaketoolchain:generator=Ninja",
                    "tools.build:jobs=1"):
        options += ["-c", setting]
    said = run(ground.conan, "create", ground.source, "--build=missing", "-s", "compiler.cppstd=20", "-s",
               "build_type=Debug", *options, env=home)
    for name in COMPONENTS:
        expect(f"RUN: ./with_{name}\n" in said, f"{name} did not run:\n{said}")


def attempt(name, ground):
    start = time.monotonic()
    try:
        CASES[name](ground)
        trouble = ""
    except Exception as failure:  # of any kind: the other cases go on
        trouble = f"{type(failure).__name__}: {failure}"
    seconds = time.monotonic() - start
    print(f"{'FAILED' if trouble else 'passed'}  {name:24} {seconds:6.1f} s", flush=True)
    if trouble:
        print("    " + trouble.replace("\n", "\n    "), flush=True)
    return name, seconds, trouble


def write_junit(path, results):
    failed = sum(bool(trouble) for _, _, trouble in results)
    suite = tree.Element("testsuite", name="packaging", tests=str(len(results)), failures=str(failed))
    for name, seconds, trouble in results:
        entry = tree.SubElement(suite, "testcase", name=name, time=f"{seconds:.1f}", status="fail" if trouble else "run")
        if trouble:
            tree.SubElement(entry, "failure").text = trouble
    tree.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("  ")[0])
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--conan", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []])
    chosen = parser.parse_args()
    names = sorted(chosen.cases or CASES, key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
    jobs = int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", os.cpu_count()))
    with tempfile.TemporaryDirectory(prefix="rill-consumer-") as folder:
        ground = Ground(pathlib.Path(folder).resolve(), chosen.conan and chosen.conan.absolute())
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(lambda name: attempt(name, ground), names))
    if chosen.junit:
        write_junit(chosen.junit, results)
    failed = sum(bool(trouble) for _, _, trouble in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
