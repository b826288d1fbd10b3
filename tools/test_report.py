#!/usr/bin/env python3
"""Tells how a run of ctest ended: how many tests passed and failed, and which were skipped, each with its reason.

usage: test_report.py JUNIT              one line, and one for each test that was skipped
       test_report.py --counts JUNIT     PASSED FAILED

A test may be skipped where the machine does not permit it; one that could not run otherwise, as when its program was not
built, has failed.
"""

import sys
import xml.etree.ElementTree as tree


def read(path):
    """Names of the tests that passed, of those that failed, and (name, reason) of those skipped."""
    passed, failed, skipped = [], [], []
    for case in tree.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        if case.get("status") == "run":
            passed.append(name)
        elif any(each.get("message", "").startswith("SKIP_") for each in case.iter("skipped")):
            skipped.append((name, reason(case.findtext("system-out", ""))))
        else:
            failed.append(name)
    return passed, failed, skipped


def reason(output):
    """What a test that was skipped says after `skipped: `."""
    told = [line.partition("skipped: ")[2] for line in output.splitlines() if line.startswith("skipped: ")]
    return told[-1] if told else "it does not say why"


def main(arguments):
    if not arguments or len(arguments) > 2 or len(arguments) == 2 and arguments[0] != "--counts":
        sys.exit(__doc__)
    passed, failed, skipped = read(arguments[-1])
    if arguments[0] == "--counts":
        print(len(passed), len(failed))
        return
    print(f"{len(passed)} tests passed, {len(failed)} failed, {len(skipped)} skipped")
    for name in failed:
        print(f"  failed: {name}")
    for name, why in skipped:
        print(f"  skipped: {name}: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
