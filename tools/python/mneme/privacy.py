"""Differential privacy of runs with [uploads] noise, accounted by the package dp-accounting.

    run = mneme.run("scenarios/small/uploads_dp_fedavg.toml")
    mneme.privacy.epsilon(run, delta=1e-5)
"""
import importlib
import math
import tomllib
from typing import Any

MISSING = ("mneme.privacy.epsilon needs the package dp-accounting: pip install dp-accounting, or pip install "
           "'mneme-fcl[privacy]'; metrics.jsonl and summary.json state epsilon at uploads.delta without it")


def epsilon(run: Any, delta: float | None = None, *, participations: int | None = None) -> float:
    """Epsilon of (epsilon, delta)-differential privacy of one client after the run's rounds so far.

    Neighboring populations differ in one client.
    noise = "server": each round is a Gaussian mechanism on a Poisson sample of rate cohort / clients (Mironov et al.
    2019), or of rate 1 if clients are not always enrolled and reachable.
    noise = "client": the server sees each upload; the sensitivity is 2 clip_norm, with one upload per round.
    noise = "tree" (Kairouz et al. 2021): an upload is part of at most floor(log2(rounds)) + 1 nodes of the tree. The
    k uploads of a client change the nodes of one level by at most k clip_norm in sum, so the noise multiplier
    is z / (k sqrt(levels)).

    run: a mneme.Run. delta: in (0, 1); default uploads.delta. participations: k, the largest number of rounds in which
    one client took part; tree noise only. Raises ValueError for a run without noise or a bad
    argument, and ImportError without dp-accounting.
    """
    settings = tomllib.loads(run.scenario())
    uploads = settings.get("uploads", {})
    multiplier = float(uploads.get("noise_multiplier", 0.0))
    if multiplier == 0.0:
        raise ValueError("the run has no differential privacy: uploads.noise_multiplier is 0")
    delta = uploads.get("delta", 1e-5) if delta is None else delta
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta = {delta}: expected a number between 0 and 1, well below 1 / clients")
    place = uploads.get("noise", "server")
    if (participations is not None) != (place == "tree"):
        raise ValueError("participations, the largest number of rounds of one client, is needed for uploads.noise = "
                         f"\"tree\" only; the run has \"{place}\"")
    if participations is not None and participations < 1:
        raise ValueError(f"participations = {participations}: expected at least 1")
    return _epsilon_of(_rounds_of(run), multiplier, place, _rate_of(settings), participations, delta)


def _rounds_of(run):
    """Number of rounds that have ended."""
    if "rounds" in run.summary:
        return int(run.summary["rounds"])
    return max((int(record["round"]) for record in run.records), default=0)


def _rate_of(settings):
    """Probability that a client takes part in a round."""
    cohort = settings.get("rounds", {}).get("cohort", 0)
    stays = settings.get("enrolment", {}).get("kind", "all") == "all"
    reachable = settings.get("devices", {}).get("availability", "always") == "always"
    return min(1.0, cohort / settings["clients"]["count"]) if cohort and stays and reachable else 1.0


def _epsilon_of(rounds, multiplier, place, rate, participations, delta):
    try:
        accounting = importlib.import_module("dp_accounting")
        rdp = importlib.import_module("dp_accounting.rdp")
    except ImportError:
        raise ImportError(MISSING) from None
    if rounds == 0:
        return 0.0
    if place == "client":
        multiplier, rate = multiplier / 2.0, 1.0
    if place == "tree":
        multiplier, rate = multiplier / (participations * math.sqrt(math.floor(math.log2(rounds)) + 1)), 1.0
        rounds = 1
    event = accounting.GaussianDpEvent(multiplier)
    if rate < 1.0:
        event = accounting.PoissonSampledDpEvent(rate, event)
    accountant = rdp.RdpAccountant()
    accountant.compose(event, rounds)
    return float(accountant.get_epsilon(delta))
