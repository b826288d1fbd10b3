"""Each bad tree below must be refused for its own reason, and the good one accepted."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import check_layers  # noqa: E402

GOOD = {
    "core/types.hpp": "#pragma once\n#include <vector>\n",
    "core.hpp": "#include <rill/core/types.hpp>\n",
    "concept/transport.hpp": "#include <rill/core/types.hpp>\n",
    "concept.hpp": "#include <rill/concept/transport.hpp>\n",
    "kernel/merge.hpp": "#include <immintrin.h>\n#include <rill/core/types.hpp>\n",
    "kernel.hpp": "#include <rill/kernel/merge.hpp>\n",
    "topology/ring.hpp": "#include <rill/concept/transport.hpp>\n",
    "topology.hpp": "#include <rill/topology/ring.hpp>\n",
    "transport/in_process.hpp": "#include <thread>\n#include <rill/concept/transport.hpp>\n",
    "transport/mpi.hpp": "#include <mpi.h>\n",
    "transport.hpp": "#include <rill/transport/in_process.hpp>\n",
    "train/mlp.hpp": "#include <Eigen/Core>\n#include <rill/topology/ring.hpp>\n",
    "train.hpp": "#include <rill/train/mlp.hpp>\n",
    "adapt/eigen.hpp": "#include <Eigen/Core>\n#include <rill/core/types.hpp>\n",
    "testing/spawn.hpp": "#include <rill/transport/in_process.hpp>\n#include <rill/train/mlp.hpp>\n",
    "testing.hpp": "#include <rill/testing/spawn.hpp>\n",
    "rill.hpp": "".join(f"#include <rill/{folder}.hpp>\n" for folder in ("core", "concept", "kernel", "topology")),
}

UNGUARDED = "// may be included once only\n"


def violations(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**GOOD, **changes}.items():
            path = pathlib.Path(folder, "rill", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if text == UNGUARDED else text + "\n#pragma once\n")
        return list(check_layers.violations(pathlib.Path(folder)))


class Layers(unittest.TestCase):
    def refuses(self, changes, *expected):
        self.assertEqual(violations(changes), list(expected))

    def test_good_tree(self):
        self.refuses({})

    def test_no_pragma_once(self):
        self.refuses({"core/types.hpp": UNGUARDED}, "rill/core/types.hpp:1: lacks #pragma once")

    def test_upward_include(self):
        self.refuses({"core/types.hpp": "#pragma once\n#include <rill/kernel/empty.hpp>\n", "kernel/empty.hpp": "",
                      "kernel.hpp": GOOD["kernel.hpp"] + "#include <rill/kernel/empty.hpp>\n"},
                     "rill/core/types.hpp:2: core/ must not include <rill/kernel/empty.hpp>")

    def test_siblings(self):
        self.refuses({"compress/top_k.hpp": "#include <rill/topology/ring.hpp>\n",
                      "compress.hpp": "#include <rill/compress/top_k.hpp>\n",
                      "rill.hpp": GOOD["rill.hpp"] + "#include <rill/compress.hpp>\n"},
                     "rill/compress/top_k.hpp:1: compress/ must not include <rill/topology/ring.hpp>")

    def test_kernel_stands_below_stream(self):
        self.refuses({"stream/dense.hpp": "", "stream.hpp": "#include <rill/stream/dense.hpp>\n",
                      "kernel/merge.hpp": "#include <rill/stream/dense.hpp>\n",
                      "rill.hpp": GOOD["rill.hpp"] + "#include <rill/stream.hpp>\n"},
                     "rill/kernel/merge.hpp:1: kernel/ must not include <rill/stream/dense.hpp>")

    def test_mixings_have_an_umbrella_of_their_own(self):
        mixing = {"concept/mixing.hpp": "", "concept.hpp": GOOD["concept.hpp"] + "#include <rill/concept/mixing.hpp>\n",
                  "topology/pairs.hpp": "#include <rill/concept/mixing.hpp>\n"}
        self.refuses({**mixing, "mixing.hpp": "#include <rill/topology/pairs.hpp>\n"})
        self.refuses(mixing, "rill/mixing.hpp: missing, the umbrella of mixings")
        self.refuses({**mixing, "mixing.hpp": "#include <rill/topology/ring.hpp>\n"},
                     "rill/mixing.hpp: lacks #include <rill/topology/pairs.hpp>",
                     "rill/mixing.hpp: must not include <rill/topology/ring.hpp>")
        self.refuses({**mixing, "mixing.hpp": "#include <rill/topology/pairs.hpp>\n",
                      "topology.hpp": GOOD["topology.hpp"] + "#include <rill/topology/pairs.hpp>\n"},
                     "rill/topology.hpp: must not include <rill/topology/pairs.hpp>")

    def test_adapters_see_core_and_concept_only(self):
        self.refuses({"adapt/eigen.hpp": "#include <rill/kernel/merge.hpp>\n"},
                     "rill/adapt/eigen.hpp:1: adapt/ must not include <rill/kernel/merge.hpp>")

    def test_nothing_includes_testing(self):
        self.refuses({"train/mlp.hpp": "#include <rill/testing/spawn.hpp>\n", "testing/spawn.hpp": ""},
                     "rill/train/mlp.hpp:1: train/ must not include <rill/testing/spawn.hpp>")

    def test_threads_outside_transport(self):
        for name in ("thread", "mutex", "condition_variable", "chrono"):
            self.refuses({"train/mlp.hpp": f"#include <{name}>\n"},
                         f"rill/train/mlp.hpp:1: <{name}> belongs in adapt, transport only")

    def test_expensive_headers(self):
        for name in ("iostream", "random", "ranges", "regex", "functional"):
            self.refuses({"transport/mpi.hpp": f"  #  include  <{name}>\n"},
                         f"rill/transport/mpi.hpp:1: <{name}> is too expensive for a library header")

    def test_third_party_in_the_core(self):
        self.assertIn("rill/topology/ring.hpp:1: <Eigen/Core> is a third party's: topology needs the standard library alone",
                      violations({"topology/ring.hpp": "#include <Eigen/Core>\n"}))

    def test_missing_header(self):
        self.refuses({"train/mlp.hpp": "#include <rill/core/gone.hpp>\n"},
                     "rill/train/mlp.hpp:1: <rill/core/gone.hpp> does not exist")

    def test_quoted_include(self):
        self.refuses({"train/mlp.hpp": '#include "../core/types.hpp"\n'},
                     'rill/train/mlp.hpp:1: write #include <rill/...> instead of "../core/types.hpp"')

    def test_unknown_folder(self):
        self.assertIn("rill/misc/x.hpp:1: folder misc/ has no place in the layers", violations({"misc/x.hpp": ""}))

    def test_header_outside_folders(self):
        self.assertIn("rill/all.hpp:1: only rill.hpp and the folders' umbrellas stand outside the folders",
                      violations({"all.hpp": ""}))

    def test_cycle(self):
        self.refuses({"train/a.hpp": "#include <rill/train/b.hpp>\n", "train/b.hpp": "#include <rill/train/a.hpp>\n",
                      "train.hpp": "".join(f"#include <rill/train/{name}.hpp>\n" for name in ("a", "b", "mlp"))},
                     "rill/train/a.hpp: cycle rill/train/a.hpp -> rill/train/b.hpp -> rill/train/a.hpp")

    def test_umbrella_lacks_a_folder(self):
        self.refuses({"stream/dense.hpp": "", "stream.hpp": "#include <rill/stream/dense.hpp>\n"},
                     "rill/rill.hpp: lacks #include <rill/stream.hpp>")

    def test_umbrella_lacks_what_stands_alone(self):
        self.refuses({"protocol/rounds.hpp": "", "protocol.hpp": "#include <rill/protocol/rounds.hpp>\n"},
                     "rill/rill.hpp: lacks #include <rill/protocol/rounds.hpp>")

    def test_umbrella_has_too_much(self):
        self.refuses({"rill.hpp": GOOD["rill.hpp"] + "#include <rill/train.hpp>\n"},
                     "rill/rill.hpp: must not include <rill/train.hpp>",
                     "rill/rill.hpp: must not reach <rill/train/mlp.hpp>, which brings <Eigen/Core>")

    def test_umbrella_reaches_threads(self):
        self.assertIn("rill/rill.hpp: must not reach <rill/topology/ring.hpp>, which brings <thread>",
                      violations({"topology/ring.hpp": "#include <thread>\n"}))

    def test_no_umbrella(self):
        self.refuses({"rill.hpp": "", "all/x.hpp": ""}, *sorted(
            ["rill/all/x.hpp:1: folder all/ has no place in the layers",
             *(f"rill/rill.hpp: lacks #include <rill/{folder}.hpp>" for folder in ("concept", "core", "kernel", "topology"))]))

    def test_folder_lacks_an_umbrella(self):
        self.refuses({"straggler/solo.hpp": "", "rill.hpp": GOOD["rill.hpp"] + "#include <rill/straggler.hpp>\n"},
                     "rill/rill.hpp:5: <rill/straggler.hpp> does not exist",
                     "rill/straggler.hpp: missing, the umbrella of straggler/")

    def test_umbrella_of_a_folder_lacks_a_header(self):
        self.refuses({"kernel/select.hpp": ""}, "rill/kernel.hpp: lacks #include <rill/kernel/select.hpp>")

    def test_umbrella_of_a_folder_has_another(self):
        self.refuses({"core.hpp": GOOD["core.hpp"] + "#include <rill/kernel/merge.hpp>\n"},
                     "rill/core.hpp: must not include <rill/kernel/merge.hpp>")

    def test_umbrella_of_a_folder_may_lack_details(self):
        self.refuses({"kernel/detail/table.hpp": ""})

    def test_third_parties_are_included_by_their_names(self):
        self.refuses({"transport.hpp": GOOD["transport.hpp"] + "#include <rill/transport/mpi.hpp>\n"},
                     "rill/transport.hpp: must not include <rill/transport/mpi.hpp>")

    def test_what_costs_much_is_included_by_its_name(self):
        any_shape = {"topology/any.hpp": "#include <rill/topology/ring.hpp>\n"}
        self.refuses(any_shape)
        self.refuses({**any_shape, "topology.hpp": GOOD["topology.hpp"] + "#include <rill/topology/any.hpp>\n"},
                     "rill/topology.hpp: must not include <rill/topology/any.hpp>")

    def test_empty_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(list(check_layers.violations(pathlib.Path(folder)))), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
