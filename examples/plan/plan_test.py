"""The planner's files, the C++ that it prints, and what it says of wrong arguments.

usage: plan_test.py RILL_PLAN COMPILER..., the compiler with the arguments by which it checks a file
"""

import array
import csv
import itertools
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

PLAN, *COMPILER = sys.argv[1:]
GIVEN = ["--select", "500us", "--fold", "2GB"]
SMALL = ["--ranks", "8", "--model-size", "10k", *GIVEN]

# What a user has around the printed lines.
HEADERS = """
#include <rill/protocol/coded_allocation.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/system/coded_reduce.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/coded_batch.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/partial_bsp.hpp>
#include <rill/train/partial_replica.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

struct model {
    using scalar = float;
    using batch = rill::train::batch;

    std::size_t dimension() const { return 0; }
    std::span<const rill::layer> layers() const { return {}; }
    void initialise(std::span<float>, rill::random_key) const {}
    double loss(std::span<const float>, const batch&) { return 0; }
    double gradient(std::span<const float>, const batch&, std::span<float>) { return 0; }
};
"""
AROUND = """
void body_%d(rill::in_process::endpoint& net, std::vector<float>& gradient, std::vector<float>& update,
             const model& objective, const rill::train::dataset& data, const rill::train::minibatches& batches) {
%s    static_cast<void>(gradient), static_cast<void>(update), static_cast<void>(objective);
    static_cast<void>(data), static_cast<void>(batches);
}
"""
AROUND_GOSSIP = """
#include <rill/adapt/boost_matching.hpp>
#include <rill/cost/measure_links.hpp>
#include <rill/mixing.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void body_of_gossip(rill::in_process::endpoint& net, std::vector<float>& model, void descend(std::vector<float>&)) {
%s}
"""


