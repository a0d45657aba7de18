#!/usr/bin/env python3
"""Prints the tables of "Overhead" in docs/nodes.md. Takes five minutes; run it on an idle machine.
    tools/bench/node_table.py [--quick] [--repeat N] [--programs FOLDER] [--only start|runs|links]
start: the time from the start of the last of three ranks to the first evaluation, on the loopback.
runs: B1 and ResNet-18 in one process, over one node, and over one node whose connection is relayed by two processes
    that exchange bytes by TCP or by gRPC (256 KiB pieces in a stream, keep-alive 10 s, timeout 20 s). The ratio of the
    last two is the cost of gRPC for the same messages, since both pass the same relays.
links: messages of 1, 6 and 43 MiB by bench_link, gRPC and c10d (tools/bench/link_contenders.py).
Needs Python with torch and grpcio.
"""
import argparse
import contextlib
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import link_contenders  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
import workloads  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from free_port import free_port  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
START_SCENARIO = "scenarios/smoke/fedavg.toml"
WORKLOADS = {"B1": (workloads.B1.scenario, ()), "ResNet-18": workloads.NETS["resnet18"][:2]}  # scenario, overrides
ROUNDS, QUICK_ROUNDS = 4, 1
STREAM = "/mneme.Link/Relay"
PIECE_BYTES = link_contenders.PIECE_BYTES
LAUNCHER = re.compile("RANK|WORLD_SIZE|MASTER_|TORCHELASTIC|SLURM_|OMPI_|PMI|MPI_|JOB_COMPLETION|MNEME_SECRET")


def pieces_of(end):
    """Yields the bytes that arrive at a socket, until its peer closes it."""
    with contextlib.suppress(OSError):
        while piece := end.recv(PIECE_BYTES):
            yield piece


