"""Clusters that start the nodes of a run: Ray, Dask and submitit. The libraries are imported when a run starts.

    mneme.run("X.toml", cluster=mneme.cluster.Ray(nodes=4, gpus_per_node=1))
"""
from __future__ import annotations

import errno
import os
import random
import secrets
import socket
import subprocess
import sys
import time
from typing import Any

from mneme._program import PROGRAM, parted

__all__ = ["Dask", "NodesEnded", "Ray", "Submitit"]

CHECK_INTERVAL_S = 1.0
END_OF_RUN_S = 10.0  # nodes end shortly before the run whose end they have received


class NodesEnded(RuntimeError):
    """Raised if all nodes of a cluster have ended before the run."""


def compute(address: str, secret: str, threads: int, options: tuple[str, ...]) -> int:
    """Runs on a machine of the cluster and computes for the run at `address` until the run is over. Returns the exit
    code."""
    has_methods = bool(parted(options)[0])  # otherwise the node needs no Python, which takes seconds to import torch
    command = [sys.executable, "-m", "mneme"] if has_methods else [PROGRAM]
    command += ["node", "--join", address, *options]
    if threads:
        command += ["--threads", str(threads)]
    with subprocess.Popen(command, env={**os.environ, "MNEME_SECRET": secret}) as node:
        try:
            return node.wait()
        except BaseException:
            node.terminate()  # makes the node return its shards
            raise


def free_address(host: str) -> str:
    """Returns HOST:PORT with a free port of `host` at which a run can listen; an IPv6 address is in brackets."""
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(15000, 32000)  # outgoing connections have higher ports
        try:
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def wait_until_done(tasks: list[Any], wait_s: float) -> None:
    """Waits at most `wait_s` seconds until the tasks end. Nodes end with the run."""
    until = time.monotonic() + wait_s
    while not all(task.done() for task in tasks) and time.monotonic() < until:
        time.sleep(0.1)


class Cluster:
    """Base class. Starts `nodes` processes of `mneme node` with `threads_per_node` workers each (0: one per core).
    options: additional options of `mneme node`, such as ("--python-code", "methods.py")."""

    def __init__(self, nodes: int, threads_per_node: int = 0, options: tuple[str, ...] = ()):
        if nodes < 1:
            raise ValueError(f"nodes: expected at least 1, found {nodes}")
        self.nodes, self.threads, self.options = nodes, threads_per_node, tuple(options)
        self.secret = secrets.token_hex(32)
        self.tasks: list[Any] = []  # one per node that has started
        self.next_check = 0.0
        self.ended_at: float | None = None  # time at which no node was left

    def host(self) -> str:
        """Address at which the other machines reach this one: IPv4 if it has one."""
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        return str(min(found, key=lambda one: one[0] != socket.AF_INET)[4][0])

    def __enter__(self) -> tuple[str, str]:
        """Starts the nodes. Returns address and secret of the run to join."""
        address = free_address(self.host())
        self.ended_at = None
        try:
            self.start(address)
        except BaseException:
            self.stop(wait_s=0)  # no run will end these nodes
            raise
        return address, self.secret

    def __exit__(self, *_: Any) -> None:
        self.stop(wait_s=5)

    def check(self) -> None:
        """Raises NodesEnded once no node has been left for 10 s. Call it repeatedly while the run lasts."""
        now = time.monotonic()
        if now < self.next_check or not self.tasks:
            return
        self.next_check = now + CHECK_INTERVAL_S
        if not all(map(self.is_done, self.tasks)):
            self.ended_at = None
            return
        self.ended_at = self.ended_at or now
        if now - self.ended_at >= END_OF_RUN_S:
            ends = ", ".join(map(self.end_of, self.tasks))
            raise NodesEnded(f"all {len(self.tasks)} nodes of the cluster have ended before the run: {ends}; expected "
                             "nodes that compute until the run is over (their output has the reason)")

    def end_of(self, task: Any) -> str:
        """Describes the end of a node."""
        try:
            return f"exit code {self.result(task)}"
        except Exception as error:  # errors of any library
            return f"{type(error).__name__}: {error}".splitlines()[0]

    def is_done(self, task: Any) -> bool:
        return bool(task.done())

    def result(self, task: Any) -> Any:
        """Returns the exit code of a node that has ended. Raises the error with which its task has ended."""
        return task.result()

    def start(self, address: str) -> None:
        raise NotImplementedError

    def stop(self, wait_s: float) -> None:
        """Stops the nodes, also if only some have started. wait_s: seconds that the nodes may take to end with the
        run."""
        raise NotImplementedError


