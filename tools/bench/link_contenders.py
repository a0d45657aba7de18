#!/usr/bin/env python3
"""Compares bench_link with gRPC and c10d, which send tensors in messages of equal size between two local processes.
    tools/bench/link_contenders.py [--seconds S] [--repeat N] [--bench-link PROGRAM]
        the table of bench_link, gRPC (plain and TLS) and c10d (Gloo) for messages of 1, 6 and 43 MiB
    tools/bench/link_contenders.py --slow-link
        the same for 43 MiB over 10 Mbit/s, in network namespaces (as root; takes 5 minutes)
    tools/bench/link_contenders.py grpc|grpc-tls|c10d --mib SIZE [--seconds S]
        one contender; prints one JSON object, as bench_link does
Needs Python with torch, and grpcio for gRPC. gRPC sends a message as a stream of 256 KiB pieces with keep-alive every
10 s and a timeout of 20 s. c10d's TLS does not encrypt (torch 2.11), so c10d is measured without TLS only.
"""
import argparse
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from free_port import free_port  # noqa: E402

SIZES_MIB = (1, 6, 43)
PIECE_BYTES = 256 << 10
LIVENESS = [("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]
STREAM = "/mneme.Link/Send"
SLOW_MIB, SLOW_SECONDS = 43, 12  # one or two messages, which take 36 s each
SLOW_LINK = ["unshare", "-n", "sh", "-c", "ip link set lo up mtu 1500; tc qdisc add dev lo root tbf rate 10mbit burst "
             "64kb latency 400ms; exec \"$@\"", "--"]


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def make_certificate(folder):
    """Makes a self-signed certificate for localhost. Returns (key, certificate)."""
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
                    "-out", certificate], check=True, capture_output=True)
    found = []
    for path in (key, certificate):
        with open(path, "rb") as file:
            found.append(file.read())
    return tuple(found)


