"""Emulates slower machines on this one: a network namespace, a shaped link and a share of a core for each client.

Needs root, iproute2 and cgroups (version 2, or the `cpu` controller of version 1). Delay and loss need netem, which not
every kernel has (see has_netem()). Requesting them without netem is an error.
"""
import os
import subprocess

NETWORK = "10.77.0."
SERVER = NETWORK + "1"
BRIDGE = "mneme-rt"
PERIOD_US = 20_000  # period in which a client gets its share of a core
UNIFIED, CPU = "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"


def sh(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done


def has_netem():
    """True if the kernel can delay packets."""
    sh("ip", "link", "add", "mneme-probe", "type", "dummy")
    try:
        added = sh("tc", "qdisc", "add", "dev", "mneme-probe", "root", "netem", "delay", "1ms", check=False)
        return added.returncode == 0
    finally:
        sh("ip", "link", "del", "mneme-probe")


class Share:
    """Share of one core for the processes that join it."""

    def __init__(self, name, share):
        self.is_unified = os.path.exists(os.path.join(UNIFIED, "cgroup.controllers"))
        self.folder = os.path.join(UNIFIED if self.is_unified else CPU, name)
        os.makedirs(self.folder, exist_ok=True)
        quota = max(1000, round(share * PERIOD_US))
        if self.is_unified:
            self.write("cpu.max", f"{quota} {PERIOD_US}")
        else:
            self.write("cpu.cfs_period_us", str(PERIOD_US))
            self.write("cpu.cfs_quota_us", str(quota))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def join(self):
        """Called in the limited process before it starts threads."""
        self.write("cgroup.procs", str(os.getpid()))

    def remove(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass  # a process of the group is still ending


class World:
    """Context `World(clients)`: dicts with share, uplink_mbit, downlink_mbit and, with netem, delay_ms and loss."""

    def __init__(self, clients):
        self.clients = clients
        self.shares = []

    def __enter__(self):
        self.close()
        try:
            sh("ip", "link", "add", BRIDGE, "type", "bridge")
            sh("ip", "addr", "add", SERVER + "/24", "dev", BRIDGE)
            sh("ip", "link", "set", BRIDGE, "up")
            for number, client in enumerate(self.clients):
                self.add(number, client)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def add(self, number, client):
        space, inner, outer = f"mneme-rt{number}", f"rtc{number}", f"rts{number}"
        sh("ip", "netns", "add", space)
        sh("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        sh("ip", "link", "set", inner, "netns", space)
        sh("ip", "link", "set", outer, "master", BRIDGE, "up")
        inside = ("ip", "netns", "exec", space)
        sh(*inside, "ip", "addr", "add", f"{NETWORK}{10 + number}/24", "dev", inner)
        sh(*inside, "ip", "link", "set", "lo", "up")
        sh(*inside, "ip", "link", "set", inner, "up")
        self.shape(inside, inner, client["uplink_mbit"], client)
        self.shape((), outer, client["downlink_mbit"], client)
        self.shares.append(Share(f"mneme-rt{number}", client["share"]))

    @staticmethod
    def shape(inside, device, mbit, client):
        """Limits the rate with a token bucket that has a queue of 200 ms; netem, if requested, delays packets before
        the bucket."""
        parent = ("root",)
        if client.get("delay_ms") or client.get("loss"):
            sh(*inside, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "netem", "delay",
               f"{client.get('delay_ms', 0)}ms", "loss", f"{client.get('loss', 0)}%", "limit", "10000")
            parent = ("parent", "1:")
        sh(*inside, "tc", "qdisc", "add", "dev", device, *parent, "tbf", "rate", f"{mbit}mbit", "burst", "32kb",
           "latency", "200ms")

    def start(self, number, words, **options):
        """Starts a client's process under its limits."""
        share = self.shares[number]
        return subprocess.Popen(["ip", "netns", "exec", f"mneme-rt{number}", *words], preexec_fn=share.join, **options)

    def close(self):
        for share in self.shares:
            share.remove()
        self.shares = []
        for line in sh("ip", "netns", "list", check=False).stdout.splitlines():
            if line.startswith("mneme-rt"):
                sh("ip", "netns", "del", line.split()[0])
        if os.path.exists(f"/sys/class/net/{BRIDGE}"):
            sh("ip", "link", "del", BRIDGE)
