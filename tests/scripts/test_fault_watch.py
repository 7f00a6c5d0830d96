import os

from faults.watch import memory_called


def test_shared_memory_is_found_once_it_has_its_size():
    fd = os.memfd_create("sf-watched")
    try:
        assert memory_called("sf-watched", os.getpid()) == []
        os.ftruncate(fd, 4096)
        assert [path.name for path in memory_called("sf-watched", os.getpid())] == [str(fd)]
    finally:
        os.close(fd)
