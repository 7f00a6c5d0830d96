"""A stand-in for `sf.system.gpu` whose GPUs do everything as late as CUDA may.

Their memory is host memory, but a copy is made only when somebody waits for its event: whoever reads what has not come
yet, or overwrites what is still to be copied, gets wrong data in every run instead of one in a thousand. What a
network computes is computed at once, so in a queue with computations a copy reads its source at once, too, unless that
is page-locked memory, which a GPU reads when it gets there.

Every thread has to take the device that it uses. LATE_GPU_COUNT: how many there are (1). LATE_GPU_FAULT: what goes
wrong, "allocate", "send", "map" or "stale" (a mapping of other memory).
"""

import os
import threading
from collections import deque
from multiprocessing import reduction

import torch

from sf.system.arrays import Field, SharedArrays

HOST = "cpu"

_thread = threading.local()
_page_locked = set()  # addresses of storages
_shared = {}  # by address: the arrays
_FAULT = os.environ.get("LATE_GPU_FAULT")


class SharingError(RuntimeError):
    def __init__(self, cause):
        super().__init__(f"GPU memory cannot be shared between processes (CUDA IPC: {cause})")


def is_available():
    return True


def count():
    return int(os.environ.get("LATE_GPU_COUNT", "1"))


def names():
    return ["late"] * count()


def has_bfloat16():
    return False


def torch_device(device):
    return torch.device("cpu")


def take(device):
    if device != HOST:
        assert device in [f"cuda:{idx}" for idx in range(count())], device
        _thread.device = device


def _check(device):
    taken = getattr(_thread, "device", HOST)
    assert device == taken, f"{threading.current_thread().name} uses {device}, and has taken {taken}"


class _Queue:
    """Work that is done in order, and not before it must be."""

    def __init__(self):
        self._work = deque()
        self._num_queued = self._num_done = 0
        self._lock = threading.RLock()

    def add(self, work):
        with self._lock:
            self._work.append(work)
            self._num_queued += 1
            return self._num_queued

    def do(self, until):
        with self._lock:
            while self._num_done < until:
                self._work.popleft()()
                self._num_done += 1


class Event:
    def __init__(self, queue, position):
        self._queue, self._position = queue, position

    def wait(self):
        if self._queue is not None:
            self._queue.do(self._position)

    def hold_back(self):
        """Behind it come computations, which are done at once, so now it has to be there."""
        self.wait()


def _queue_of_thread():
    if not hasattr(_thread, "queue"):
        _thread.queue = _Queue()
    return _thread.queue


def page_locked(shape, dtype, device):
    tensor = torch.zeros(tuple(shape), dtype=dtype)
    if device != HOST:
        _check(device)
        _page_locked.add(tensor.untyped_storage().data_ptr())
    return tensor


def now(device):
    if device == HOST:
        return Event(None, 0)
    _check(device)
    return Event(_queue_of_thread(), _queue_of_thread().add(lambda: None))


def copy(out, source, device):
    queue_copy(out, source, device)
    return now(device)


def queue_copy(out, source, device):
    if device == HOST:
        out.copy_(source)
        return
    _check(device)
    if source.untyped_storage().data_ptr() not in _page_locked:
        source = source.clone()
    _queue_of_thread().add(lambda: out.copy_(source))


class CopyStream:
    def __init__(self, device):
        self._device = device
        self._queue = _Queue()
        if device != HOST:
            _check(device)

    def copy(self, pairs, after):
        _check(self._device)
        self._queue.add(after.wait)
        position = 0
        for out, source in pairs:
            position = self._queue.add(lambda out=out, source=source: out.copy_(source))
        return Event(self._queue, position)


def mapped(memory, device):
    _check(device)
    return torch.from_numpy(memory)


class Recording:
    """Calls the function again each time; it finds its inputs where they were."""

    def __init__(self, function, generator=None):
        self._function = function
        results = function()
        self.results = None if results is None else tuple(tensor.clone() for tensor in results)

    def replay(self):
        results = self._function()
        if results is not None:
            for result, new in zip(self.results, results, strict=True):
                result.copy_(new)
        return self.results


def shared_zeros(shape, device):
    _check(device)
    if _FAULT == "allocate":
        raise SharingError("not supported")
    return _shared_tensor(SharedArrays([Field("memory", shape, "float32")]))


def send(memory, to):
    _check("cuda:0" if getattr(_thread, "device", HOST) == HOST else _thread.device)
    if _FAULT == "send":
        raise SharingError("not supported")
    arrays = _shared[memory.untyped_storage().data_ptr()]
    to.send(memory.shape)
    reduction.send_handle(to, arrays._fd, None)


def receive(sender):
    shape = tuple(sender.recv())
    fd = reduction.recv_handle(sender)
    if _FAULT == "map":
        raise SharingError("invalid resource handle")
    fields = [Field("memory", shape, "float32")]
    return _shared_tensor(SharedArrays(fields) if _FAULT == "stale" else SharedArrays(fields, fd))


def _shared_tensor(arrays):
    tensor = torch.from_numpy(arrays["memory"])
    _shared[tensor.untyped_storage().data_ptr()] = arrays
    return tensor


def forget_killed(pid):
    pass