class Ray(Cluster):
    """Starts one actor per node in a placement group with the strategy SPREAD. Ray restarts lost actors, which join
    again."""

    def __init__(self, nodes: int, *, gpus_per_node: float = 0, threads_per_node: int = 1,
                 options: tuple[str, ...] = ()):
        super().__init__(nodes, threads_per_node, options)
        self.gpus = gpus_per_node
        self.group: Any = None
        self.actors: list[Any] = []

    def host(self) -> str:
        import ray
        if not ray.is_initialized():
            ray.init()
        return str(ray.util.get_node_ip_address())

    def start(self, address: str) -> None:
        import ray
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
        bundle = {"CPU": max(self.threads, 1), **({"GPU": self.gpus} if self.gpus else {})}
        self.group = placement_group([bundle] * self.nodes, strategy="SPREAD")
        ray.get(self.group.ready())

        class NodeActor:
            def compute(self, *arguments: Any) -> int:
                return compute(*arguments)
        actor = ray.remote(max_restarts=-1, max_task_retries=-1, num_cpus=bundle["CPU"], num_gpus=self.gpus)(NodeActor)
        for i in range(self.nodes):
            place = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=i)
            self.actors.append(actor.options(scheduling_strategy=place).remote())
            self.tasks.append(self.actors[-1].compute.remote(address, self.secret, self.threads, self.options))

    def is_done(self, task: Any) -> bool:
        import ray
        return bool(ray.wait([task], timeout=0)[0])

    def result(self, task: Any) -> Any:
        import ray
        return ray.get(task)

    def stop(self, wait_s: float) -> None:
        import ray
        from ray.util.placement_group import remove_placement_group
        if self.tasks:
            ray.wait(self.tasks, num_returns=len(self.tasks), timeout=wait_s)
        for node in self.actors:
            ray.kill(node)
        if self.group:
            remove_placement_group(self.group)
        self.tasks, self.actors, self.group = [], [], None


class Dask(Cluster):
    """Starts one task per node. client: a distributed.Client, whose workers need a thread per task. resources: those
    that each task requires."""

    def __init__(self, client: Any, nodes: int | None = None, *, threads_per_node: int = 1,
                 options: tuple[str, ...] = (), resources: dict[str, float] | None = None):
        super().__init__(nodes or len(client.scheduler_info()["workers"]), threads_per_node, options)
        self.client, self.resources = client, resources

    def host(self) -> str:
        protocol, _, place = self.client.scheduler.address.rpartition("://")
        if protocol not in ("tcp", "tls"):
            return "127.0.0.1"
        scheduler, _, port = place.rpartition(":")
        with socket.create_connection((scheduler.strip("[]"), int(port))) as connection:
            return str(connection.getsockname()[0])

    def start(self, address: str) -> None:
        workers = list(self.client.scheduler_info()["workers"])
        for i in range(self.nodes):
            self.tasks.append(self.client.submit(
                compute, address, self.secret, self.threads, self.options, pure=False, retries=100,
                workers=[workers[i % len(workers)]], allow_other_workers=True, resources=self.resources))

    def stop(self, wait_s: float) -> None:
        wait_until_done(self.tasks, wait_s)
        self.client.cancel(self.tasks)
        self.tasks = []


class Submitit(Cluster):
    """Starts one job per node. executor: a submitit executor with the parameters of each job."""

    def __init__(self, executor: Any, nodes: int, *, threads_per_node: int = 0, options: tuple[str, ...] = ()):
        super().__init__(nodes, threads_per_node, options)
        self.executor = executor

    def start(self, address: str) -> None:
        for _ in range(self.nodes):
            self.tasks.append(self.executor.submit(compute, address, self.secret, self.threads, self.options))

    def stop(self, wait_s: float) -> None:
        wait_until_done(self.tasks, wait_s)
        for job in self.tasks:
            if not job.done():
                job.cancel()
        self.tasks = []
