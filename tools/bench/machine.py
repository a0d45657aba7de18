"""Describes the machine, and measures the CPU use of other programs."""
import os
import resource
import time


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return "an unknown processor"


def busy_seconds(stat):
    """CPU seconds used by all programs together, from the text of /proc/stat."""
    user, nice, system, _, _, irq, softirq = map(int, stat.split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def busy_seconds_now():
    with open("/proc/stat", encoding="utf-8") as file:
        return busy_seconds(file.read())


def own_seconds():
    """CPU seconds of this program and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Others:
    """CPU use of other programs since the object was created."""

    def __init__(self):
        self.began = self.now()

    @staticmethod
    def now():
        return time.monotonic(), busy_seconds_now(), own_seconds()

    def cores(self):
        """Average number of cores that other programs have used."""
        wall, busy, own = (after - before for before, after in zip(self.began, self.now()))
        return max(0.0, (busy - own) / wall)
