"""Arithmetic of the benchmarks: medians, ratios and verdicts, from measured samples. Starts no process."""
import statistics


def per_client_round(few, many):
    """Marginal cost of a client-round, from the summaries of a short and a long run of one scenario."""
    rounds = many["client_rounds"] - few["client_rounds"]
    cost = {key: (many[key] - few[key]) / rounds if rounds > 0 else 0.0 for key in ("cpu_seconds", "wall_seconds")}
    if min(cost.values()) <= 0:
        raise ValueError("the longer run of {} took no longer than the shorter: request more rounds"
                         .format(many.get("scenario", "a scenario")))
    return cost


def our_sample(few, many):
    """One measurement of mneme: rates per second, excluding and including the start of the run."""
    cost = per_client_round(few, many)
    return {"cpu_rate": 1 / cost["cpu_seconds"], "wall_rate": 1 / cost["wall_seconds"],
            "whole_cpu_rate": many["client_rounds"] / many["cpu_seconds"],
            "start_seconds": max(0.0, few["cpu_seconds"] - few["client_rounds"] * cost["cpu_seconds"]),
            "peak_rss_bytes": many["peak_rss_bytes"], "start_rss_bytes": few["peak_rss_bytes"],
            "upload_bytes": many["upload_bytes"] / many["client_rounds"], "run_digest": many["run_digest"]}


def pairs_text(pairs, first, second):
    """Formats samples of two programs that were measured in turns: both medians, and the ratio of the second to the
    first.
    """
    rates = [statistics.median(pair[i]["cpu_rate"] for pair in pairs) for i in (0, 1)]
    ratios = sorted(pair[1]["cpu_rate"] / pair[0]["cpu_rate"] for pair in pairs)
    return (f"{first} {rates[0]:,.1f}, {second} {rates[1]:,.1f} client-rounds per second of CPU: "
            f"{statistics.median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f})")


def observers_sample(looking, alone):
    """Cost of an observation: rounds with observers minus rounds without. Each argument is a pair: summaries of a short
    and a long run."""
    looks = looking[1]["looks"] - looking[0]["looks"]
    cost = {}
    for key in ("cpu_seconds", "wall_seconds"):
        whole, others = (many[key] - few[key] for few, many in (looking, alone))
        if whole <= others:
            raise ValueError("rounds with observers took no longer than those without: request more rounds")
        cost[key] = (whole - others) / looks
    return {"cpu_rate": 1 / cost["cpu_seconds"], "wall_rate": 1 / cost["wall_seconds"],
            "peak_rss_bytes": looking[1]["peak_rss_bytes"], "run_digest": looking[1]["run_digest"]}


def loop_sample(printed):
    """One measurement of a loop, from the output of bench_loops."""
    return {"cpu_rate": printed["client_rounds"] / printed["cpu_seconds"],
            "wall_rate": printed["client_rounds"] / printed["wall_seconds"],
            "peak_rss_bytes": printed["peak_rss_bytes"]}


def program_sample(printed):
    """One measurement of stacked programs, from the output of bench_programs."""
    return {"cpu_rate": printed["steps"] / printed["cpu_seconds"],
            "wall_rate": printed["steps"] / printed["wall_seconds"],
            "peak_rss_bytes": printed["peak_rss_bytes"], "run_digest": printed["digest"]}


def median(samples, key):
    return statistics.median(sample[key] for sample in samples)


def contender(label, samples, width=1):
    """Entry of the table: medians of the samples, and the samples."""
    line = {"label": label, "width": width, "samples": samples}
    line.update({key: median(samples, key) for key in samples[0] if isinstance(samples[0][key], (int, float))})
    return line


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratio(ours, theirs, key="cpu_rate"):
    """Median ratio of mneme's rate to the other rate, over pairs of samples that were measured in turns."""
    return spread([a[key] / b[key] for a, b in zip(ours, theirs)])


def limit_samples(limits, flops, memory_bytes):
    """Client-rounds per second that the two limits of the machine allow, one sample per measurement."""
    return {"gemm": [{"cpu_rate": one["flops_per_second"] / flops} for one in limits],
            "memory": [{"cpu_rate": one["bytes_per_second"] / memory_bytes} for one in limits]}


