"""The device's part of a batch by recorded kernels (CUDA graphs), for batches of a few sizes.

It is some hundred copies and kernels of a few microseconds each. To queue them one by one from Python takes longer than
the GPU needs for them, and keeps a core busy that could simulate. A recording is queued at once: from the observations
that wait on the host to the answers that come back there.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sf.envs import ActionSpec
from sf.model.acting import DRAWS, are_close
from sf.system import gpu
from sf.system.messages import say

_SMALLEST = 8  # actors of a recording

Results = tuple[Tensor, Tensor]


class RecordedBatches:
    """Queues batches, each as a recording of the next of a few sizes.

    Rows beyond those of a batch hold what was there before; all rows are computed apart from each other. A size is
    recorded when it is first asked for.
    """

    def __init__(
        self,
        queue: Callable[[int], None],
        results: Callable[[int], Results],
        generator: torch.Generator,
        action_spec: ActionSpec,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        """queue: queues a batch of so many rows; what it reads and writes on the host stays where it is, and has rows
        for each size. results: its answers and states, on the host, as `Acting` gives them. generator: that it draws
        from. dtype: of the network's trunk."""
        self._queue = queue
        self._results = results
        self._generator = generator
        self._action_spec = action_spec
        self._dtype = dtype
        self._device = device
        self._recorded: dict[int, gpu.Recording | None] = {}  # by size; None where there was no memory for it
        self._is_given_up = False

    def __call__(self, num: int) -> None:
        """Queue a batch of so many rows."""
        recorded = None if self._is_given_up else self._recorded_for(num)
        if recorded is None:
            self._queue(num)
        else:
            recorded.replay()

    def _recorded_for(self, num: int) -> gpu.Recording | None:
        """None from the first time on that there can be none."""
        size = size_for(num)
        if size not in self._recorded:
            is_first = not any(self._recorded.values())
            drawn = self._generator.get_state()
            try:
                recorded = gpu.Recording(lambda: self._queue(size), self._generator)
                self._recorded[size] = recorded
                if is_first and not self._agrees(recorded, num):
                    self._give_up("its results differ from those of the network")
            except torch.OutOfMemoryError:  # the sizes that are there stay
                self._recorded[size] = None
                say(f"no memory is left on the GPU to record the policy's step for up to {size} actors")
            except RuntimeError as error:
                self._give_up(str(error).splitlines()[0])
            finally:
                self._generator.set_state(drawn)  # what is drawn next does not depend on what was recorded
        return None if self._is_given_up else self._recorded[size]

    def _agrees(self, recorded: gpu.Recording, num: int) -> bool:
        """Whether it gives what the kernels give one by one, with the same random numbers, for the rows of a batch:
        beyond them may be anything."""
        ways = (recorded.replay, lambda: self._queue(size_for(num)))
        found, expected = (self._all_drawn(way, num) for way in ways)
        return are_close(found, expected, self._action_spec, self._dtype)

    def _all_drawn(self, way: Callable[[], None], num: int) -> Results:
        """The results of so many draws of actions that a single one does not decide."""
        drawn = []
        for seed in range(-(-DRAWS // num)):
            self._generator.manual_seed(seed)
            way()
            gpu.now(self._device).wait()
            drawn.append([tensor.clone() for tensor in self._results(num)])
        answers, states = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        return answers, states

    def _give_up(self, why: str) -> None:
        self._is_given_up = True
        self._recorded.clear()
        say(f"the policy's step is not recorded for the GPU ({why}), so it runs kernel by kernel, which is slower")


def size_for(num_actors: int) -> int:
    """The next power of two, or three quarters of it: at most half as many again, and 8 at least."""
    power = max(_SMALLEST, 1 << max(0, num_actors - 1).bit_length())
    smaller = power * 3 // 4
    return smaller if num_actors <= smaller >= _SMALLEST else power
