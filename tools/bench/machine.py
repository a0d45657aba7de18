"""The machine under measurement, and how much of it others use meanwhile."""
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
    """CPU seconds that all programs together have used, from the text of /proc/stat."""
    user, nice, system, _, _, irq, softirq = map(int, stat.split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def busy_seconds_now():
    with open("/proc/stat", encoding="utf-8") as file:
        return busy_seconds(file.read())


def own_seconds():
    """Of this program and of those that it has started and awaited."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Others:
    """What other programs use from now on."""

    def __init__(self):
        self.began = self.now()

    @staticmethod
    def now():
        return time.monotonic(), busy_seconds_now(), own_seconds()

    def cores(self):
        """How many cores they have used on average."""
        wall, busy, own = (after - before for before, after in zip(self.began, self.now()))
        return max(0.0, (busy - own) / wall)
