"""A probe: a row of the table, what it is told of the run, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sf.config import Config
    from sf.envs.custom.given import GivenEnv

Status = Literal["ok", "FAILS", "note", "skipped"]


@dataclass(frozen=True)
class Needs:
    """What a run with these flags asks of the machine."""

    train_dir: str
    device: str  # auto, cpu or cuda
    num_workers: int
    num_envs: int
    num_policies: int
    num_policy_workers: int  # of all policies
    num_slots: int  # of one agent an environment
    config: Config | None = None  # where the flags name an environment or a preset
    given_env: GivenEnv | None = None  # where that environment was given as an object


@dataclass(frozen=True)
class Probe:
    """A row of the table.

    function: "module:function". Only the process that calls it imports it, so the table can be read without torch. It
    takes `Needs`, or with `on_gpu` the device and a pipe to each partner. It returns its finding, and raises ProbeError
    or any other exception where something is wrong.

    advice: what to do then, in one sentence or a few. matters: training depends on it; else a failure is only worth a
    note. partners: "module:function" of processes beside it, each of which gets its end of the pipe.
    """

    name: str
    function: str
    advice: str
    matters: bool = True
    on_gpu: bool = False
    of_run: bool = False  # skipped where the flags name none
    with_torch: bool = False
    partners: tuple[str, ...] = ()
    limit_s: float = 30.0


class ProbeError(Exception):
    """Its message says what was expected and what came instead."""


@dataclass(frozen=True)
class Outcome:
    name: str
    status: Status
    text: str  # what was found
    advice: str = ""  # what to do about it, where something is wrong
    seconds: float = 0.0
