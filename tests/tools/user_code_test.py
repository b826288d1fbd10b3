"""rill as a user's own flags and headers meet it: no warning when optimised, a user's own loop optimised for speed, libstdc++'s
debug mode, `using namespace rill` together with the headers of POSIX.

usage: user_code_test.py TEST COMMAND...      (a method of UserCode, and the compiler's command)

rill's headers are found by -I, so that their warnings count; others by -isystem."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
INCLUDE = ROOT / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
# What instantiates most of rill, at one level each: a unit takes a compiler 10 to 20 s. The first of each level has every public
# header before it.
EXAMPLES = {"-O2": ["several_tensors", "coded_gradient_descent"], "-O3": ["stragglers", "error_feedback"]}
# Headers that need somebody else's library, and one of its headers.
FOREIGN = {"adapt/eigen.hpp": "Eigen/Core", "adapt/tbb.hpp": "tbb/task_arena.h", "adapt/xtensor.hpp": "xtensor/xtensor.hpp",
           "train/gzip_source.hpp": "zlib.h", "transport/mpi.hpp": "mpi.h", "transport/simulated.hpp": "boost/context/fiber.hpp"}
POSIX = ["errno.h", "fcntl.h", "math.h", "netdb.h", "poll.h", "pthread.h", "sched.h", "signal.h", "stdio.h", "stdlib.h", "string.h",
         "sys/mman.h", "sys/socket.h", "sys/stat.h", "sys/types.h", "sys/wait.h", "time.h", "unistd.h"]
DECLARATION = re.compile(r"(?:struct|class|enum(?: class)?|concept|using|namespace) (?:\[\[\w+\]\] )?(\w+)|[^=]*?\b(\w+)\("
                         r"|.*?\b(\w+)(?: = |\{|;)")


def public_headers():
    return [h for h in sorted((INCLUDE / "rill").rglob("*.hpp")) if "detail" not in h.parts]


def everything():
    """Includes every public header whose libraries are there."""
    lines = []
    for header in public_headers():
        name = header.relative_to(INCLUDE / "rill").as_posix()
        foreign = FOREIGN.get(name)
        lines += [f"#if __has_include(<{foreign}>)"] if foreign else []
        lines += [f"#include <rill/{name}>"]
        lines += ["#endif"] if foreign else []
    return "\n".join(lines) + "\n"


def declared(text):
    """What a header declares in namespace rill itself: the formatter puts that, and nothing else, at a line's beginning."""
    space = None
    for line in text.splitlines():
        opened = re.match(r"namespace (rill \{ inline namespace RILL_ABI \{)?(?: ?namespace )?([\w:]*(?: \{ namespace \w+)*)(?: \{)?$", line)
        if opened and opened[1]:
            space = opened[2]
            if space:
                yield re.split(r"\W", space)[0]
        elif opened:
            outer, space = space, opened[2]
        elif re.match(r"\}+  // namespace ", line):
            space = None if "rill" in line else outer
        elif space == "" and re.match(r"(?!template|static_assert|requires)\w", line):
            found = DECLARATION.match(line)
            if found:
                yield next(filter(None, found.groups()))


def names():
    return sorted({name for header in public_headers() for name in declared(header.read_text())})


