"""What this process may use and has used: cores within its affinity mask and its container's CPU quota, and memory."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_CGROUP_FOLDER = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_OWN_STATUS = Path("/proc/self/status")


def usable_cores() -> int:
    """The threads with which arithmetic is fastest: one per physical core, and no more than the CPU quota allows.

    A quota of 1.5 cores counts as two, because one thread would leave a third of it unused.
    """
    return math.ceil(min(physical_cores(), cpu_quota()))


def physical_cores() -> int:
    """The number of physical cores that this process may use: hyper-threads of a core share its arithmetic units."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
    try:
        return len({(_CPU_FOLDER / f"cpu{cpu}/topology/thread_siblings_list").read_text() for cpu in allowed})
    except OSError:  # a Linux without this folder
        return len(allowed)


def cpu_quota() -> float:
    """The cores' worth of time that control groups allow this process, as containers set them; infinity: no limit."""
    return min(map(_quota, _control_groups()), default=math.inf)


def _control_groups() -> Iterator[Path]:
    """The folders of the control groups that this process belongs to, and of those above them.

    Inside a container, the group that the process itself sees may lie outside of what is mounted; then the mounted
    root is that of the container.
    """
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:  # 4:cpu,cpuacct:/a/b in version 1, 0::/a/b in version 2
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        roots = (_CGROUP_FOLDER / controllers, _CGROUP_FOLDER / "cpu") if controllers else (_CGROUP_FOLDER,)
        own = PurePosixPath(path.lstrip("/"))
        yield from (root / folder for root in roots for folder in (own, *own.parents))


def _quota(group: Path) -> float:
    """The cores' worth of time of one control group; infinity if it has no limit."""
    try:
        if (group / "cpu.max").exists():  # version 2: "150000 100000", or "max 100000"
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 and int(period) > 0 else math.inf
    except (OSError, ValueError):  # no such group, or in another form
        return math.inf


def peak_memory() -> float | None:
    """The largest resident set of this process so far, in megabytes; None where the system does not tell."""
    try:  # first, because getrusage also counts the memory of the process that started this one
        lines = _OWN_STATUS.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
