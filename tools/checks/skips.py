"""Prints which tests of a ctest JUnit report were skipped, and why: skips.py REPORT"""
import re
import sys
import xml.etree.ElementTree as xml


def reason(case):
    """What the test said about its skip, in one line."""
    said = case.findtext("system-out") or ""
    catch = re.search(r"SKIPPED:\s*explicitly with message:\s*\n?\s*(.+)", said)
    plain = re.search(r"(?im)^\s*skipped:\s*(.+)$", said)
    found = catch or plain
    if found:
        return found.group(1).strip()
    skipped = case.find("skipped")
    return skipped.get("message", "no reason given") if skipped is not None else "no reason given"


def main():
    cases = [case for case in xml.parse(sys.argv[1]).iter("testcase") if case.find("skipped") is not None]
    if not cases:
        return
    print(f"skipped tests: {len(cases)}")
    for case in sorted(cases, key=lambda one: one.get("name")):
        print(f"  {case.get('name')}: {reason(case)}")


if __name__ == "__main__":
    main()
