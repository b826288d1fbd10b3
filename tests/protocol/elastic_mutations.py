"""usage: elastic_mutations.py [NAME...]

Breaks the protocols of elastic teams, one line at a time, in a copy of the library, and runs the test that must notice it.
Prints what the test says first; fails where a test passes. Takes some minutes: each mutation compiles a test.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
MACHINE = "protocol/detail/agreement_machine.hpp"
AGREEMENT, DELIVERY = "protocol/agreement_machine", "collective/delivery_machine"
# Name: file, line, what takes its place; the test.
MUTATIONS = {
    "the second phase is dropped": (MACHINE, "prepared_ = committed_ + 1;", "prepared_ = committed_ = committed_ + 1;", AGREEMENT),
    "any half is a quorum": (MACHINE, "if (2 * yes == members_.size() && members_.front().*says) return true;",
                             "if (2 * yes == members_.size()) return true;", AGREEMENT),
    "the coordinator is the lowest rank, though it is lost": (MACHINE, "if (each.seat.rank == self_ || !each.is_lost) return",
                                                              "return", AGREEMENT),
    "what belongs to an earlier view counts": (MACHINE, "if (got.epoch < view_.epoch) {", "if (false) {", AGREEMENT),
    "a later view is not heard of": (MACHINE, "got.epoch != view_.epoch;", "got.epoch < view_.epoch;", AGREEMENT),
    "a whole team does not hear of a later view": (MACHINE, "got.epoch != view_.epoch;", "got.epoch < view_.epoch;",
                                                   "protocol/elastic_promises"),
    "a decision counts that cannot be read": (MACHINE, "if (got.kind == what::decide && is_read) return",
                                              "if (got.kind == what::decide) return", AGREEMENT),
    "newcomers get a difference": (MACHINE, "comes_in(rank) ? whole_decision() : decision_message()", "decision_message()",
                                   "protocol/agreement_frame"),
    "a collective begins before a newcomer has arrived": ("protocol/elastic.hpp",
                                                          "if (compared_ != view().epoch) wait_for_newcomers();", "",
                                                          "protocol/elastic_promises"),
    "a life goes on beside the next": (MACHINE, "end(std::exchange(*before, {rank, life}));", "*before = {rank, life};", AGREEMENT),
    "what belongs to a later view counts": (MACHINE, "if (got.epoch > view_.epoch) return", "if (false) return", AGREEMENT),
    "a result counts in a later view": (MACHINE, "if (is_of_this_view && held >= value.step)", "if (held >= value.step)", AGREEMENT),
    "a taken seat is given away": (MACHINE, "return holder == nullptr || holder->has_ended;", "return true;", AGREEMENT),
    "a call that fails takes back what others may have": ("collective/detail/transaction.hpp",
                                                          "if (can_be_undone_ && is_encoded_) {", "if (false) {",
                                                          "protocol/elastic_campaign"),
    "a sum goes to another parent": ("collective/detail/delivery_machine.hpp",
                                     "if (to != self_) return to == source ? verdict::done : carry(note);",
                                     "if (to != self_) return note.kind == delivery_kind::data ? verdict::deliver : carry(note);",
                                     DELIVERY),
}


def noticed(name, folder):
    header, line, instead, test = MUTATIONS[name]
    include = folder / "include"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(ROOT / "include", include)
    text = (include / "rill" / header).read_text()
    if text.count(line) != 1:
        sys.exit(f"{name}: {header} has {text.count(line)} lines \"{line}\"")
    (include / "rill" / header).write_text(text.replace(line, instead))
    program = folder / "test"
    subprocess.run(["g++", "-std=c++20", "-O1", "-DRILL_CONTRACTS=RILL_CONTRACTS_DEBUG", "-DBOOST_CONTEXT_DYN_LINK", f"-I{include}",
                    ROOT / "tests/main.cpp", ROOT / f"tests/{test}.cpp", "-o", program, "-lboost_context", "-pthread"], check=True)
    environment = os.environ | {"RILL_AGREEMENT_RUNS": "5000"}
    try:
        done = subprocess.run([program], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    except subprocess.TimeoutExpired:
        print(f"{name}: {test} does not end", flush=True)
        return True
    said = [each.strip() for each in done.stdout.splitlines()
            if any(word in each for word in ("course ", "values:", "ERROR:", "terminate"))]
    print(f"{name}: {test} ends with {done.returncode}: {said[0][:160] if said else ''}", flush=True)
    return done.returncode != 0


def main():
    names = sys.argv[1:] or list(MUTATIONS)
    if not set(names) <= set(MUTATIONS):
        sys.exit(__doc__ + "\n" + "\n".join(MUTATIONS))
    with tempfile.TemporaryDirectory(prefix="rill-mutations") as folder:
        unnoticed = [name for name in names if not noticed(name, pathlib.Path(folder))]
    if unnoticed:
        sys.exit("not noticed: " + ", ".join(unnoticed))


if __name__ == "__main__":
    main()
