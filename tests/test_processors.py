"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from onoma import processors
from onoma.processors import cpu_quota, physical_cores, usable_cores


def use_cgroups(monkeypatch: pytest.MonkeyPatch, folder: Path, own: str, files: dict[str, str]) -> None:
    """A machine with these control groups, by the names of their files; `own` is what the process sees of itself."""
    for name, content in files.items():
        (folder / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup" / name).write_text(content)
    (folder / "own").write_text(own)
    monkeypatch.setattr(processors, "_CGROUP_FOLDER", folder / "cgroup")
    monkeypatch.setattr(processors, "_OWN_CGROUPS", folder / "own")


def test_at_least_one_core_can_be_used() -> None:
    assert 1 <= usable_cores() <= physical_cores() <= (os.cpu_count() or 1)


def test_hyper_threads_of_a_core_are_counted_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for cpu in range(8):  # two threads per core: 0 and 4, 1 and 5, ...
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(processors, "_CPU_FOLDER", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 4, 5}, raising=False)
    assert physical_cores() == 3
    monkeypatch.setattr(processors, "_CPU_FOLDER", tmp_path / "none")
    assert physical_cores() == 5  # the affinity mask still counts


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/a/b\n", {"cpu.max": "max 100000\n", "a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2.0),
        ("0::/docker/1f\n", {"cpu.max": "50000 100000\n"}, 0.5),  # its own group is not mounted
        ("3:cpu,cpuacct:/\n1:memory:/x", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3.0),
        ("3:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, math.inf),
        ("3:cpu:/a\n0::/\n", {"cpu/a/cpu.cfs_quota_us": "25000", "cpu/a/cpu.cfs_period_us": "50000"}, 0.5),
        ("2:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1", "cpuset/cpu.cfs_period_us": "1"}, math.inf),
        ("0::/\n", {"cpu.max": "nonsense"}, math.inf),
        ("0::/\n", {}, math.inf),
    ],
)
def test_the_quota_of_a_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str, files: dict[str, str], quota: float
) -> None:
    use_cgroups(monkeypatch, tmp_path, own, files)
    assert cpu_quota() == quota


@pytest.mark.parametrize(("quota", "cores"), [("50000", 1), ("150000", 2), ("300000", 3), ("900000", 4)])
def test_no_more_threads_than_the_quota_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quota: str, cores: int
) -> None:
    use_cgroups(monkeypatch, tmp_path, "0::/\n", {"cpu.max": f"{quota} 100000"})
    monkeypatch.setattr(processors, "physical_cores", lambda: 4)
    assert usable_cores() == cores


def test_a_machine_without_control_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processors, "_OWN_CGROUPS", tmp_path / "none")
    assert cpu_quota() == math.inf


def test_the_peak_memory_counts_what_was_used_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = processors.peak_memory()
    block = bytearray(b"x") * 100_000_000
    del block
    after = processors.peak_memory()
    assert before is not None
    assert after is not None
    assert after > 100
    monkeypatch.setattr(processors, "_OWN_STATUS", tmp_path / "none")  # as on systems without /proc
    elsewhere = processors.peak_memory()
    assert elsewhere is not None
    assert elsewhere > 100
