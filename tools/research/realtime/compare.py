#!/usr/bin/env python3
"""compare.py DIR: compares the measurements of tools/research/realtime/run in DIR with mneme's predictions.

DIR contains measured.json (server.py) and mneme/events.csv (`mneme run --trace`). Prints a table in Markdown and writes
it to DIR/table.md, and numbers to DIR/errors.json.
"""
import csv
import itertools
import json
import os
import statistics
import sys

# A pair of clients is settled if this share of their common rounds has one order, with at least this number of rounds.
SETTLED_SHARE, SETTLED_ROUNDS = 0.9, 4


def predicted(folder):
    """Times in virtual seconds at which clients got requests and had replied, and rounds opened and closed."""
    answers, rounds, asked = [], {}, {}
    with open(os.path.join(folder, "mneme", "events.csv"), encoding="utf-8") as file:
        for line in csv.DictReader(file):
            at, event, number = float(line["virtual_s"]), line["event"], int(line["round"] or 0)
            if event == "dispatch":
                asked[line["client"]] = (at, number)
            elif event == "deliver":
                begun, of_round = asked[line["client"]]
                answers.append({"client": int(line["client"]), "round": of_round, "asked_s": begun, "answered_s": at})
            elif event == "open_round":
                rounds[number] = {"round": number, "opened_s": at}
            elif event == "close_round":
                rounds[number]["closed_s"] = at
    return {"answers": answers, "rounds": [rounds[number] for number in sorted(rounds) if "closed_s" in rounds[number]]}


def lengths(rounds):
    return [round["closed_s"] - round["opened_s"] for round in rounds]


def error(predicted_s, measured_s):
    return predicted_s / measured_s - 1.0


def nth_answers(answers):
    """Returns (client, n-th reply of the client) -> its duration."""
    count, times = {}, {}
    for answer in sorted(answers, key=lambda answer: answer["answered_s"]):
        number = count[answer["client"]] = count.get(answer["client"], 0) + 1
        times[answer["client"], number] = answer["answered_s"] - answer["asked_s"]
    return times


def orders(answers):
    """Order of the replies in each round."""
    found = {}
    for answer in sorted(answers, key=lambda answer: answer["answered_s"]):
        found.setdefault(answer["round"], []).append(answer["client"])
    return found


def pairs(real_orders, said_orders):
    """Returns (settled, equal among them, not settled, equal among them): pairs of clients that replied in one round of
    both.

    A pair is settled if the real federation itself repeats its order. No prediction can be right for other pairs.
    """
    met = {}
    for number, order in real_orders.items():
        said = said_orders.get(number, [])
        for pair in itertools.combinations(sorted(set(order) & set(said)), 2):
            met.setdefault(pair, []).append([there.index(pair[0]) < there.index(pair[1]) for there in (order, said)])
    counts = [0, 0, 0, 0]
    for times in met.values():
        first = sum(real for real, _ in times)
        settled = len(times) >= SETTLED_ROUNDS and max(first, len(times) - first) >= SETTLED_SHARE * len(times)
        place = 0 if settled else 2
        counts[place] += len(times)
        counts[place + 1] += sum(real == virtual for real, virtual in times)
    return tuple(counts)


def in_sequence(answers, said_answers):
    """Number of replies in the longest common subsequence of both runs, regardless of rounds."""
    real, virtual = ([answer["client"] for answer in sorted(of, key=lambda answer: answer["answered_s"])]
                     for of in (answers, said_answers))
    before = [0] * (len(virtual) + 1)
    for client in real:
        line = [0]
        for place, said in enumerate(virtual):
            line.append(before[place] + 1 if said == client else max(before[place + 1], line[place]))
        before = line
    return before[-1]


def compared(measured, said):
    real, virtual = lengths(measured["rounds"]), lengths(said["rounds"])
    both = min(len(real), len(virtual))
    real, virtual = real[:both], virtual[:both]
    per_round = [error(v, r) for v, r in zip(virtual, real) if r > 0.0]
    times, said_times = nth_answers(measured["answers"]), nth_answers(said["answers"])
    shared = sorted(times.keys() & said_times.keys())
    per_answer = [error(said_times[key], times[key]) for key in shared]
    real_orders, said_orders = orders(measured["answers"]), orders(said["answers"])
    same = [number for number in real_orders if real_orders[number] == said_orders.get(number)]
    settled, settled_equal, others, others_equal = pairs(real_orders, said_orders)
    sequences = [tuple(order) for order in real_orders.values()]
    return {"rounds": both, "measured_s": sum(real), "predicted_s": sum(virtual),
            "run_error": error(sum(virtual), sum(real)),
            "round_error_median": statistics.median(abs(value) for value in per_round),
            "round_errors": per_round,
            "answer_error_median": statistics.median(abs(value) for value in per_answer),
            "equal_orders": len(same), "orders": len(real_orders),
            "most_frequent_order": max(map(sequences.count, sequences)),
            "settled_pairs": settled, "settled_pairs_equal": settled_equal, "other_pairs": others,
            "other_pairs_equal": others_equal, "answers": len(measured["answers"]),
            "answers_in_sequence": in_sequence(measured["answers"], said["answers"]),
            "server_s": sum(round["server_s"] for round in measured["rounds"][:both])}


def table(errors, measured, said):
    lines = ["| rounds | measured | predicted | whole run | median round | median answer | equal orders "
             "| most frequent order | equal settled pairs | answers in sequence | server's own time |",
             "|---" * 11 + "|",
             f"| {errors['rounds']} | {errors['measured_s']:.2f} s | {errors['predicted_s']:.2f} s "
             f"| {100 * errors['run_error']:+.1f} % | {100 * errors['round_error_median']:.1f} % "
             f"| {100 * errors['answer_error_median']:.1f} % | {errors['equal_orders']} of {errors['orders']} "
             f"| {errors['most_frequent_order']} of {errors['orders']} "
             f"| {errors['settled_pairs_equal']} of {errors['settled_pairs']} "
             f"| {errors['answers_in_sequence']} of {errors['answers']} "
             f"| {errors['server_s']:.2f} s |", "", "| client | answers | measured mean | predicted mean | error |",
             "|---|---|---|---|---|"]
    times, said_times = nth_answers(measured["answers"]), nth_answers(said["answers"])
    for client in sorted({key[0] for key in times}):
        shared = [key for key in times if key[0] == client and key in said_times]
        if shared:
            real, virtual = (statistics.mean(of[key] for key in shared) for of in (times, said_times))
            lines.append(f"| {client} | {len(shared)} | {real:.2f} s | {virtual:.2f} s "
                         f"| {100 * error(virtual, real):+.1f} % |")
    return "\n".join(lines) + "\n"


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "measured.json"), encoding="utf-8") as file:
        measured = json.load(file)
    said = predicted(folder)
    errors = compared(measured, said)
    text = table(errors, measured, said)
    with open(os.path.join(folder, "errors.json"), "w", encoding="utf-8") as file:
        json.dump(errors, file, indent=1)
    with open(os.path.join(folder, "table.md"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