def forward(pieces, end):
    """Sends pieces to a socket, then ends its stream."""
    with contextlib.suppress(Exception):  # the peer has gone
        for piece in pieces:
            end.sendall(piece)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def connected(port):
    end = socket.create_connection(("127.0.0.1", port))
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def accept_all(port, carry):
    """Calls carry(socket) on a thread for each connection to this port."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            end, _ = listener.accept()
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=carry, args=(end,), daemon=True).start()


def relay_tcp(port, to):
    """Carries each connection to `port` to the port `to`."""
    def carry(near):
        try:
            far = connected(to)
        except OSError:  # the run does not listen yet
            return near.close()
        threading.Thread(target=forward, args=(pieces_of(far), near), daemon=True).start()
        return forward(pieces_of(near), far)
    accept_all(port, carry)


def relay_to_grpc(port, to):
    """Carries each connection to `port` to the gRPC server at the port `to`, as one stream in both directions."""
    import grpc
    channel = grpc.insecure_channel(f"localhost:{to}", link_contenders.LIVENESS)
    accept_all(port, lambda near: forward(
        channel.stream_stream(STREAM)(pieces_of(near), wait_for_ready=True), near))


def relay_from_grpc(port, to):
    """Serves gRPC at `port`, and carries each stream to the port `to`."""
    import grpc

    def carry(pieces, _):
        try:
            far = connected(to)
        except OSError:
            return
        threading.Thread(target=forward, args=(pieces, far), daemon=True).start()
        yield from pieces_of(far)

    class Relay(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_stream_rpc_method_handler(carry) if details.method == STREAM else None

    from concurrent import futures
    server = grpc.server(futures.ThreadPoolExecutor(8), options=link_contenders.LIVENESS)
    server.add_generic_rpc_handlers((Relay(),))
    server.add_insecure_port(f"localhost:{port}")
    server.start()
    server.wait_for_termination()


RELAYS = {"TCP": (relay_tcp, relay_tcp), "gRPC": (relay_to_grpc, relay_from_grpc)}


class RelayedBench(measure.Bench):
    """A Bench whose nodes may join through two relays."""

    def rate(self, name, options):
        """Runs a workload. Returns its client rounds per second and its digest."""
        scenario, overrides = WORKLOADS[name]
        ended = self.summary(scenario, self.choose(ROUNDS, QUICK_ROUNDS), 1, overrides, options)
        return ended["client_rounds"] / ended["wall_seconds"], ended["run_digest"]

    @contextlib.contextmanager
    def relayed(self, kind):
        """Yields the options of a run that waits for a node behind relays of this kind."""
        near, middle, run = free_port(), free_port(), free_port()
        spawn = multiprocessing.get_context("spawn")
        first, second = RELAYS[kind]
        relays = [spawn.Process(target=first, args=(near, middle), daemon=True),
                  spawn.Process(target=second, args=(middle, run), daemon=True)]
        for relay in relays:
            relay.start()
        try:
            with self.node(join=f"127.0.0.1:{near}", accept=f"127.0.0.1:{run}") as options:
                yield options
        finally:
            for relay in relays:
                relay.kill()
                relay.join()


def runs_table(bench):
    """Prints client rounds per second and the ratio to one process. All runs must have the same digest."""
    ways = {"one process": None, "one node": "", "relayed by TCP": "TCP", "relayed by gRPC": "gRPC"}
    found = {(name, way): [] for name in WORKLOADS for way in ways}
    for turn in range(bench.repeat):
        for name in WORKLOADS:
            for way, kind in ways.items():
                bench.say(f"runs: {turn + 1} of {bench.repeat}, {name}, {way}")
                with contextlib.ExitStack() as stack:
                    options = () if kind is None else stack.enter_context(bench.relayed(kind) if kind else bench.node())
                    found[name, way].append(bench.rate(name, options))
            digests = {digest for way in ways for _, digest in found[name, way]}
            if len(digests) != 1:
                raise measure.Failure(f"{name}: the ways give different digests")
    print("| client rounds per second | " + " | ".join(ways) + " |")
    print("|---" * (1 + len(ways)) + "|")
    for name in WORKLOADS:
        rates = {way: statistics.median(rate for rate, _ in found[name, way]) for way in ways}
        print(f"| {name} | " + " | ".join(f"{rate:.3g} ({rate / rates['one process']:.2f})" for rate in rates.values())
              + " |")


def first_evaluation_s(bench):
    """Seconds from the start of the last of three ranks, when the others wait for it, to the first evaluation."""
    around = {**{name: value for name, value in os.environ.items() if not LAUNCHER.search(name)}, "WORLD_SIZE": "3",
              "LOCAL_WORLD_SIZE": "3", "MASTER_PORT": str(free_port())}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        out = os.path.join(folder, "run")

        def start(rank, errors=subprocess.DEVNULL):
            process = stack.enter_context(subprocess.Popen(
                [os.path.join(bench.programs, "mneme"), "run", START_SCENARIO, "--distributed", "--quiet", "--threads",
                 "1", "--out", out], cwd=bench.root, env={**around, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stderr=errors, text=True))
            stack.callback(process.kill)
            return process
        first, second = start(0), start(1, subprocess.PIPE)
        if not any("has loaded" in line for line in second.stderr):
            raise measure.Failure("rank 1 has ended before the run")
        began = time.monotonic()
        start(2)
        while not os.path.exists(os.path.join(out, "metrics.jsonl")):
            if first.poll() is not None:
                raise measure.Failure("rank 0 has ended before the first evaluation")
            time.sleep(0.002)
        return time.monotonic() - began


def start_line(bench):
    bench.say("start")
    found = sorted(first_evaluation_s(bench) for _ in range(5))
    print(f"From the start of the last of three ranks to the first evaluation: {statistics.median(found):.2f} s "
          f"({found[0]:.2f} to {found[-1]:.2f}, {len(found)} samples)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a check in a minute, not a measurement")
    parser.add_argument("--repeat", type=int, help="samples of each (3; quick: 1)")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--only", choices=("start", "runs", "links"))
    given = parser.parse_args()
    repeat = given.repeat or (1 if given.quick else 3)
    bench = RelayedBench(ROOT, os.path.abspath(given.programs), given.quick, repeat,
                         lambda text: print(text, file=sys.stderr, flush=True))
    others = machine.Others()
    try:
        if given.only in (None, "start"):
            start_line(bench)
        if given.only in (None, "runs"):
            print()
            runs_table(bench)
        if given.only in (None, "links"):
            print()
            bench.say("links")
            link_contenders.table(argparse.Namespace(
                slow_link=False, repeat=repeat, seconds=0.2 if given.quick else 1.0,
                bench_link=os.path.join(bench.programs, "bench_link")))
    except measure.Failure as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(f"\nOther processes used {others.cores():.1f} of {os.cpu_count()} cores ({machine.processor()}).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