# -- gRPC --------------------------------------------------------------------------------------------------------------
def serve_grpc(port, message_bytes, keys, ready, results):
    """Receives one stream of pieces, joins them into messages, and reports the number of bytes."""
    import grpc
    import torch

    def receive(pieces, _):
        began, read, parts, held = cpu_seconds(), 0, [], 0
        for piece in pieces:
            parts.append(piece)
            held += len(piece)
            if held == message_bytes:
                read += torch.frombuffer(bytearray().join(parts), dtype=torch.float32).numel() * 4
                parts, held = [], 0
        results.put((read, cpu_seconds() - began))
        return b""

    class Link(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_unary_rpc_method_handler(receive) if details.method == STREAM else None

    from concurrent import futures
    server = grpc.server(futures.ThreadPoolExecutor(1), options=LIVENESS)
    server.add_generic_rpc_handlers((Link(),))
    if keys:
        server.add_secure_port(f"localhost:{port}",
                               grpc.ssl_server_credentials([keys], root_certificates=keys[1], require_client_auth=True))
    else:
        server.add_insecure_port(f"localhost:{port}")
    server.start()
    ready.set()
    server.wait_for_termination()


def send_grpc(port, tensor, keys, seconds):
    """Sends messages for this time, and waits until the peer has read them."""
    import grpc
    until = time.monotonic() + seconds

    def pieces():
        content = memoryview(tensor.numpy()).cast("B")
        while True:
            for first in range(0, len(content), PIECE_BYTES):
                yield bytes(content[first:first + PIECE_BYTES])
            if time.monotonic() >= until:
                return
    place = f"localhost:{port}"
    trust = grpc.ssl_channel_credentials(keys[1], keys[0], keys[1]) if keys else None
    with (grpc.secure_channel(place, trust, LIVENESS) if keys else grpc.insecure_channel(place, LIVENESS)) as channel:
        channel.stream_unary(STREAM)(pieces(), wait_for_ready=True)


# -- c10d --------------------------------------------------------------------------------------------------------------
def join_group(port, rank):
    import torch.distributed
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    return torch.distributed


def receive_c10d(port, message_bytes, _, ready, results):
    import torch
    ready.set()
    group = join_group(port, 1)
    header, message, read = torch.zeros(1, dtype=torch.int64), torch.empty(message_bytes // 4), 0
    began = cpu_seconds()
    while True:
        group.recv(header, 0)
        if header.item() == 0:
            break
        group.recv(message, 0)
        read += header.item()
    results.put((read, cpu_seconds() - began))
    group.barrier()
    group.destroy_process_group()


def send_c10d(port, tensor, _, seconds):
    import torch
    group = join_group(port, 0)
    until, header = time.monotonic() + seconds, torch.tensor([tensor.numel() * 4])
    while True:
        group.send(header, 1)
        group.send(tensor, 1)
        if time.monotonic() >= until:
            break
    group.send(torch.zeros(1, dtype=torch.int64), 1)
    group.barrier()
    group.destroy_process_group()


# -- One measurement and the table -------------------------------------------------------------------------------------
def measure(name, mib, seconds):
    """Measurements of one contender. The CPU seconds exclude process start and imports."""
    import torch
    receive, send = (receive_c10d, send_c10d) if name == "c10d" else (serve_grpc, send_grpc)
    keys = None
    if name == "grpc-tls":
        with tempfile.TemporaryDirectory() as folder:
            keys = make_certificate(folder)
    if name != "c10d":
        __import__("grpc")  # before the measurement
    spawn = multiprocessing.get_context("spawn")
    port, ready, results = free_port(), spawn.Event(), spawn.Queue()
    peer = spawn.Process(target=receive, args=(port, mib << 20, keys, ready, results), daemon=True)
    peer.start()
    ready.wait(60)
    tensor = torch.zeros((mib << 20) // 4)
    began, cpu = time.monotonic(), cpu_seconds()
    send(port, tensor, keys, seconds)
    took, cpu = time.monotonic() - began, cpu_seconds() - cpu
    read, cpu_of_peer = results.get(timeout=60)
    peer.terminate()
    peer.join()
    return {"bytes_per_second": read / took, "cpu_seconds": cpu + cpu_of_peer, "wall_seconds": took}


def sample(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout)


def table(options):
    sizes, repeat, before, seconds = SIZES_MIB, options.repeat, [], options.seconds
    if options.slow_link:
        sizes, repeat, before, seconds = (SLOW_MIB,), 1, SLOW_LINK, SLOW_SECONDS
    itself = [sys.executable, os.path.abspath(__file__)]
    contenders = {"bench_link": [options.bench_link], "bench_link, TLS": [options.bench_link, "--tls"],
                  "gRPC": [*itself, "grpc"], "gRPC, TLS": [*itself, "grpc-tls"], "c10d (Gloo)": [*itself, "c10d"]}
    print("| | " + " | ".join(f"{mib} MiB: MB/s | CPU s/GB" for mib in sizes) + " |")
    print("|---" * (1 + 2 * len(sizes)) + "|")
    found = {name: {mib: [] for mib in sizes} for name in contenders}
    for _ in range(repeat):  # in turn, so that a busy machine disturbs all of them
        for mib in sizes:
            for name, command in contenders.items():
                found[name][mib].append(sample([*before, *command, "--mib", str(mib), "--seconds", str(seconds)]))
    for name, by_size in found.items():
        cells = []
        for samples in by_size.values():
            rate = statistics.median(one["bytes_per_second"] for one in samples) / 1e6
            cost = statistics.median(one["cpu_seconds"] * 1e9 / (one["bytes_per_second"] * one["wall_seconds"])
                                     for one in samples)
            cells.append(f"{rate:,.1f} | {cost:.2f}" if rate < 10 else f"{rate:,.0f} | {cost:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description="Contenders of bench_link.")
    parser.add_argument("contender", nargs="?", choices=("grpc", "grpc-tls", "c10d"))
    parser.add_argument("--mib", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--slow-link", action="store_true")
    parser.add_argument("--bench-link", default="build/release/bench_link")
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(measure(options.contender, options.mib, options.seconds)))
    else:
        table(options)


if __name__ == "__main__":
    main()
