"""Which files the figure of a claim depends on: those that its command builds and runs, and what they include."""

import functools
import re
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
# How programs are built and scripts run, whatever they measure.
SHARED = {"CMakeLists.txt", "CMakePresets.json", "cmake", "dev", "bench/CMakeLists.txt", "bench/shared/programs.py",
          "bench/shared/kernels.py"}


def bench_programs(family, root):
    """The sources of a family, and those of other families' programs that its script names: `<family>_<program>`."""
    script = (root / "bench" / family / "run").read_text()
    return [source for source in sorted((root / "bench").glob("*/*.cpp"))
            if source.parent.name == family or f'"{source.parent.name}_{source.stem}"' in script]


def roots_of(command, root):
    """The sources that a command compiles and the other files that it reads; None for an unknown command."""
    words = command.split()
    if words[:2] == ["./dev", "bench"] and len(words) == 3:
        return bench_programs(words[2], root), {f"bench/{words[2]}", "tools/netlab", *SHARED}
    if words[:2] == ["./dev", "demo"]:
        return sorted((root / "examples/demo").glob("*.cpp")), {"examples/demo", "examples/CMakeLists.txt", *SHARED}
    if words[0] == "tools/compile_seconds.py":
        return [], {words[0], "tools/by_hand", "include"}
    return None


def found(name, including, root):
    """The file of ours that an #include names, if it is one."""
    for folder in (including.parent, root / "include", root / "bench"):
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


@functools.cache
def includes(source, root):
    """What a file includes itself. Conditional includes count."""
    named = INCLUDE.findall(source.read_text())
    return [file for file in (found(name, source, root) for name in named) if file is not None]


def files_of(command, root):
    """Paths of files and folders, relative to `root`; None for an unknown command."""
    roots = roots_of(command, root)
    if roots is None:
        return None
    sources, others = roots
    reached, left = set(), [source.resolve() for source in sources]
    while left:
        source = left.pop()
        if source not in reached:
            reached.add(source)
            left += includes(source, root.resolve())
    return others | {str(source.relative_to(root.resolve())) for source in reached}


def changed_since(commit, root):
    """The paths that differ from those of a commit, uncommitted and new ones included."""
    def git(*arguments):
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
        if ran.returncode != 0:
            raise LookupError(ran.stderr.strip())
        return ran.stdout.splitlines()

    return {*git("diff", "--name-only", "--no-renames", commit, "--"),
            *git("ls-files", "--others", "--exclude-standard")}


def is_touched(command, changed, root):
    """Whether any of the changed paths is what the command depends on."""
    files = files_of(command, root)
    if files is None:
        return True
    return any(path in files or any(path.startswith(f"{file}/") for file in files) for path in changed)