def at_least(label, measured, required, goal=None):
    return {"label": label, "measured": measured, "relation": ">=", "required": required,
            "goal": required if goal is None else goal, "met": measured["median"] >= required}


def at_most(label, measured, required, goal=None):
    return {"label": label, "measured": measured, "relation": "<=", "required": required,
            "goal": required if goal is None else goal, "met": measured["median"] <= required}


def same_digest(samples, what):
    """Returns the common digest of all samples. Raises if there are several, because equal work must give equal
    results.
    """
    found = sorted({sample["run_digest"] for sample in samples})
    if len(found) != 1:
        raise ValueError(f"{what}: equal runs gave unequal digests: {', '.join(found)}")
    return found[0]


def agree(norms, tolerance):
    """Raises if the loops did not have equal weights after their first round, because they should do the same work."""
    first = next(iter(norms.values()))
    if not all(abs(norm - first) <= tolerance * first for norm in norms.values()):  # also true for NaN
        raise ValueError(f"the loops disagree after one round: norms of the weights {norms}")


def same_model(summary, parameters):
    """Raises if a run's uploads do not have as many weights as the loops' models."""
    found = summary["upload_bytes"] / 4 / summary["client_rounds"]
    if found != parameters:
        raise ValueError(f"{summary['scenario']} uploads {found:,.0f} weights a client-round, the loops {parameters:,}")


def training_figures(work, samples, flops, memory_bytes):
    """Result of B1, B2 or B2c. samples: {"ours": [...], "limits": [...], "loops": [(Loop, width, [...])]}"""
    ours = samples["ours"]
    limits = limit_samples(samples["limits"], flops, memory_bytes)
    lines = [contender("mneme", ours)]
    ratios = {}
    for loop, width, measured in samples["loops"]:
        lines.append(dict(contender(loop.label, measured, width), ratio=ratio(ours, measured)))
        ratios[loop.name] = lines[-1]["ratio"]
    fastest = max((line for line, (loop, _, _) in zip(lines[1:], samples["loops"]) if loop.stacked),
                  key=lambda line: line["cpu_rate"])
    measured = {"bare": (f"to the {lines[1]['label']}", lines[1]["ratio"]),
                "stacked": (f"to the fastest stacked loop ({fastest['label']})", fastest["ratio"]),
                "gemm": ("to the limit of products", ratio(ours, limits["gemm"]))}
    return {"name": work.name, "title": work.title, "rate": "cpu_rate", "contenders": lines,
            "run_digest": same_digest(ours, work.name), "flops": flops, "memory_bytes": memory_bytes,
            "limits": {kind: {"cpu_rate": median(found, "cpu_rate"), "ratio": ratio(ours, found)}
                       for kind, found in limits.items()},
            "verdicts": [at_least(*measured[bar.against], bar.required, bar.goal) for bar in work.bars]}


def no_op_figures(sizes, wanted):
    """Result of B3. sizes: [(clients, samples)], ascending; wanted: the module workloads, which has the targets"""
    (few_clients, few), (many_clients, many) = sizes[0], sizes[-1]
    microseconds = spread([1e6 / sample["cpu_rate"] for sample in few])
    idle = spread([(b["start_rss_bytes"] - a["start_rss_bytes"]) / (many_clients - few_clients)
                   for a, b in zip(few, many)])
    enrolment = spread([b["start_seconds"] - a["start_seconds"] for a, b in zip(few, many)])
    return {"name": "b3", "title": wanted.NO_OP_TITLE, "rate": "cpu_rate",
            "contenders": [contender(f"mneme, {clients:,} clients", samples) for clients, samples in sizes],
            "run_digest": {f"{clients}": same_digest(samples, f"b3, {clients} clients") for clients, samples in sizes},
            "verdicts": [
                at_most(f"us of CPU a client-round at {few_clients:,}", microseconds, wanted.NO_OP_MICROSECONDS,
                        wanted.NO_OP_MICROSECONDS_GOAL),
                at_most(f"cost at {many_clients:,} to cost at {few_clients:,}", ratio(few, many), wanted.NO_OP_GROWTH),
                at_most("bytes for a client never dispatched", idle, wanted.IDLE_BYTES),
                at_most(f"s of CPU to enrol {many_clients:,}", enrolment, wanted.ENROLMENT_SECONDS)]}


