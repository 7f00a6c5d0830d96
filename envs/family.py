"""A family of environments, as one record: what the rest of the system knows of it.

A family is a folder of `envs/`, or a module in `envs/libraries/`, with its record, and a line in the table of
`sf.envs.registry`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.options import EnvOptions
from sf.envs.spaces.symmetries import Symmetry


class MakeGroup(Protocol):
    """See `sf.envs.make_group`."""

    def __call__(
        self,
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup: ...


class MakeRenderedGroup(Protocol):
    """See `sf.envs.make_rendered_group`."""

    def __call__(
        self, env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup: ...


Describe = Callable[[str, EnvOptions], EnvSpec]
"""See `sf.envs.describe`."""


FindSymmetries = Callable[[str, EnvOptions], Sequence[Symmetry]]
"""See `sf.envs.symmetries`."""


@dataclass(frozen=True)
class Entry:
    """Describes and makes the environment of one name."""

    describe: Describe
    make_group: MakeGroup
    make_rendered_group: MakeRenderedGroup | None = None  # None: it cannot be drawn
    takes_wrappers: bool = False  # whether its groups put those of `env_wrappers` around their environments
    to_wrap: str = "wrap the environment where its group makes it"  # what to do for wrappers where it takes none
    symmetries: FindSymmetries | None = None  # None: nothing is known of any


@dataclass(frozen=True)
class Family:
    """Environments that are named and made in one way.

    The module of a record is imported with `sf.envs`, so it imports no simulator and no large library: `find` and
    `env_ids` do, when they are called.
    """

    name: str
    """In `sf-envs`."""

    about: str
    """What the names do not say, in one line of `sf-envs`."""

    pattern: str
    """A regular expression that its names match as a whole. Other names never reach `find`."""

    find: Callable[[str], Entry | None]
    """The entry of a name. None: the family has no such environment, and the families behind it are asked."""

    env_ids: Callable[[], Collection[str]] | None = None
    """Its names, none where the family is not installed. None: they cannot be listed."""

    listed: Callable[[Collection[str]], Iterable[str]] = lambda env_ids: env_ids
    """Those of `env_ids` that `sf-envs` lists by itself. The others are found by their names."""

    options: type[Any] | None = None
    """The dataclass of flags of its own, one of the parts of `sf.envs.options.EnvOptions`."""

    preset: str | Callable[[str, EnvOptions], str | None] | None = None
    """The flags that its names start from where none of `configs` is named like them; a function says it of a name and
    its options. None: those of their kind."""

    package: str | None = None
    """The one package that its names come from, where it needs one that is imported for nothing else."""

    install: str | None = None
    """How to install it, where it is an extra. A wrong name gets no hint of its names: that would import it."""

    against: Callable[[str], Mapping[str, Any]] | None = None
    """The `env_kwargs` by which an environment of one agent meets the opponent of a name, as a person types it:
    `sf-play ENV --against NAME`. Raises UsageError for a name that it does not know. None: it has no such opponents."""

    training_aids: Collection[str] = ()
    """Flags among `options` that make training easier and are no part of the task: in evaluations they have their
    defaults."""

    writes_files: Collection[str] = ()
    """Names in `env_kwargs` that say where an environment writes files. A file that has one of them is obeyed only if
    the user trusts it."""

    code_of: Callable[[str], str | None] = lambda env_id: None
    """The file of the code that a name has run, beside that of installed packages; None: there is none.

    A file that names such an environment is obeyed only if the user trusts it. Imports nothing.
    """

    def may_have(self, env_id: str) -> bool:
        """Returns whether the name looks like those of the family."""
        return re.fullmatch(self.pattern, env_id, re.DOTALL) is not None
