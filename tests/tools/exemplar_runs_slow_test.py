"""All methods with exemplars, generated images, prompts or low-rank updates: neither two nodes nor a kill changes
results."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from exemplar_runs_test import ExemplarRuns  # noqa: E402
from program import run_tests  # noqa: E402

ExemplarRuns.methods = ("icarl", "bic", "ss-il", "podnet", "afc", "dde", "geodl", "dytox", "target", "fed-codap",
                        "fed-dualp", "fed-cprompt", "pilora", "stsa-pilora", "stsa-cprompt")

if __name__ == "__main__":
    run_tests()