def no_wait_figures(sizes, wanted):
    """Result of B5. sizes: [(clients, samples)], ascending; wanted: the module workloads, which has the targets"""
    (few_clients, few), (many_clients, many) = sizes[0], sizes[-1]
    return {"name": "b5", "title": wanted.NO_WAIT_TITLE, "rate": "cpu_rate",
            "contenders": [contender(f"mneme, {clients:,} clients", samples) for clients, samples in sizes],
            "run_digest": {f"{clients}": same_digest(samples, f"b5, {clients} clients") for clients, samples in sizes},
            "verdicts": [
                at_least(f"client-tasks per second of CPU at {few_clients:,}",
                         spread([sample["cpu_rate"] for sample in few]), wanted.NO_WAIT_RATE),
                at_most(f"cost at {many_clients:,} to cost at {few_clients:,}", ratio(few, many),
                        wanted.NO_WAIT_GROWTH)]}


def observers_figures(samples, wanted):
    """Result of B12. samples: pairs of runs with and without observers; wanted: the module workloads, which has the
    targets"""
    microseconds = spread([1e6 / sample["cpu_rate"] for sample in samples])
    return {"name": "b12", "title": wanted.OBSERVERS_TITLE, "rate": "cpu_rate", "unit": "looks",
            "contenders": [contender("mneme", samples)], "run_digest": same_digest(samples, "b12"),
            "verdicts": [at_most("us of CPU per observation", microseconds, wanted.OBSERVER_MICROSECONDS)]}


def buffered_figures(waiting, flowing, wanted):
    """Result of B6. waiting: samples of B1; flowing: samples of B6, measured in turns with B1"""
    return {"name": "b6", "title": wanted.BUFFERED_TITLE, "rate": "cpu_rate",
            "contenders": [contender("mneme, B1: rounds that wait", waiting),
                           contender("mneme, B6: FedBuff", flowing)],
            "run_digest": {"b1": same_digest(waiting, "b6, b1"), "b6": same_digest(flowing, "b6")},
            "verdicts": [at_least("to B1", ratio(flowing, waiting), wanted.BUFFERED_SHARE)]}


def device_figures(work, samples, device):
    """Result of B1, B2 or B2c on a device. samples: {"ours" | "loop": {device | "cpu": samples}}"""
    ours, loop = samples["ours"], samples["loop"]
    lines = [contender(f"{label} on {place}", found[place])
             for label, found in (("mneme", ours), (work.loops[0].label, loop)) for place in (device, "cpu")]
    there = ours[device]
    return {"name": work.name, "title": work.title, "rate": "wall_rate", "contenders": lines,
            "run_digest": {place: same_digest(found, f"{work.name} on {place}") for place, found in ours.items()},
            "verdicts": [at_least(f"to the {work.loops[0].label} on {device}", ratio(there, loop[device], "wall_rate"),
                                  1.0, 10.0),
                         at_least("to ours on the CPU", ratio(there, ours["cpu"], "wall_rate"), 1.0)]}


def cores_figures(measured, wanted):
    """Result of B7. measured: {workload: {threads: samples}}"""
    lines, verdicts, digests = [], [], {}
    for name, by_threads in measured.items():
        digests[name] = same_digest([one for samples in by_threads.values() for one in samples], f"b7, {name}")
        for threads, samples in by_threads.items():
            lines.append(contender(f"{name}, {threads} thread{'s' if threads > 1 else ''}", samples))
        gain = ratio(by_threads[2], by_threads[1], "wall_rate")
        verdicts.append(at_least(f"{name}: two threads to one, same digest", gain, wanted.CORES_WANTED[name]))
    return {"name": "b7", "title": wanted.CORES_TITLE, "rate": "wall_rate", "contenders": lines, "run_digest": digests,
            "verdicts": verdicts}


