"""The record of files of tasks."""

from __future__ import annotations

from sf.envs.family import Entry, Family
from sf.envs.options import EnvOptions
from sf.envs.tasks.file import PREFIX, read_tasks, shipped_names
from sf.envs.tasks.options import TaskOptions


def _find(env_id: str) -> Entry:
    from sf.envs.tasks import group  # noqa: PLC0415  it asks the registry, which imports this module

    return Entry(group.describe, group.make_group, group.make_rendered_group, takes_wrappers=True)


def _env_ids() -> list[str]:
    return [PREFIX + name for name in shipped_names()]


def _preset(env_id: str, options: EnvOptions) -> str | None:
    return read_tasks(env_id).preset


TASKS = Family(
    name="tasks",
    about="several environments for one policy, tasks:FILE.yaml, docs/many_tasks.md",
    pattern=rf"{PREFIX}.+",
    find=_find,
    env_ids=_env_ids,
    options=TaskOptions,
    preset=_preset,
)