def run(*arguments):
    return subprocess.run([PLAN, *arguments], capture_output=True, text=True, timeout=120)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rows(self, *arguments):
        file = self.folder / "plan.csv"
        given = SMALL if "--model-size" not in arguments else SMALL[:2] + GIVEN
        done = run(*given, *arguments, "--csv", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        with file.open() as lines:
            return {(row["topology"], row["compressor"]): row for row in csv.DictReader(lines)}

    def test_csv(self):
        rows = self.rows("--latency", "10us", "--compute", "1ms")
        self.assertEqual(sum(int(row["advised"]) for row in rows.values()), 1)
        self.assertEqual(float(rows["ring", "none"]["select_s"]), 0)
        self.assertEqual(float(rows["ring", "top_k"]["select_s"]), 500e-6)
        self.assertEqual(len(rows), 28)
        ring = rows["ring", "none"]
        self.assertEqual(int(ring["all_bytes"]), 14 * (4 * 10_000 + 8 * 96))
        self.assertAlmostEqual(float(ring["latency_s"]), 14e-6 * 10)
        self.assertAlmostEqual(float(ring["computing_s"]), 14 * (4 * 1250 + 96) / 2e9)
        self.assertAlmostEqual(float(ring["step_s"]), 1e-3 + float(ring["computing_s"]) + float(ring["exchange_s"]))
        self.assertAlmostEqual(float(ring["speed_up"]), 8e-3 / float(ring["step_s"]), 6)

    def test_verify_of_small_plans(self):
        # A rank sends exactly as many entries as top_k: of 10 or fewer one, of 1000 ten.
        slow = ["--ranks", "8", "--bandwidth", "10kbit", "--latency", "1us", "--select", "1us", "--fold", "1GB"]
        for size, seed in itertools.product(["1", "3", "10", "1000"], range(1, 7)):
            with self.subTest(size=size, seed=seed):
                done = run(*slow, "--model-size", size, "--density", "0.01", "--seed", str(seed), "--verify")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_tiny_models(self):
        # A rank sends the only entry of its model: a dense vector of 4 bytes, or its coordinate besides.
        rows = self.rows("--model-size", "1")
        self.assertGreaterEqual(int(rows["ring", "top_k"]["all_bytes"]), int(rows["ring", "none"]["all_bytes"]))

    def test_picture(self):
        for compute in (["--compute", "1ms"], []):
            file = self.folder / "plan.svg"
            done = run(*SMALL, *compute, "--svg", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
            picture = tree.parse(file).getroot()
            lines = [e for e in picture.iter() if e.tag.endswith("polyline")]
            self.assertEqual(len(lines), 5)
            self.assertEqual({len(line.get("points").split()) for line in lines}, {3})  # 2, 4 and 8 ranks

    def test_measured_overlap(self):
        # Large where all ranks' gradients are: their selections overlap, and less has to be sent back.
        draw = random.Random(1)
        values = array.array("f")
        for _ in range(3):
            values.extend(draw.gauss(0, 10 if i < 200 else 0.1) for i in range(10_000))
        file = self.folder / "gradients.f32"
        file.write_bytes(values.tobytes())
        measured, uniform = self.rows("--gradients", str(file)), self.rows()
        way = "recursive_doubling", "top_k"
        self.assertLess(int(measured[way]["all_bytes"]), 0.9 * int(uniform[way]["all_bytes"]))
        file.write_bytes(values.tobytes()[:-4])
        self.assertIn("holds no whole number of gradients of 10000 float32", run(*SMALL, "--gradients", str(file)).stderr)

    def test_stragglers(self):
        trace = self.folder / "times"
        trace.write_text("0.001, 0.003\n0.002, 0.002\n")
        rows = self.rows("--stragglers", f"trace:{trace}")
        ring = rows["ring", "none"]
        exchange = float(ring["computing_s"]) + float(ring["exchange_s"])
        self.assertAlmostEqual(float(ring["step_s"]), 0.0025 + exchange)
        alone = {kind: float(self.rows("--compute", "1ms", "--stragglers", kind)["ring", "none"]["step_s"])
                 for kind in ("none", "uniform:0.5", "exponential:0.5", "slow:1:2")}
        self.assertAlmostEqual(alone["none"], 0.001 + exchange)
        self.assertAlmostEqual(alone["slow:1:2"], 0.002 + exchange)
        # In expectation: of 8 uniform ones 0.5 + 8/9, of 8 exponential ones 0.5 + H(8)/2, each of a millisecond.
        self.assertAlmostEqual(alone["uniform:0.5"] - exchange, 0.001389, delta=0.00003)
        self.assertAlmostEqual(alone["exponential:0.5"] - exchange, 0.001859, delta=0.00008)

    def test_partial_rounds(self):
        # 16 ranks of 10 to 60 ms and an exchange that takes no time: the figures of the rna-rates claim, of a plain model.
        fast = ["--ranks", "16", "--model-size", "16", "--bandwidth", "100GB", "--latency", "0s", *GIVEN[:1], "0s",
                "--fold", "1000GB", "--compute", "35ms", "--stragglers", "uniform:0.714285714"]
        def told(*policies):
            done = run(*fast, *policies)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = re.search(r"([\d.]+) of 16 ranks in each.*They count [^,]*, ([\d.]+) times", done.stdout, re.S)
            self.assertIsNotNone(found, done.stdout)
            return map(float, found.groups())
        contributors, gain = told("--trigger", "two_choices:2", "--staleness", "bounded:64")
        self.assertAlmostEqual(contributors, 5.67, delta=0.2)
        self.assertAlmostEqual(gain, 1.63, delta=0.05)
        contributors, gain = told("--trigger", "majority", "--staleness", "in_step")
        self.assertAlmostEqual(contributors, 8.5, delta=0.3)
        self.assertAlmostEqual(gain, 1.53, delta=0.05)
        contributors, gain = told("--trigger", "all_ready", "--staleness", "in_step")
        self.assertEqual(contributors, 16)
        self.assertAlmostEqual(gain, 1, delta=0.02)

    def test_coded(self):
        # Computing alone, with a long tail: of two workers the first takes half as long as one, the second 1.5 times.
        done = run("--coded", "--ranks", "2", "--model-size", "1", "--bandwidth", "100GB", "--latency", "0s",
                   "--compute", "1s", "--stragglers", "exponential:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        rows = {line[:21].strip(): line.split() for line in lines[5:lines.index("", 5)]}
        self.assertEqual(rows["gradient coding"][-4:-2], ["1.000", "s"])
        self.assertEqual(rows["master-worker"][-4:-2], ["1.500", "s"])
        self.assertEqual(rows["ring"][-4:-2], ["1.500", "s"])
        self.assertIn("Coding pays: gradient coding that tolerates 1", done.stdout)

    def require_gossip(self):
        """Skips a test where the planner was built without Boost.Graph."""
        if "needs Boost.Graph" in run("--gossip", "--ranks", "2").stderr:
            self.skipTest("no Boost.Graph")

    def gossip(self, *arguments):
        """The rows as lists of words, and the `least` that is advised."""
        self.require_gossip()
        done = run("--gossip", "--model-size", "25450", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        rows = [line.split() for line in lines[4:lines.index("", 4)]]
        return rows, float(re.search(r"Take ([\d.]+) MB/s", done.stdout)[1])

    def test_gossip(self):
        # Links of up to 5 MB/s: the paper of SAPS-PSGD takes 3, with a mean bottleneck of 3.1 and an eigenvalue of 0.75.
        rows, least = self.gossip("--ranks", "32", "--bandwidth", "5MB", "--density", "1", "--latency", "0s")
        self.assertGreater(least, 2)
        self.assertLess(least, 4.5)
        near = min(rows, key=lambda row: abs(float(row[0]) - 3))
        self.assertAlmostEqual(float(near[1]), float(near[0]), delta=0.4)
        self.assertEqual([row[0] for row in rows if row[-1] == "*"], [f"{least:.3f}"])

    def test_gossip_of_equal_links(self):
        file = self.folder / "links"
        file.write_text("0, 4, 4, 4\n4 0 4 4\n4 4 0 4\n\n4,4,4,0\n")
        rows, least = self.gossip("--links", str(file), "--density", "0.5", "--latency", "0s")
        self.assertEqual([row[0] for row in rows], ["0.000", "4.000"])
        self.assertEqual(least, 0)
        self.assertEqual({row[1] for row in rows}, {"4.000"})

    def test_wrong_links(self):
        self.require_gossip()
        file = self.folder / "links"
        for text, message in {"0 1\n1\n": "there are 3 in 2 rows", "0 1\n1 fast\n": "row 2 has something else than numbers",
                              "": "there are 0 in 0 rows",
                              "0 1 1 1\n1 0\n1 1 0\n": "row 1 has 4 numbers, not 3", "0 1 1\n1 0 -1\n1 1 0": "row 2, column 3",
                              "0 1 0 0\n1 0 0 0\n0 0 0 1\n0 0 1 0\n": "do not join all ranks", "0 0\n0 0\n": "do not join"}.items():
            with self.subTest(text=text):
                file.write_text(text)
                done = run("--gossip", "--links", str(file))
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, "")
                self.assertIn(message, done.stderr)

    def test_measures(self):
        # Nothing is free: of a network that takes no time, computing is left, and selecting is part of it.
        file = self.folder / "plan.csv"
        done = run("--ranks", "2", "--model-size", "100k", "--bandwidth", "1000000GB", "--latency", "0s",
                   "--csv", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("measured on this machine, with 2 ranks of 100000 parameters", done.stdout)
        self.assertIn("Do not compress", done.stdout)
        with file.open() as lines:
            for row in csv.DictReader(lines):
                self.assertGreater(float(row["select_s"]), 0, row)
                self.assertGreaterEqual(float(row["computing_s"]), float(row["select_s"]), row)

    def printed_code(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines(keepends=True)
        starts = [i + 2 for i, line in enumerate(lines) if line.endswith("C++:\n") or line.startswith("In C++, ")]
        return ["".join(itertools.takewhile(lambda line: line.startswith("    "), lines[i:])) for i in starts]

    def test_printed_code_compiles(self):
        rows = self.rows()
        method_on = {method: topology for topology, method in rows}  # each method once, and each topology
        ways = {(topology, "none") for topology, _ in rows}
        ways |= {(topology, method) for method, topology in method_on.items()}
        blocks = []
        for way in sorted(ways):
            blocks += self.printed_code(*SMALL, "--code", ", ".join(way))
        self.assertEqual(len(blocks), len(ways))
        slow = self.printed_code(*SMALL, "--compute", "1ms", "--stragglers", "slow:1:1000")
        self.assertEqual(len(slow), 2)
        self.assertIn("rill::straggler::tolerate{1}", slow[1])
        coded = self.printed_code("--coded", "--ranks", "12", "--model-size", "1k", "--compute", "1s", "--stragglers",
                                  "exponential:1")
        self.assertEqual(len(coded), 1)
        self.assertIn("rill::systems::coded_reduce<float>", coded[0])
        partial = self.printed_code(*SMALL, "--compute", "1ms", "--trigger", "two_choices:2", "--staleness", "bounded:8")
        self.assertEqual(len(partial), 2)
        self.assertIn("rill::straggler::two_choices{2}", partial[1])
        blocks += [slow[1], partial[1], *coded]
        self.check_compiles(HEADERS + "".join(AROUND % (i, code) for i, code in enumerate(blocks)))

    def test_printed_gossip_compiles(self):
        self.require_gossip()
        gossip = self.printed_code("--gossip", "--ranks", "8", "--bandwidth", "5MB")
        self.assertEqual(len(gossip), 1)
        self.check_compiles(AROUND_GOSSIP % gossip[0])

    def check_compiles(self, text):
        source = self.folder / "printed.cpp"
        source.write_text(text)
        compiled = subprocess.run([*COMPILER, str(source)], capture_output=True, text=True, timeout=110)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_wrong_arguments(self):
        for arguments, message in {
            ("--bandwidth", "10"): "'10' needs one of the units kbit, Mbit, Gbit, kB, MB, GB",
            ("--bandwidth", "100mb"): "'100mb' has two readings: 100Mbit a second, or 100MB a second",
            ("--fold", "2Gb"): "two readings",
            ("--stragglers", "slow:5000:2", "--compute", "1s"): "up to --ranks",
            ("--seed", "-1"): "'-1' is below 0",
            ("--code", "nonsense"): "'nonsense' is no row",
            ("--trigger", "two_choices:0", "--compute", "1s"): "is none of all_ready",
            ("--trigger", "solo", "--compute", "1s", "--staleness", "bounded:-1"): "is none of in_step, unbounded",
            ("--latency", "fast"): "'fast' is no number",
            ("--ranks", "1"): "not in range",
            ("--density", "2"): "not in range",
            ("--density", "nan"): "'nan' is no number",
            ("--gradients", "/nowhere/at/all"): "File does not exist",
            ("--stragglers", "uniform:0.5"): "needs --compute",
            ("--stragglers", "uniform:2", "--compute", "1s"): "is none of none, uniform:SPREAD",
            ("--stragglers", "slow:1.5:2", "--compute", "1s"): "RANKS a whole number",
            ("--stragglers", "slow:1:inf", "--compute", "1s"): "FACTOR from 1 to 1e6",
            ("--csv", "/nowhere/at/all"): "/nowhere/at/all: cannot be written",
            ("--ranks", "4096", "--verify"): "at most 200 million",
            ("--code", "circle, none"): "'circle, none' is no row",
            ("--select", "5"): "'5' needs one of the units",
            ("--fold", "0GB"): "not in range",
            ("--trigger", "majority"): "needs --compute",
            ("--trigger", "two_choices:9", "--compute", "1s"): "is none of all_ready, majority, solo, two_choices:PROBES",
            ("--trigger", "solo", "--compute", "1s", "--staleness", "bounded"): "is none of in_step, unbounded",
            ("--staleness", "in_step"): "needs --trigger",
            ("--coded",): "needs --compute",
            ("--coded", "--compute", "1s"): "needs --stragglers exponential:TAIL",
            ("--coded", "--compute", "1s", "--verify"): "goes with none of",
            ("--gossip", "--verify"): "goes with none of",
            ("--gossip", "--links", __file__): "leave --ranks away",
            ("--links", __file__): "needs --gossip",
        }.items():
            with self.subTest(arguments=arguments):
                given = {"--model-size": "100k", "--ranks": "8", "--select": "0s", "--fold": "2GB"}
                given.pop(arguments[0], None)
                done = run(*itertools.chain(*given.items()), *arguments)
                if arguments[0] == "--csv":
                    self.assertEqual(done.returncode, 1)
                else:
                    self.assertGreater(done.returncode, 1)
                    self.assertEqual(done.stdout, "")  # nothing was measured before
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
