"""Acting by a compiled program on a CPU, which a process beside the policy worker makes while it goes on without.

A policy worker spends most of its time between the operations of the network: in Python, and in PyTorch's way from one
operation to the next. A program has none of that (`sf.native.programs`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import sf.model
from sf.model.acting import Acting
from sf.native import programs
from sf.native.library import CompilerError
from sf.native.programs import Program
from sf.processes.maker import BEGINS_AFTER_S, Maker

_TOLERANCE = {torch.bfloat16: 0.1, torch.float32: 1e-3}  # of log-probabilities, values and states, by the trunk's dtype


class CompiledActing:
    """Stands for an `Acting`, and computes the same: with a program where that is there.

    Call `look` now and then: it sees to the program.
    """

    def __init__(
        self, acting: Acting, example: tuple[Any, ...], made_from: str, dtype: torch.dtype, say: Callable[[str], None]
    ) -> None:
        """example: inputs with a batch of `programs.BATCH`. made_from: all that the network was built from. say: to
        the user."""
        self._acting = acting
        self._example = example
        self._say = say
        self._tolerance = _TOLERANCE[dtype]
        self._program: Program | None = None
        self._is_checked = False
        self._is_given_up = False
        self._maker: Maker | None = None
        self._begins_at = time.monotonic() + BEGINS_AFTER_S
        try:
            self._path = programs.path_of(acting, example, [made_from, *_code_of_models()])
            self._load_if_there()
        except CompilerError as error:
            self._give_up(str(error))

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        """See `Acting.forward`."""
        if self._program is None or len(inputs[1]) < 2:  # one alone is no batch for PyTorch's compiler
            return self._acting(*inputs)
        answers, state = self._program(*inputs)
        if not self._is_checked:
            expected = self._acting(*inputs)
            self._is_checked = True
            if not self._agree((answers, state), expected):
                self._program = None
                self._path.unlink(missing_ok=True)  # made of code that was another: the next run makes it anew
                self._give_up("its results differ from those of the network")
                return expected
        return answers, state

    def look(self) -> None:
        """Begin to make the program when it is time, and take it when it is made."""
        if self._program is not None or self._is_given_up:
            return
        if self._maker is None:
            if time.monotonic() > self._begins_at:
                self._maker = Maker(self._make, self._path)
            return
        why_not = self._maker.outcome()
        if why_not is None:
            return
        self._maker = None
        try:
            if why_not or not self._load_if_there():
                self._give_up(why_not or "no file was made")
            else:
                self._say("the policy's step is compiled from here on; the next run of this network begins with that")
        except CompilerError as error:
            self._give_up(str(error))

    def close(self) -> None:
        if self._maker is not None:
            self._maker.kill()

    def _make(self) -> None:
        programs.make(lambda: programs.followed(self._acting, self._example), self._path)

    def _load_if_there(self) -> bool:
        if not programs.is_there(self._path):
            return False
        self._program = Program(self._path, self._acting)
        return True

    def _give_up(self, why: str) -> None:
        self._is_given_up = True
        self._say(f"the policy's step is not compiled ({why}), so it runs with PyTorch's operations, which is slower")

    def _agree(self, found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
        """Most actions, since rounding decides between two nearly as probable ones; log-probabilities where they do."""
        first_float = expected[0].shape[1] - self._example[4].shape[1] - 2
        same = (found[0][:, :first_float] == expected[0][:, :first_float]).all(dim=1)
        floats = [packed[:, first_float:].contiguous().view(torch.float32) for packed in (found[0], expected[0])]
        pairs = (
            [each[same] for each in floats],
            [each[:, -1] for each in floats],  # values
            [found[1], expected[1]],
        )
        is_close = (torch.allclose(a, b, rtol=self._tolerance, atol=self._tolerance) for a, b in pairs)
        return bool(same.float().mean() >= 0.5) and all(is_close)


def _code_of_models() -> list[str]:
    """What classes of networks call besides what stands in their own files."""
    return [file.read_text() for file in sorted(Path(sf.model.__file__).parent.rglob("*.py"))]
