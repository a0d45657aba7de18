"""Search that runs random scenarios in several ways. A failing scenario is shrunk and saved with its seed."""
import os
import shutil
import time

from scenario_draws import GIVEN, drawn_scenario
from started_programs import ADDRESSES_BYTES, StartedPrograms
from ways_to_run import LIMIT_S, difference, drawn_ways

REPAIRS_MAX = 16
SHRINKS_MAX, SHRINKING_MAX_S = 60, 300  # limits of reruns and of seconds
KEPT = GIVEN | {"strategy.name", "data.name", "data.shape", "model.name"}


def kind_of(fault):
    """Kind of a fault. Shrinking a scenario must not change it."""
    for kind in ("did not end", "a node ended", "ended with code", "takes what a run refuses", "differs from",
                 "validate"):
        if kind in fault:
            return kind
    return fault


def may_have_nodes(scenario):
    """True if nodes can run the scenario: they read no local folders, receive only single files, and use machine
    arithmetic."""
    several = any(key == "file" and value.endswith('.npy"') for _, key, value in scenario.settings)
    return not several and not ({("data", "name", '"folder"'), ("worker", "arithmetic", '"portable"')} &
                                set(scenario.settings))


class ScenarioSearch:
    def __init__(self, program, tables, folder):
        self.tables, self.folder = tables, folder
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES)
        self.counts = {"drawn": 0, "refused": 0, "done": 0, "failed alike": 0, "found": 0, "killed": 0, "with nodes": 0}
        os.makedirs(folder, exist_ok=True)

    def try_seed(self, seed):
        """Runs the scenario of this seed. Returns a description of the fault, or None."""
        self.counts["drawn"] += 1
        scenario, fault = self._accepted(drawn_scenario(self.tables, seed), seed)
        ways = drawn_ways(seed)
        if scenario and not fault:
            fault = self._fault_of(scenario, ways, seed)
        if scenario is None and not fault:
            self.counts["refused"] += 1
        report = None
        if fault:
            self.counts["found"] += 1
            report = self._report(seed, scenario, ways, fault)
        else:
            shutil.rmtree(os.path.join(self.folder, f"beside-{seed}"), ignore_errors=True)
        shutil.rmtree(os.path.join(self.folder, f"{seed}.run"), ignore_errors=True)
        return report

    def _write(self, scenario, seed):
        for name, content in scenario.files.items():
            path = os.path.join(self.folder, name)
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(content)
        path = os.path.join(self.folder, f"{seed}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(scenario.text())
        return path

    def _accepted(self, scenario, seed):
        """Drops lines that validation rejects. Returns (scenario, None); (None, None) if no line can be dropped;
        (scenario, fault) if validation itself fails."""
        for _ in range(REPAIRS_MAX):
            said = self.programs.run(["validate", self._write(scenario, seed)])
            if said.code == 0:
                return scenario, None
            if said.code not in (1, 2) or "error: " not in said.errors:
                return scenario, f"validate: code {said.code}: {said.errors[-500:]}"
            mended = scenario.without_refused(said.errors)
            if not mended:
                return None, None
            scenario = mended
        return None, None

    def _fault_of(self, scenario, ways, seed, counting=True):
        path, first = self._write(scenario, seed), None
        for way in ways:
            if way.nodes and not may_have_nodes(scenario):
                continue
            ended = way.run(self.programs, path, os.path.join(self.folder, f"{seed}.run"),
                            first.seconds if first else 1.0)
            if fault := ended.fault():
                return f"{way}: {fault}"
            if first is None:
                first = ended
                if first.code == 2:
                    return f"{way}: validate takes what a run refuses: {ended.errors[-500:]}"
                continue
            if differing := difference(first, ended):
                values = "; ".join(f"{name}: {first.facts.get(name)} and {ended.facts.get(name)}"
                                   for name in differing[:4])
                return f"{way} differs from {ways[0]}: {values}"
        if counting:
            self.counts["done" if first.code == 0 else "failed alike"] += 1
            self.counts["killed"] += sum(way.kills > 0 for way in ways)
            self.counts["with nodes"] += sum(bool(way.nodes) for way in ways if may_have_nodes(scenario))
            if first.code != 0:
                self._note_failure(seed, first.errors)
        return None

    def _note_failure(self, seed, errors):
        """Logs the failure of a run that passed validation, because validation might have rejected it."""
        with open(os.path.join(self.folder, "failures.txt"), "a", encoding="utf-8") as file:
            file.write(f"seed {seed}: {errors[-600:].strip()}\n")

    def _report(self, seed, scenario, ways, fault):
        small = self._shrunk(scenario, ways, seed, kind_of(fault))
        path = os.path.join(self.folder, f"found-{seed}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"# seed {seed}: {fault}\n".replace("\n", " ").rstrip() + "\n" + small.text())
        return f"seed {seed}: {fault}\n  shrunk to {path}"

    def _shrunk(self, scenario, ways, seed, kind):
        """Removes settings while the scenario still fails in the same way. Keeps settings that make it small."""
        tries, step, until = 0, max(len(scenario.settings) // 4, 1), time.monotonic() + SHRINKING_MAX_S
        while tries < SHRINKS_MAX and time.monotonic() < until:
            smaller = None
            for at in range(0, len(scenario.settings), step):
                dropped = [setting for setting in scenario.settings[at:at + step]
                           if ".".join(setting[:2]).lstrip(".") not in KEPT]
                tried = scenario.without(dropped)
                tries += 1
                if dropped and self._still_fails(tried, ways, seed, kind):
                    smaller = tried
                    break
                if tries >= SHRINKS_MAX or time.monotonic() > until:
                    break
            if smaller:
                scenario = smaller
            elif step == 1:
                break
            else:
                step = max(step // 2, 1)
        return scenario

    def _still_fails(self, scenario, ways, seed, kind):
        said = self.programs.run(["validate", self._write(scenario, seed)])
        if said.code in (1, 2) and "error: " in said.errors:
            return False
        fault = self._fault_of(scenario, ways, seed, counting=False)
        return fault is not None and kind_of(fault) == kind

    def close(self):
        self.programs.close()
