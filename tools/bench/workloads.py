"""Definitions of the benchmarks: the work of a client-round, and the programs measured on it.

A workload describes a scenario of scenarios/bench as numbers for the LibTorch loops; a test compares the two.
"""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Loop:
    """LibTorch loop for comparison."""
    name: str      # name in bench_loops
    label: str
    widths: tuple  # candidate numbers of stacked models; (1,) for sequential loops
    stacked: bool = False


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    scenario: str
    shape: tuple
    hidden: int  # 0 for the CNN
    clients: int
    rows: int    # per client
    cohort: int
    batch: int
    few_rounds: int   # two run lengths separate the start of a run from its rounds
    many_rounds: int
    quick_rounds: tuple  # (few, many) for --quick
    loops: tuple
    bars: tuple = field(default=())  # targets

    @property
    def pixels(self):
        product = 1
        for n in self.shape:
            product *= n
        return product


@dataclass(frozen=True)
class Bar:
    """Target and goal for the median ratio to a loop: "bare", "stacked" (the fastest of them) or "gemm"."""
    against: str
    required: float
    goal: float


CLASSES = 10
LEARNING_RATE = 0.1

BARE_MLP = Loop("bare-mlp", "bare LibTorch loop", (1,))


def stacked_mlps(widths):
    return (Loop("stacked-mlp-autograd", "stacked, autograd", widths, stacked=True),
            Loop("stacked-mlp-by-hand", "stacked, own gradients", widths, stacked=True),
            Loop("stacked-mlp-tuned", "stacked, own gradients and softmax", widths, stacked=True))


B1 = Workload(
    name="b1", title="B1: CNN, 3x32x32, 1,000 clients x 50 images, batch 10, cohort 50",
    scenario="scenarios/bench/b1.toml",
    shape=(3, 32, 32), hidden=0, clients=1000, rows=50, cohort=50, batch=10,
    few_rounds=1, many_rounds=7, quick_rounds=(1, 3),
    loops=(Loop("bare-cnn", "bare LibTorch loop", (1,)),
           Loop("stacked-cnn", "stacked, grouped convolution", (2, 5, 10), stacked=True)),
    bars=(Bar("bare", 1.4, 1.4), Bar("gemm", 0.55, 0.65)))
B2 = Workload(
    name="b2", title="B2: MLP 64-32-10, 2,000 clients x 50 rows, batch 10, cohort 256",
    scenario="scenarios/bench/b2.toml",
    shape=(64,), hidden=32, clients=2000, rows=50, cohort=256, batch=10,
    few_rounds=20, many_rounds=800, quick_rounds=(5, 65),
    loops=(BARE_MLP, *stacked_mlps((16, 32, 64, 128, 256))),
    bars=(Bar("stacked", 1.4, 1.5),))
B2C = Workload(
    name="b2c", title="B2c: MLP 784-100-10, 1,000 clients x 60 rows, batch 10, cohort 256",
    scenario="scenarios/bench/b2c.toml", shape=(1, 28, 28), hidden=100, clients=1000, rows=60, cohort=256, batch=10,
    few_rounds=2, many_rounds=62, quick_rounds=(1, 5),
    loops=(BARE_MLP, *stacked_mlps((1, 2, 4, 8, 16, 64))),
    bars=(Bar("stacked", 1.5, 1.8),))
TRAINING = {one.name: one for one in (B1, B2, B2C)}

# B3: clients do not train, so that only the control plane is measured. (label, scenario, overrides)
NO_OP_TITLE = "B3: no-op client-rounds, cohort 1,000"
NO_OP_SIZES = ((10_000, "scenarios/bench/b3_10k.toml", ()),
               (100_000, "scenarios/bench/b3_10k.toml", ("clients.count=100000",)),
               (1_000_000, "scenarios/bench/b3_1m.toml", ()))
NO_OP_ROUNDS, NO_OP_QUICK_ROUNDS = (20, 520), (10, 110)
NO_OP_MICROSECONDS, NO_OP_MICROSECONDS_GOAL = 8.0, 5.0   # CPU time in microseconds per client-round with 10,000 clients
NO_OP_GROWTH = 1.5         # cost with 1,000,000 clients relative to 10,000
IDLE_BYTES = 64.0          # bytes per client that is never dispatched
ENROLMENT_SECONDS = 1.0    # enrollment of 1,000,000 clients

# B5: B3 with a server step for every tenth upload; a client gets new work as soon as it has finished.
NO_WAIT_TITLE = "B5: no-op client-tasks under FedBuff, 100 in flight, 5 % drop-out"
NO_WAIT_SIZES = ((10_000, "scenarios/bench/b5_10k.toml", ()), (1_000_000, "scenarios/bench/b5_1m.toml", ()))
NO_WAIT_STEPS, NO_WAIT_QUICK_STEPS = (2_000, 42_000), (500, 5_500)
NO_WAIT_RATE = 200_000     # client-tasks per CPU second with 10,000 clients
NO_WAIT_GROWTH = 1.5       # cost with 1,000,000 clients relative to 10,000

# B6: B1's net and clients with FedBuff, measured in turns with B1.
BUFFERED_TITLE = "B6: FedBuff with the CNN of B1, buffer 10, 100 in flight, to B1"
BUFFERED_SCENARIO = "scenarios/bench/b6.toml"
BUFFERED_STEPS, BUFFERED_QUICK_STEPS = (10, 40), (2, 5)
BUFFERED_SHARE = 0.9       # relative to B1's client-rounds per CPU second