def low_rank_figures(by_width, wanted):
    """Result of B15. by_width: {number of clients in a fused group: samples}"""
    single, fused = by_width.values()
    return {"name": "b15", "title": wanted.LOW_RANK_TITLE, "rate": "cpu_rate",
            "contenders": [contender("mneme, one client after another", single),
                           contender("mneme, 16 clients in a group", fused)],
            "run_digest": same_digest([*single, *fused], "b15"),
            "verdicts": [at_least("16 clients in a group to one after another", ratio(fused, single),
                                  wanted.LOW_RANK_SHARE)]}


def portable_figures(measured, wanted):
    """Result of B13. measured: {workload: {"machine" | "AVX2" | "portable": samples}}"""
    lines, verdicts, digests = [], [], {}
    for name, by_arithmetic in measured.items():
        digests[name] = same_digest(by_arithmetic["portable"], f"b13, {name}")
        for arithmetic, samples in by_arithmetic.items():
            lines.append(contender(f"{name}, {arithmetic}", samples))
        for other, share in (("machine", wanted.PORTABLE_SHARE), ("AVX2", wanted.PORTABLE_SHARE_OF_AVX2)):
            gain = ratio(by_arithmetic["portable"], by_arithmetic[other], "cpu_rate")
            verdicts.append(at_least(f"{name}: portable to {other}", gain, share))
    return {"name": "b13", "title": wanted.PORTABLE_TITLE, "rate": "cpu_rate", "contenders": lines,
            "run_digest": digests, "verdicts": verdicts}


def link_samples(links, bytes_each):
    """Number of client-rounds per second whose uploads a link can carry."""
    return [{"cpu_rate": link["bytes_per_second"] * link["wall_seconds"] / link["cpu_seconds"] / bytes_each,
             "wall_rate": link["bytes_per_second"] / bytes_each, "peak_rss_bytes": link["peak_rss_bytes"]}
            for link in links]


def nodes_figures(measured, links, wanted):
    """Result of B11. measured: {workload: {"alone" | "node": samples}}; links: samples of "plain" and "TLS" links"""
    lines, verdicts, of_links, digests = [], [], [], {}
    for name, samples in measured.items():
        digests[name] = same_digest(samples["alone"] + samples["node"], f"b11, {name}")
        upload_bytes = samples["alone"][0]["upload_bytes"]
        carried = {kind: link_samples(found, upload_bytes) for kind, found in links[name].items()}
        lines += [contender(f"{name}, one process", samples["alone"]), contender(f"{name}, one node", samples["node"])]
        lines += [contender(f"{name}, its uploads alone, {kind}", found) for kind, found in carried.items()]
        allowed = [{"wall_rate": min(a["wall_rate"], b["wall_rate"])}
                   for a, b in zip(samples["alone"], carried["plain"])]
        verdicts.append(at_least(f"{name}: one node to what one process and the link allow, same digest",
                                 ratio(samples["node"], allowed, "wall_rate"), wanted.NODES_SHARE))
        mib = wanted.message_mib(upload_bytes)
        of_links += [at_least(f"bytes of tensors a second in messages of {mib} MiB, {kind}",
                              spread([link["bytes_per_second"] for link in found]), wanted.LINK_BYTES)
                     for kind, found in links[name].items()]
    return {"name": "b11", "title": wanted.NODES_TITLE, "rate": "wall_rate", "contenders": lines, "run_digest": digests,
            "verdicts": verdicts + of_links}


def programs_figures(measured, wanted):
    """Result of B9. measured: {program: {width: samples}}. Raises if results depend on the width."""
    lines, verdicts, digests = [], [], {}
    for name, by_width in measured.items():
        digests[name] = same_digest([one for samples in by_width.values() for one in samples], f"b9, {name}")
        widths = sorted(by_width)
        lines += [contender(name, by_width[width], width) for width in widths]
        gain = ratio(by_width[widths[-1]], by_width[widths[0]])
        verdicts.append(at_least(f"{name}: {widths[-1]} stacked to one after another, same bits", gain,
                                 wanted.PROGRAMS_GAIN))
    return {"name": "b9", "title": wanted.PROGRAMS_TITLE, "rate": "cpu_rate", "unit": "program-steps",
            "contenders": lines, "run_digest": digests, "verdicts": verdicts}
