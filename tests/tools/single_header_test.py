"""What is made of a small tree of headers compiles as the tree does, and is found stale when a header changes."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import single_header  # noqa: E402

COMMAND = [word for word in sys.argv[1:] if not word.startswith("-I")]
CONFIG = """#pragma once

#ifdef RILL_SINGLE_HEADER
#error "mixed"
#endif
#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 7
#define RILL_VERSION_PATCH 3
"""
TREE = {  # they include standard headers that compile fast
    "rill.hpp": "#pragma once\n#include <rill/core/types.hpp>\n#include <rill/core/config.hpp>\n"
                "#if defined(RILL_COMPILED)\n#include <rill/compiled.hpp>\n#endif\n",
    "compiled.hpp": "#pragma once\n#include <rill/transport/threads.hpp>\n"
                    "#if defined(RILL_COMPILED)\nusing compiled = threads;\n#endif\n",
    "core/config.hpp": CONFIG,
    "core/types.hpp": "#pragma once\n#include <rill/core/config.hpp>\n#include <initializer_list>\n#include <cstddef>\n"
                      "#if defined(__SSE2__)\n#include <cstdio>\n#endif\nusing ranks = std::initializer_list<std::size_t>;\n",
    "transport.hpp": "#pragma once\n#include <rill/transport/threads.hpp>\n",
    "transport/threads.hpp": "#pragma once\n#include <rill/core/types.hpp>\n#include <cstdlib>\nstruct threads {};\n",
    "transport/detail/shared.hpp": "#pragma once\n#include <rill/core/types.hpp>\n#include <new>\n"
                                   "inline std::nothrow_t shared(ranks) { return std::nothrow; }\n",
    "transport/simulated.hpp": "#pragma once\n#include <rill/transport/detail/shared.hpp>\n#include <cerrno>\n"
                               "struct simulated {};\n",
    "transport/mpi.hpp": "#pragma once\n#include <rill/transport/detail/shared.hpp>\nstruct mpi {};\n",
    "train/loop.hpp": "#pragma once\n#include <rill/core/types.hpp>\nstruct loop {};\n",
    "train.hpp": "#pragma once\n#include <rill/train/loop.hpp>\n",
    "testing.hpp": "#pragma once\n#include <rill/transport/simulated.hpp>\nstruct testing : simulated {};\n",
    **{f"{name}.hpp": "#pragma once\n#include <rill/core/types.hpp>\n"
       for name in ("session", "mixing", "topology/any", "protocol", "gradient_code", "cost", "train/automatic", "system",
                    "adapt/eigen")},
}
FILES = ["rill/rill.hpp", "rill/testing.hpp", "rill/train.hpp", "rill/transport/mpi.hpp", "rill/transport/simulated.hpp"]


class SingleHeader(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.include, self.single = pathlib.Path(folder.name, "include"), pathlib.Path(folder.name, "single_include")
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.include / "rill" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def main(self, *arguments):
        """Status and output of the script."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = single_header.main([*arguments, str(self.include), str(self.single)])
        return status, said.getvalue()

    def compile(self, program, *folders):
        """What the compiler says against a program."""
        done = subprocess.run([*COMMAND, *(f"-I{folder}" for folder in folders), "-x", "c++", "-"], input=program, text=True,
                              stderr=subprocess.PIPE)
        return done.stderr if done.returncode else ""

    def stale(self, *expected):
        status, said = self.main("--check")
        self.assertEqual(said.splitlines()[:-1], list(expected))
        self.assertRegex(said.splitlines()[-1], "run `./dev single`")
        self.assertEqual(status, 1)

    def test_files(self):
        self.main()
        self.assertEqual(sorted(path.relative_to(self.single).as_posix() for path in self.single.rglob("*.hpp")),
                         FILES)
        text = (self.single / "rill/rill.hpp").read_text()
        self.assertIn("// rill 0.7.3:", text.splitlines()[0])
        self.assertIn("SPDX-License-Identifier: Apache-2.0", text)
        self.assertNotIn("include <rill", text)

    def test_standard_includes_come_first_once_unless_conditional(self):
        self.main()
        text = (self.single / "rill/rill.hpp").read_text()
        self.assertIn("#include <cstddef>\n#include <cstdlib>\n#include <initializer_list>\n\n// ===== rill/core/config.hpp", text)
        self.assertIn("#if defined(__SSE2__)\n#include <cstdio>\n#endif", text)

    def test_same_bytes_every_time(self):
        self.assertEqual(single_header.generate(self.include), single_header.generate(self.include))

    def test_compiles_in_any_order_and_twice(self):
        self.main()
        for order in (FILES, FILES[::-1], FILES[1:], FILES[3:], FILES[4:], FILES + FILES):
            program = "".join(f"#include <{name}>\n" for name in order) + "ranks all;\n"
            self.assertEqual(self.compile(program, self.single), "")

    def test_two_copies_in_two_folders(self):
        self.main()
        copy = self.single / "copy"
        single_header.write(single_header.generate(self.include), copy)
        self.assertEqual(self.compile(f'#include <rill/rill.hpp>\n#include "{copy}/rill/rill.hpp"\n', self.single), "")

    def test_not_beside_the_tree(self):
        self.main()
        self.assertIn("mixed", self.compile("#include <rill/rill.hpp>\n#include <rill/train/loop.hpp>\n", self.single,
                                            self.include))
        self.assertIn("use one of the two folders", self.compile(
            f"#include <rill/train/loop.hpp>\n#include <{self.single}/rill/rill.hpp>\n", self.include))
        self.assertIn("needs rill.hpp of that folder", self.compile(
            f"#include <{self.single}/rill/transport/mpi.hpp>\n", self.include))

    def test_not_of_two_versions(self):
        self.main()
        path = self.single / "rill/rill.hpp"
        path.write_text(path.read_text().replace("PATCH 3", "PATCH 4"))
        self.assertIn("of version 0.7.3, rill.hpp of another",
                      self.compile("#include <rill/train.hpp>\n", self.single))

    def test_fresh(self):
        self.main()
        self.assertEqual(self.main("--check"), (0, ""))

    def test_stale_when_a_header_changes(self):
        self.main()
        self.write("core/types.hpp", TREE["core/types.hpp"] + "using more = int;\n")
        self.stale("single_include/rill/rill.hpp: stale in rill/core/types.hpp")

    def test_stale_when_files_come_and_go(self):
        self.main()
        self.write("transport/detail/shared.hpp", TREE["transport/detail/shared.hpp"] + "// more\n")
        (self.single / "rill/train.hpp").unlink()
        (self.single / "rill/more.hpp").write_text("")
        self.stale("single_include/rill/more.hpp: made of no header that is there",
                   "single_include/rill/train.hpp: missing",
                   "single_include/rill/transport/mpi.hpp: stale in rill/transport/detail/shared.hpp",
                   "single_include/rill/transport/simulated.hpp: stale in rill/transport/detail/shared.hpp")
        self.main()
        self.assertEqual(self.main("--check"), (0, ""))

    def test_what_a_file_includes_stands_there_only(self):
        self.main()
        text = (self.single / "rill/testing.hpp").read_text()
        self.assertIn("#include <rill/rill.hpp>\n#include <rill/transport/simulated.hpp>", text)
        self.assertNotIn("struct simulated", text)

    def test_header_inside_if_stays_there(self):
        self.write("transport/detail/fiber.hpp", "#pragma once\n#include <rill/core/types.hpp>\n#include <cerrno>\n"
                                                 "struct fiber {};\n")
        self.write("transport/simulated.hpp", "#pragma once\n#include <rill/transport/detail/fiber.hpp>\n")
        self.write("transport/mpi.hpp", "#pragma once\n#include <rill/core/types.hpp>\n#ifdef WITH_FIBERS\n"
                                        "#include <rill/transport/detail/fiber.hpp>\n#endif\nstruct mpi {};\n")
        self.main()
        mpi, simulated = "#include <rill/transport/mpi.hpp>\n", "#include <rill/transport/simulated.hpp>\n"
        use = "fiber one; mpi two;\n"
        self.assertEqual(self.compile(mpi + "struct fiber;\nmpi two;\n", self.single), "")
        self.assertIn("fiber", self.compile(mpi + use, self.single))
        for order in (mpi, mpi + simulated, simulated + mpi):
            self.assertEqual(self.compile("#define WITH_FIBERS\n" + order + use, self.single), "")

    def test_what_the_umbrella_includes_inside_if_stands_there_once(self):
        self.main()
        text = (self.single / "rill/rill.hpp").read_text()
        self.assertEqual((text.count("struct threads"), text.count("using compiled")), (1, 1))
        use = "#include <rill/rill.hpp>\ncompiled one;\n"
        self.assertEqual(self.compile("#define RILL_COMPILED\n" + use, self.single), "")
        self.assertIn("compiled", self.compile(use, self.single))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
