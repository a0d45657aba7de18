"""Prints the skipped tests of a ctest JUnit report with the reasons: skips.py REPORT

A ctest of Catch2 contains the test cases of several files. It can pass although some of them are skipped.
"""
import re
import sys
import xml.etree.ElementTree as xml

CASE = re.compile(r"^-{60,}\n(?P<name>(?:(?!-{60}|\.{60}).*\n)+?)-{60,}\n.*\n\.{60,}\n\n"
                  r"\S+: SKIPPED:\s*explicitly with message:\s*(?P<reason>.+)", re.M)


def skips(test):
    """Returns ["skipped case: reason"] for one ctest."""
    name, said = test.get("name"), test.findtext("system-out") or ""
    cases = [f"{name}: {' '.join(case['name'].split())}: {case['reason'].strip()}" for case in CASE.finditer(said)]
    skipped = test.find("skipped")
    if cases or skipped is None:
        return cases
    plain = re.search(r"(?im)^\s*skipped:\s*(.+)$", said)
    return [f"{name}: {plain.group(1).strip() if plain else skipped.get('message', 'no reason given')}"]


def main():
    found = sorted(skip for test in xml.parse(sys.argv[1]).iter("testcase") for skip in skips(test))
    if not found:
        return
    print(f"skipped tests: {len(found)}")
    for skip in found:
        print(f"  {skip}")


if __name__ == "__main__":
    main()
