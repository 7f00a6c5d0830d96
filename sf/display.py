"""What a person sees while a run goes on: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


class Display:
    """Shows records as they come."""

    def __init__(self, title: str, target_frames: int | None, target_seconds: float | None) -> None:
        self._title = title
        self._target_frames = target_frames
        self._target_seconds = target_seconds
        self.console = Console(soft_wrap=not Console().is_terminal)
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live = Live(console=self.console, auto_refresh=False, transient=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def say(self, line: str) -> None:
        """One event, one line. What nobody can read, since the terminal is gone or the disk full, ends no run."""
        with suppress(OSError):
            self.console.print(line, highlight=False, markup=False)

    def show(self, record: dict[str, Any], bottleneck: str) -> None:
        if self._live is None:
            self.say(self._line(record, bottleneck))
        else:
            with suppress(OSError):
                self._live.update(self._panel(record, bottleneck), refresh=True)

    def _line(self, record: dict[str, Any], bottleneck: str) -> str:
        return (
            f"{_clock(record['seconds'])} frames {record['env_frames']:,} fps {record['env_frames_per_second']:,.0f} "
            f"return {_number(record['mean_return'])} episode {_number(record['mean_episode_steps'])} steps "
            f"lag {_number(record.get('train/lag_mean'))} eta {self._eta(record)} bottleneck {bottleneck}"
        )

    def _panel(self, record: dict[str, Any], bottleneck: str) -> Panel:
        facts = Table.grid(padding=(0, 2))
        for _ in range(6):
            facts.add_column(justify="right")
        facts.add_row(
            "frames", f"{record['env_frames']:,}", "fps", f"{record['env_frames_per_second']:,.0f}",
            "elapsed", _clock(record["seconds"]),
        )  # fmt: skip
        facts.add_row(
            "return", _number(record["mean_return"]), "episode", f"{_number(record['mean_episode_steps'])} steps",
            "ETA", self._eta(record),
        )  # fmt: skip
        facts.add_row(
            "lag", f"{_number(record.get('train/lag_mean'))} (max {_number(record.get('train/lag_max'))})",
            "episodes", f"{record['episodes']:,}", "loss", _number(record.get("train/loss")),
        )  # fmt: skip
        shares = Table.grid(padding=(0, 2))
        for role in ("rollout", "policy", "learner"):
            waits = [f"waits {100 * record[f'{role}/wait_share']:.0f}%"]
            if role == "rollout":
                waits.append(f"for slots {100 * record['rollout/slot_wait_share']:.0f}%")
            busy = record[f"{role}/busy_share"]
            shares.add_row(role, ProgressBar(100, 100 * busy, width=24), f"{100 * busy:.0f}% busy", ", ".join(waits))
        parts: list[RenderableType] = [facts, shares, Text(f"bottleneck: {bottleneck}")]
        share_done = self._share_done(record)
        if share_done is not None:
            parts.insert(0, ProgressBar(1.0, share_done))
        return Panel(Group(*parts), title=self._title)

    def _share_done(self, record: dict[str, Any]) -> float | None:
        done = []
        if self._target_frames:
            done.append(record["env_frames"] / self._target_frames)
        if self._target_seconds:
            done.append(record["seconds"] / self._target_seconds)
        return min(1.0, max(done)) if done else None

    def _eta(self, record: dict[str, Any]) -> str:
        remaining = []
        if self._target_frames and record["env_frames_per_second"] > 0:
            frames_left = self._target_frames - record["env_frames"]
            remaining.append(max(0.0, frames_left) / record["env_frames_per_second"])
        if self._target_seconds:
            remaining.append(max(0.0, self._target_seconds - record["seconds"]))
        return _clock(min(remaining)) if remaining else "-"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
