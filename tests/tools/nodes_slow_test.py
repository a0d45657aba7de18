"""Nodes that are lost or join at random moments, and hosts as network namespaces with slow links."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launcher_programs import plain_environment  # noqa: E402
from node_processes import LONG, Link, NodesCase, free_port, kib_of, words  # noqa: E402
from program import PROGRAM, ROOT, needs_nodes, run_tests  # noqa: E402

setUpModule = needs_nodes

SCENARIOS = ("quickstart", "smoke/fedasync", "smoke/stsa", "smoke/fil-ver", "smoke/lga", "smoke/glfc", "smoke/fed-lwf",
             "smoke/resnet8", "smoke/lstm", "smoke/vit", "smoke/central-rehearsal", "smoke/devices")
BRIDGE = "mnemetest"


def may_make_hosts():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    made = subprocess.run(["ip", "netns", "add", "mnemetry"], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", "mnemetry"], check=False)
    return made


class LostNodes(NodesCase):
    def test_killing_stopping_disconnecting_or_draining_thirty_nodes_keeps_the_digest(self):
        """The number in a failure message is the seed of the run."""
        scenario, _ = LONG
        settings = ["rounds.per_task=150", "worker.node_timeout=\"1 s\""]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        undisturbed_s = {count: self.seconds_over(count, scenario, settings) for count in (2, 4)}
        lost_s = []
        for seed in range(30):
            draw = random.Random(seed)
            port, count = free_port(), 2 if seed % 2 == 0 else 4
            links = [Link(port) for _ in range(count)]
            nodes = [self.node(link.address, "--threads", "1") for link in links]
            accept = ["--accept", f"127.0.0.1:{port}", "--workers-min", str(count)]
            began = time.monotonic()
            process, folder = self.begun(scenario, "--threads", "1", *accept, *words(settings))
            time.sleep(draw.uniform(0.0, 0.5))
            victim = draw.randrange(len(nodes))
            how = draw.choice(("killed", "stopped", "cut", "drained"))
            if how == "killed":
                nodes[victim].process.kill()
            elif how == "drained":
                nodes[victim].process.terminate()
            elif how == "stopped":
                nodes[victim].stop()
            else:
                links[victim].is_cut = True
            found, said = self.ended(process, folder)
            took = time.monotonic() - began
            self.assertEqual(found["run_digest"], alone["run_digest"], f"seed {seed}: {how}")
            losses = sum(node["disconnects"] for node in found["nodes"])
            lost_s.append(took - undisturbed_s[len(nodes)])
            print(f"seed {seed}: {how}, {len(nodes)} nodes, {losses} lost, {lost_s[-1]:.1f} s lost", flush=True)
            if losses == 0:
                self.assertNotIn("lost", said)  # the run ended before the loss was detected
            for link, node in zip(links, nodes):
                link.close()
                node.end()
        print(f"30 failures, {sum(lost_s) / len(lost_s):.2f} s lost by each in the mean; undisturbed runs took "
              + " and ".join(f"{took:.1f} s" for took in undisturbed_s.values()) + " on 2 and 4 nodes")

    def seconds_over(self, count, scenario, settings):
        """Returns the duration in seconds of a run over this number of nodes."""
        began = time.monotonic()
        self.summary(scenario, "--threads", "1", *words(settings), nodes=[1] * count)
        return time.monotonic() - began


class Disturbed(NodesCase):
    """Runs with six nodes each, of which five are killed, stopped or drained, and a seventh that joins late. In seeds
    2, 3, 6, 7 and so on all five are drained. The number of a failure is its seed."""

    def test_two_hundred_disturbed_and_forty_late_nodes_change_no_digest(self):
        self.disturb_runs(40, self.begun_with_nodes)

    def test_fifty_disturbed_and_ten_late_ranks_change_no_digest(self):
        """All processes are ranks of --distributed, and rank 0 computes, too."""
        self.disturb_runs(10, self.begun_with_ranks)

    def begun_with_nodes(self, scenario, settings, late=True):
        """Starts a run over six nodes. Returns process, folder, nodes, and a function that starts the late node."""
        accept, nodes = self.cluster(*[1] * 6)
        process, folder = self.begun(scenario, "--threads", "1", *accept, *words(settings))
        return process, folder, [node.process for node in nodes], lambda: self.node(accept[1], "--threads", "1").process

    def begun_with_ranks(self, scenario, settings, late=True):
        """The same as begun_with_nodes() with ranks 1 to 6 of a launcher; rank 7 is the late one."""
        self.port, folder = free_port(), self.out()
        size, options = 8 if late else 7, ["--workers-min", "6", "--out", folder, *words(settings)]
        first, *others = (self.rank(rank, size, scenario, *options) for rank in range(7))
        while first.poll() is None and not os.path.exists(os.path.join(folder, "metrics.jsonl")):
            time.sleep(0.01)
        return first, folder, others, lambda: self.rank(7, size, scenario, *options)

    def disturb_runs(self, count, begin):
        scenarios = (("scenarios/smoke/fedprox.toml", ["rounds.per_task=50"]),
                     ("scenarios/smoke/fedasync.toml", ["rounds.per_task=300"]))
        undisturbed = []
        for scenario, settings in scenarios:
            began = time.monotonic()
            process, folder, _, _ = begin(scenario, settings, late=False)
            found, _ = self.ended(process, folder)
            undisturbed.append((time.monotonic() - began, self.rounds_of(found)))
            self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "1", *words(settings)))
        totals = dict.fromkeys(("killed", "stopped", "drained", "lost", "joined late", "joined late and computed",
                                "rounds again", "rounds rerun"), 0)
        for seed in range(count):
            which = seed % 2
            self.disturb(seed, begin, *scenarios[which], *undisturbed[which], totals)
        print(", ".join(f"{count} {name}" for name, count in totals.items()), flush=True)

    @staticmethod
    def rounds_of(found):
        return sum(node["client_rounds"] for node in found["nodes"])

    def disturb(self, seed, begin, scenario, settings, seconds, rounds, totals):
        """seconds, rounds: duration of an undisturbed run, and number of client rounds that its nodes computed."""
        draw = random.Random(seed)
        began = time.monotonic()
        only_drained = seed % 4 in (2, 3)  # then no node times out, even on a busy machine
        silence = "60 s" if only_drained else "1 s"
        process, folder, nodes, start_late = begin(scenario, [*settings, f"worker.node_timeout=\"{silence}\""])
        ways = ["drained"] * 5 if only_drained else draw.choices(("killed", "stopped", "drained"), k=5)
        moments = sorted([(draw.uniform(0, 0.7 * seconds), *node) for node in (*zip(ways, nodes), ("late", None))],
                         key=lambda moment: moment[0])
        start = time.monotonic()
        for moment, way, node in moments:
            time.sleep(max(0.0, start + moment - time.monotonic()))
            if way == "late":
                nodes.append(start_late())
            else:
                node.send_signal({"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "drained": signal.SIGTERM}[way])
        found, said = self.ended(process, folder)
        took = time.monotonic() - began
        said = "\n".join(line for line in said.splitlines() if "node" in line)
        self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "1", *words(settings)),
                         f"seed {seed}: {said}")
        # Rank 0 computes a share of the rounds that varies.
        again = self.rounds_of(found) - rounds if begin == self.begun_with_nodes else 0
        rerun = sum(node["rounds_rerun"] for node in found["nodes"])
        if only_drained:
            disconnects = sum(node["disconnects"] for node in found["nodes"])
            self.assertEqual((again, disconnects, rerun), (0, 0, 0), f"seed {seed}: {said}")
            self.assertEqual([node.wait(timeout=60) for node in nodes[:6]], [0] * 6, f"seed {seed}: {said}")
        for way in ways:
            totals[way] += 1
        totals["lost"] += sum(node["disconnects"] for node in found["nodes"])
        totals["rounds again"] += again
        totals["rounds rerun"] += rerun
        late = found["nodes"][6:]
        totals["joined late"] += len(late)
        totals["joined late and computed"] += sum(node["client_rounds"] > 0 for node in late)
        print(f"seed {seed}: {', '.join(ways)}: {took:.1f} s, undisturbed {seconds:.1f} s, {again} of {rounds} client "
              f"rounds again, {rerun} rerun", flush=True)
        for node in nodes:
            self.let_go(node)


@unittest.skipUnless(may_make_hosts(), "network namespaces cannot be made here")
class Hosts(NodesCase):
    """Network namespaces on a bridge, 10.83.0.N; the run is in the first."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_hosts)
        self.remove_hosts()
        self.command("ip link add", BRIDGE, "type bridge")
        self.command("ip link set", BRIDGE, "up")
        for host in range(1, 6):
            self.command(f"ip netns add {BRIDGE}{host}")
            self.command(f"ip link add {BRIDGE}v{host} type veth peer name eth0 netns {BRIDGE}{host}")
            self.command(f"ip link set {BRIDGE}v{host} master {BRIDGE} up")
            self.within(host, f"ip address add 10.83.0.{host}/24 dev eth0")
            self.within(host, "ip link set eth0 up")
            self.within(host, "ip link set lo up")

    @staticmethod
    def command(*parts):
        subprocess.run(" ".join(parts).split(), check=True)

    def within(self, host, *parts):
        self.command(f"ip netns exec {BRIDGE}{host}", *parts)

    @staticmethod
    def remove_hosts():
        for host in range(1, 6):
            subprocess.run(["ip", "netns", "del", f"{BRIDGE}{host}"], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True, check=False)

    @staticmethod
    def on(host):
        return ("ip", "netns", "exec", f"{BRIDGE}{host}")

    def far_cluster(self, count, trust):
        """Starts nodes on other hosts. Returns the options of a run on the first host that waits for them."""
        address, threads = f"10.83.0.1:{free_port()}", [1 + host % 2 for host in range(count)]
        for host in range(count):
            self.node(address, "--threads", str(threads[host]), *trust, before=self.on(host + 2))
        return ["--accept", address, "--workers-min", str(sum(threads)), *trust]

    def test_hosts_with_tls_give_the_digest_of_one_process(self):
        for name in SCENARIOS:
            scenario = f"scenarios/{name}.toml"
            alone = self.summary(scenario, "--threads", "2")
            for count, threads, trust in ((2, "1", self.keys(name.replace("/", "-"))), (4, "2", self.secret())):
                found = self.summary(scenario, "--threads", threads, *self.far_cluster(count, trust),
                                     before=self.on(1))
                self.assertEqual(found["run_digest"], alone["run_digest"], f"{name}, {count} nodes")
            print(f"{name}: {alone['run_digest']} in one process, on two hosts and on four, by TLS", flush=True)

    def test_ranks_on_hosts_give_the_digest_of_one_process(self):
        """--distributed with the variables of any launcher, one rank on each host."""
        for name in ("fedavg", "fedasync", "stsa", "lga"):
            scenario, folder = f"scenarios/smoke/{name}.toml", self.out()
            shared = plain_environment(WORLD_SIZE="3", MASTER_ADDR="10.83.0.1", MASTER_PORT=str(free_port()),
                                       MNEME_SECRET="0123456789abcdef0123456789abcdef")
            ranks = [subprocess.Popen([*self.on(rank + 1), PROGRAM, "run", scenario, "--distributed", "--threads", "1",
                                       "--out", folder], cwd=ROOT, env={**shared, "RANK": str(rank)},
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(3)]
            for rank in ranks:
                self.addCleanup(self.let_go, rank)
            found, _ = self.ended(ranks[0], folder)
            self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "1"), name)
            self.assertEqual(len(found["nodes"]), 2)
            self.assertEqual([rank.wait(timeout=60) for rank in ranks[1:]], [0, 0])

    def test_every_method_gives_one_digest_on_any_hosts(self):
        """Every smoke scenario: on two and four hosts with TLS, with one thread and two, and without TLS on the
        loopback. MNEME_SCENARIOS selects some of them, separated by commas."""
        named = os.environ.get("MNEME_SCENARIOS")
        names = named.split(",") if named else sorted(
            name[:-5] for name in os.listdir(os.path.join(ROOT, "scenarios", "smoke")) if name.endswith(".toml"))
        trust = self.secret()
        wrong = []
        for name in names:
            scenario = f"scenarios/smoke/{name}.toml"
            digests = [self.summary(scenario, "--threads", "1")["run_digest"]]
            for count, threads in ((2, "1"), (4, "2")):
                digests.append(self.summary(scenario, "--threads", threads, *self.far_cluster(count, trust),
                                            before=self.on(1))["run_digest"])
            digests.append(self.summary(scenario, "--threads", "2", nodes=[1, 1])["run_digest"])
            print(f"{name}: {' '.join(digests)}", flush=True)
            if len(set(digests)) > 1:
                wrong.append(name)
        self.assertEqual(wrong, [])

    def test_a_broadcast_is_sent_once_over_a_slow_link_for_a_thousand_clients(self):
        """45 MB of weights to 1,000 clients over 10 Mbit/s. The 45 GB of uploads would take ten hours at this rate;
        they return over a faster link."""
        settings = ["data.name=\"synthetic\"", "data.shape=[1, 28, 28]", "data.rows=2000", "tasks.kind=\"single\"",
                    "tasks.count=1", "clients.count=1000", "rounds.cohort=1000", "rounds.per_task=1",
                    "partition.kind=\"iid\"", "model.name=\"mlp\"", "model.hidden=[14150]",
                    "worker.fused_clients_max=1", "checkpoint.every=0", "evaluation.every=0"]
        alone, found, _ = self.over_slow_link(settings, slow_hosts=(1,))
        weights = alone["download_bytes"] / 1000
        self.assertGreater(weights, 44e6)
        self.assertEqual(found["nodes"][0]["client_rounds"], 1000)
        self.assertLess(found["nodes"][0]["bytes_sent"], 1.02 * weights)

    def test_a_slow_link_fills_no_memory(self):
        """45 MB of weights over 10 Mbit/s, once to the node and four times back."""
        settings = ["data.name=\"synthetic\"", "data.shape=[1, 28, 28]", "data.rows=400", "tasks.kind=\"single\"",
                    "tasks.count=1", "clients.count=4", "rounds.cohort=4", "rounds.per_task=1", "model.name=\"mlp\"",
                    "model.hidden=[14150]", "worker.fused_clients_max=1", "checkpoint.every=0", "evaluation.every=0"]
        alone, found, _ = self.over_slow_link(settings)
        self.assertLess(found["nodes"][0]["bytes_sent"], 1.01 * alone["download_bytes"] / 4)

    def over_slow_link(self, settings, slow_hosts=(1, 2)):
        """Returns the summaries of one process and of a run in which these hosts send 10 Mbit/s. Checks that the peak
        memory of the run and of its node is at most 256 MiB above that of one process."""
        scenario = "scenarios/smoke/fedavg.toml"
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        address, trust = f"10.83.0.1:{free_port()}", self.secret()
        node = self.node(address, "--threads", "1", *trust, before=self.on(2))
        for host in slow_hosts:
            self.within(host, "tc qdisc add dev eth0 root tbf rate 10mbit burst 64kb limit 256kb")
        began = time.monotonic()
        process, folder = self.begun(scenario, "--threads", "1", "--accept", address, "--workers-min", "1", *trust,
                                     *words(settings), before=self.on(1))
        peaks = [0, 0]
        while process.poll() is None:
            try:
                peaks = [kib_of(process.pid, "VmHWM"), node.resident_kib("VmHWM")]
            except (OSError, AttributeError):
                break
            time.sleep(0.2)
        found, _ = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        print(f"{alone['clients']} clients, {found['client_rounds']} uploads: "
              f"{found['nodes'][0]['bytes_sent'] / 1e6:.1f} MB to the node, "
              f"{found['nodes'][0]['bytes_received'] / 1e6:.1f} MB back in {time.monotonic() - began:.0f} s; peaks "
              f"{alone['peak_rss_bytes'] >> 20} MiB in one process, {peaks[0] >> 10} MiB of the run, "
              f"{peaks[1] >> 10} MiB of the node")
        for peak in peaks:
            self.assertLess(peak * 1024 - alone["peak_rss_bytes"], 256 << 20)
        return alone, found, peaks


if __name__ == "__main__":
    run_tests()
