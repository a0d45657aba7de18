#!/usr/bin/env python3
"""tools/fedscale_traces.py [--availability PICKLE] [--capacity PICKLE] --clients N -o DIR: FedScale's traces as CSV.

FedScale (Lai et al. 2022; fedscale/cloud/internal/client_metadata.py and client_manager.py at commit
7ec441c2afa99510535adebe155d89fa8bb2c637) reads two pickled dictionaries by client:

  availability  {'duration', 'inactive': [s], 'finish_time': s, 'active': [s], 'model'}: a client is online from
                active[i] to inactive[i], and its trace repeats after finish_time
  capacity      {'computation': ms per sample in inference, 'communication': kbit/s}: training takes three times as
                long, and uploads and downloads have the same rate

DIR/availability.csv has client,from,to,period for devices.availability_file with devices.trace_end = "repeat";
DIR/capacity.csv has client,rows_per_second,uplink_mbit,downlink_mbit for devices.capacity_file. Client i of N gets
entry i modulo the number of entries, as in FedScale. Pickles cannot run code: one that contains anything but
dictionaries, lists, strings and numbers is refused.
"""
import argparse
import os
import pickle
import sys

TRAINING_FACTOR = 3.0  # augmentation_factor of get_completion_time()
KBIT = 1024.0  # bits; FedScale's unit for the size of a model


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) in (("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")):
            return dict
        raise pickle.UnpicklingError(f"it refers to {module}.{name}; expected plain dictionaries, lists and numbers")


def entries_of(path):
    with open(path, "rb") as file:
        try:
            read = PlainUnpickler(file).load()
        except (pickle.UnpicklingError, EOFError, AttributeError, ValueError) as error:
            sys.exit(f"{path}: not a FedScale trace: {error}")
    if not isinstance(read, dict) or not read:
        sys.exit(f"{path}: expected a dictionary of clients, found {type(read).__name__}")
    return list(read.values())


def spans_of(entry, path):
    """Returns (from, to) of each time at which a client is online, ascending. Times that touch or overlap are
    merged."""
    active, inactive, end = entry["active"], entry["inactive"], entry["finish_time"]
    if len(active) != len(inactive):
        sys.exit(f"{path}: {len(active)} times in 'active' and {len(inactive)} in 'inactive'; expected as many")
    spans = []
    for begin, stop in sorted((begin, min(stop, end)) for begin, stop in zip(active, inactive)):
        if begin >= stop:
            continue
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], stop))
        else:
            spans.append((begin, stop))
    return spans


def availability_lines(path, clients):
    entries = entries_of(path)
    yield "client,from,to,period"
    for client in range(clients):
        entry = entries[client % len(entries)]
        for begin, stop in spans_of(entry, path):
            yield f"{client},{begin},{stop},{entry['finish_time']}"


def capacity_lines(path, clients):
    entries = entries_of(path)
    yield "client,rows_per_second,uplink_mbit,downlink_mbit"
    for client in range(clients):
        entry = entries[client % len(entries)]
        rate = 1000.0 / (TRAINING_FACTOR * float(entry["computation"]))
        mbit = float(entry["communication"]) * KBIT / 1e6
        yield f"{client},{rate:.9g},{mbit:.9g},{mbit:.9g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--availability", metavar="PICKLE")
    parser.add_argument("--capacity", metavar="PICKLE")
    parser.add_argument("--clients", type=int, required=True, metavar="N")
    parser.add_argument("-o", "--out", required=True, metavar="DIR")
    given = parser.parse_args()
    if not given.availability and not given.capacity:
        parser.error("nothing to convert; expected --availability, --capacity or both")
    os.makedirs(given.out, exist_ok=True)
    for name, path, lines in (("availability.csv", given.availability, availability_lines),
                              ("capacity.csv", given.capacity, capacity_lines)):
        if path:
            with open(os.path.join(given.out, name), "w", encoding="ascii") as file:
                file.writelines(line + "\n" for line in lines(path, given.clients))


if __name__ == "__main__":
    main()
