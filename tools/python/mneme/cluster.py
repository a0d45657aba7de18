"""Clusters that start the nodes of a run: Ray, Dask and submitit. The libraries are imported when a run starts.

    mneme.run("X.toml", cluster=mneme.cluster.Ray(nodes=4, gpus_per_node=1))
"""
from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from typing import Any

__all__ = ["Dask", "Ray", "Submitit"]


def compute(address: str, secret: str, threads: int, options: tuple[str, ...]) -> int:
    """Runs on a machine of the cluster and computes for the run at `address` until the run is over. Returns the exit
    code."""
    command = [sys.executable, "-m", "mneme", "node", "--join", address, *options]
    if threads:
        command += ["--threads", str(threads)]
    with subprocess.Popen(command, env={**os.environ, "MNEME_SECRET": secret}) as node:
        try:
            return node.wait()
        except BaseException:
            node.terminate()  # makes it give its shards back
            raise


def wait_until_done(tasks: list[Any]) -> None:
    """Waits at most 5 s for tasks to end; nodes end with the run."""
    until = time.monotonic() + 5
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

    def host(self) -> str:
        """Address at which the other machines reach this one."""
        return socket.gethostbyname(socket.gethostname())

    def __enter__(self) -> tuple[str, str]:
        """Starts the nodes. Returns address and secret of the run to join."""
        host = self.host()
        with socket.create_server((host, 0)) as listener:
            address = f"{host}:{listener.getsockname()[1]}"
        self.start(address)
        return address, self.secret

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self, address: str) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError


class Ray(Cluster):
    """Starts one actor per node in a placement group with the strategy SPREAD. Ray restarts lost actors, which join
    again."""

    def __init__(self, nodes: int, *, gpus_per_node: float = 0, threads_per_node: int = 1,
                 options: tuple[str, ...] = ()):
        super().__init__(nodes, threads_per_node, options)
        self.gpus = gpus_per_node

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
        self.actors = [actor.options(scheduling_strategy=PlacementGroupSchedulingStrategy(
            self.group, placement_group_bundle_index=i)).remote() for i in range(self.nodes)]
        self.tasks = [node.compute.remote(address, self.secret, self.threads, self.options) for node in self.actors]

    def stop(self) -> None:
        import ray
        from ray.util.placement_group import remove_placement_group
        ray.wait(self.tasks, num_returns=len(self.tasks), timeout=5)  # nodes end with the run
        for node in self.actors:
            ray.kill(node)
        remove_placement_group(self.group)


class Dask(Cluster):
    """Starts one task per node. client: a distributed.Client, whose workers need a thread per task. resources: of each
    task."""

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
        self.tasks = [self.client.submit(compute, address, self.secret, self.threads, self.options, pure=False,
                                         workers=[workers[i % len(workers)]], allow_other_workers=True, retries=100,
                                         resources=self.resources) for i in range(self.nodes)]

    def stop(self) -> None:
        wait_until_done(self.tasks)
        self.client.cancel(self.tasks)


class Submitit(Cluster):
    """Starts one job per node. executor: a submitit executor with the parameters of each job."""

    def __init__(self, executor: Any, nodes: int, *, threads_per_node: int = 0, options: tuple[str, ...] = ()):
        super().__init__(nodes, threads_per_node, options)
        self.executor = executor

    def start(self, address: str) -> None:
        self.jobs = [self.executor.submit(compute, address, self.secret, self.threads, self.options)
                     for _ in range(self.nodes)]

    def stop(self) -> None:
        wait_until_done(self.jobs)
        for job in self.jobs:
            if not job.done():
                job.cancel()
