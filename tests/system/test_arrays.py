"""Shared memory: the same bytes in every process, and nothing left behind."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from sf.system.arrays import Field, SharedArrays, available_memory


def _write(arrays, value):
    arrays["a"][:] = value
    arrays["b"][1, 2] = True


def test_a_spawned_child_writes_into_the_memory_of_its_parent():
    arrays = SharedArrays([Field("a", (5,), np.int32), Field("b", (2, 3), np.bool_)])
    assert not arrays["a"].any()
    child = multiprocessing.get_context("spawn").Process(target=_write, args=(arrays, 7))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert arrays["a"].tolist() == [7] * 5
    assert arrays["b"].tolist() == [[False] * 3, [False, False, True]]


def test_shared_memory_has_no_name_in_the_file_system():
    arrays = SharedArrays([Field("a", (1000, 1000), np.float32)], name="sf-nameless")
    arrays["a"][:] = 1.0
    mapped = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    assert [path for path in mapped if "sf-nameless" in path] == ["/memfd:sf-nameless (deleted)"]


def test_fields_do_not_overlap_and_an_empty_field_is_allowed():
    arrays = SharedArrays([Field("a", (3,), np.uint8), Field("none", (4, 0), np.float32), Field("c", (2,), np.float64)])
    arrays["a"][:] = 255
    arrays["c"][:] = 1.5
    assert arrays["none"].shape == (4, 0)
    assert arrays["a"].tolist() == [255] * 3
    places = [arrays[name].__array_interface__["data"][0] for name in ("a", "c")]
    assert all(place % os.sysconf("SC_PAGE_SIZE") == 0 for place in places)  # a GPU pins pages
    assert arrays["c"].tolist() == [1.5, 1.5]


IN_A_JOB = {"job/memory.max": "9000000\n", "job/memory.current": "2000000\n"}
IN_A_JOB |= {"job/step/memory.max": "max\n", "job/step/memory.current": "1000000\n"}
READ = {"memory.max": "9000000", "memory.current": "8000000", "memory.stat": "anon 1\ninactive_file 3000000\n"}
FIRST_VERSION = {"memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "5"}
FIRST_VERSION |= {"memory/job/memory.limit_in_bytes": "6000000", "memory/job/memory.usage_in_bytes": "1000000"}


@pytest.mark.parametrize(
    ("of_process", "files", "available"),
    [
        ("0::/job/step\n", IN_A_JOB, 7_000_000),  # the nearest limit
        ("0::/\n", READ, 4_000_000),  # files that were read take no memory away
        ("4:cpu:/other\n3:memory:/job\n", FIRST_VERSION, 5_000_000),
    ],
)
def test_available_memory_is_what_the_limits_of_control_groups_leave(tmp_path, of_process, files, available):
    (tmp_path / "self").write_text(of_process)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_memory(tmp_path / "fs", tmp_path / "self") == available