class UserCode(unittest.TestCase):
    command = []

    def said(self, flags, text):
        """What the compiler says about a translation unit. The later -c or -fsyntax-only decides."""
        command = [*self.command, *flags, "-x", "c++", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
        return done.stderr if done.returncode else ""

    def optimising(self):
        return [word for word in self.command if word != "-fsyntax-only"]

    def no_warning(self, level):
        examples = EXAMPLES[level]
        units = {name: f'#include "examples/{name}.cpp"\n' for name in examples}
        units[examples[0]] = everything() + units[examples[0]]
        for name, text in units.items():
            with self.subTest(unit=name):
                command = [*self.optimising(), level, *WARNINGS, "-I.", "-c", "-o", "/dev/null", "-x", "c++", "-"]
                done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
                self.assertEqual(done.returncode, 0, done.stderr[:4000])

    def test_no_warning_at_O2(self):
        self.no_warning("-O2")

    def test_no_warning_at_O3(self):
        self.no_warning("-O3")

    def test_loops_of_users_are_optimised_for_speed(self):
        """A function that has to call what is marked cold is compiled for size, and all that only it calls."""
        unit = """#include <rill/rill.hpp>
            #include <rill/transport/in_process.hpp>
            #include <rill/transport/simulated.hpp>
            template <class Net>
            void loop(Net& net, std::span<float> gradient) {
                rill::group workers{net, rill::topology::ring{}};
                for (int step = 0; step < 10; ++step) rill::barrier(workers);
                for (float& each : gradient) each += 1;
            }
            template void loop(rill::in_process::endpoint&, std::span<float>);
            template void loop(rill::simulated::endpoint&, std::span<float>);
            void run_threads(std::span<float> gradient) { rill::in_process::run(2, [&](auto& net) { loop(net, gradient); }); }
            void give_up() { throw rill::invalid_value("is unlikely"); }
        """
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "loops.o")
            command = [*self.optimising(), "-O2", "-c", "-o", made, "-x", "c++", "-"]
            subprocess.run(command, input=unit, text=True, cwd=ROOT, check=True)
            listed = subprocess.run(["nm", "--demangle", "--format=sysv", made], capture_output=True, text=True, check=True).stdout
        functions = [line.split("|") for line in listed.splitlines() if "|" in line]
        section = {name.strip(): last.strip() for name, *_, last in functions if re.match(r"(void )?(loop|run_threads|give_up)", name)}
        self.assertEqual(len(section), 4, section)
        unlikely = {name for name, where in section.items() if "unlikely" in where}
        self.assertEqual(unlikely, {"give_up()"})

    def test_debug_mode_of_the_standard_library(self):
        flags = ["-D_GLIBCXX_DEBUG", "-D_GLIBCXX_ASSERTIONS"]
        self.assertEqual(self.said(flags, everything()), "")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "hello")
            build = [*self.optimising(), *flags, "-O0", "-pthread", "examples/hello.cpp", "-o", program]
            subprocess.run(build, cwd=ROOT, check=True)
            shown = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertEqual(shown, (ROOT / "examples/hello.output").read_text())

    def test_no_name_is_one_of_posix(self):
        found = names()
        for name in "all_reduce", "group", "network_link", "topology", "Transport", "any_rank":
            self.assertIn(name, found)
        # A namespace may have no name that anything else in the same scope has.
        posix = "".join(f"#include <{header}>\n" for header in POSIX)
        self.assertEqual(self.said([], posix + "".join(f"namespace {name} {{}}\n" for name in found)), "")
        for taken in "link", "system":
            self.assertIn(taken, self.said([], posix + f"namespace {taken} {{}}\n"))

    def test_using_namespace_rill_beside_posix(self):
        posix = "".join(f"#include <{header}>\n" for header in POSIX)
        program = posix + """#include <rill/rill.hpp>
            #include <rill/system/sparcml.hpp>
            #include <rill/transport/in_process.hpp>
            #include <rill/train/schedule.hpp>
            #include <rill/train/sgd.hpp>
            #include <rill/transport/links.hpp>
            using namespace rill;
            int calls(network_link way) {
                const auto plan = systems::sparcml({.density = 0.5}, train::sgd{}, train::constant_rate{0.1});
                return link("a", "b") + system("true") + static_cast<int>(way.bandwidth) + (plan == plan);
            }
            void sums(in_process::endpoint& net) {
                group workers{net, topology::ring{}};
                float x[4] = {};
                receipt done = all_reduce(workers, x, x, aggregate::mean{});
                static_cast<void>(done);
            }
        """
        self.assertEqual(self.said([], program), "")


if __name__ == "__main__":
    UserCode.command = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], f"UserCode.{sys.argv[1]}"])