# B7: two cores compared with one, on workloads of the benchmarks above.
CORES_TITLE = "B7: two threads against one, by the wall clock"
CORES_WANTED = {"b1": 1.8, "b2": 1.6}

# B9: programs with autograd, one after another and stacked.
PROGRAMS_TITLE = "B9: steps of 64 small generators, and of 64 gradient inversions, stacked"
PROGRAMS = ("generator", "inversion")
PROGRAMS_WIDTHS = (1, 16, 64)
PROGRAMS_GAIN = 5.0  # speed-up of the last width over the first, in CPU time

# ResNet-18 on rows of CIFAR-100's shape, uploads of 45 MB, in batches of 20; and B10, the same in batches of 64:
# (scenario, overrides, rounds, rounds for --quick), rounds as (few, many).
RESNET18 = ("data.name=synthetic", "data.shape=[3, 32, 32]", "data.classes=100", "tasks.kind=single", "tasks.count=1",
            "partition.kind=iid", "rounds.cohort=5", "data.test_rows=100")
NETS = {"resnet18": ("scenarios/bench/resnet18_cifar100.toml", (*RESNET18, "data.rows=1000", "training.batch=20"),
                     (1, 7), (1, 2)),
        "b10": ("scenarios/bench/resnet18_cifar100.toml", (*RESNET18, "data.rows=3200", "training.batch=64"),
                (1, 4), (1, 2))}

# B11: a run with one node, both single-threaded, compared with one process.
NODES_TITLE = "B11: one node on the loopback against one process, by the wall clock"
NODES = ("b1", "b2", "resnet18")
NODES_SHARE = 0.9          # relative to one process, or to the rate that the link allows for uploads
LINK_BYTES = 400e6         # bytes of tensors per second

# B12: 110 of 1,000 clients are enrolled. Each round draws ten, and the other hundred observe their rows. The run is
# compared with a run in which ten are enrolled.
OBSERVERS_TITLE = "B12: clients that observe 300 rows each with a linear net, 100 a round of 10 clients"
OBSERVERS_SCENARIO = "scenarios/bench/b12.toml"
NO_OBSERVERS = ("enrolment.initial=10",)
OBSERVERS_ROUNDS, OBSERVERS_QUICK_ROUNDS = (10, 510), (5, 25)
OBSERVER_MICROSECONDS = 200.0  # CPU time per observation

# B13: B1 and B2 in portable arithmetic, and in machine arithmetic limited to AVX2.
PORTABLE_TITLE = "B13: portable arithmetic to the machine's"
PORTABLE = ("b1", "b2", "b2c", "resnet18", "b10")
PORTABLE_SHARE, PORTABLE_SHARE_OF_AVX2 = 0.6, 0.9
AVX2 = {"MNEME_KERNELS": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2"}

# B15: the transformer of B14 with low-rank adapters. Its clients train in fused groups, or one after another.
LOW_RANK_TITLE = "B15: low-rank adapters of a vision transformer, 16 clients x 64 images, batch 16"
LOW_RANK_SCENARIO = "scenarios/bench/b14_vit.toml"
LOW_RANK = ("model.low_rank=8", "clients.count=16", "rounds.cohort=16", "data.rows=1024", "training.epochs=1",
            "training.batch=16")
LOW_RANK_WIDTHS = (1, 16)
LOW_RANK_ROUNDS, LOW_RANK_QUICK_ROUNDS = (2, 22), (1, 5)
LOW_RANK_SHARE = 0.9       # rate of groups of 16, relative to groups of 1: layers of tokens compute client by client

ALL = ("b1", "b2", "b2c", "b3", "b5", "b6", "b7", "b9", "b11", "b12", "b13", "b15")


def message_mib(upload_bytes):
    """Size of a message that carries uploads of this size, in MiB. Small uploads share a message."""
    return max(1, round(upload_bytes / 2 ** 20))


def parameters(work):
    """Number of weights of the workload's net."""
    if work.hidden:
        return (work.pixels + 1) * work.hidden + (work.hidden + 1) * CLASSES
    channels, height, width = work.shape
    pooled = 64 * ((height - 4) // 2) * ((width - 4) // 2)
    return (9 * channels + 1) * 32 + (9 * 32 + 1) * 64 + (pooled + 1) * 128 + (128 + 1) * CLASSES


def flops(work):
    """FLOPs of a client-round, products only: forward, weight gradients, and input gradients except for the first
    layer."""
    if work.hidden:
        row = 2 * 2 * work.pixels * work.hidden + 3 * 2 * work.hidden * CLASSES
    else:
        channels, height, width = work.shape
        first = 2 * (height - 2) * (width - 2) * 32 * 9 * channels
        second = 2 * (height - 4) * (width - 4) * 64 * 9 * 32
        pooled = 64 * ((height - 4) // 2) * ((width - 4) // 2)
        row = 2 * first + 3 * (second + 2 * pooled * 128 + 2 * 128 * CLASSES)
    return float(row * work.rows)


def memory_bytes(work):
    """Minimum memory traffic of a client-round in bytes: its rows, and the weights received, uploaded and folded."""
    return float(work.rows * work.pixels + 3 * 4 * parameters(work))
