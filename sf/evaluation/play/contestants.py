"""Those who play, and the options of their environment, as the flags of `sf-eval`, `sf-enjoy`, `sf-play` name them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import yaml

from sf.config import Config
from sf.config.roles import Roles, kinds_played, roles_of
from sf.config.trust import SEARCH
from sf.envs import EnvOptions, EnvSpec, as_evaluated, describe, flags_for_training
from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.errors import UsageError
from sf.envs.groups.policy_spec import spec_of_kinds
from sf.envs.spaces import space_json
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.space_json import layouts
from sf.evaluation.play import opponents
from sf.evaluation.play.named_checkpoint import config_of, find_trusted, num_policies, spaces_of
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.torch_policy import without
from sf.search.search import SearchSettings
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.zoo.places import located
from sf.system.messages import said_to, warn

Contestant = Checkpoint | Opponent


@dataclass(frozen=True)
class Contest:
    """Holds the players and what they play.

    players: by name, the policies of the first run ahead of all others. config: of the first policy, or with the
    environment alone. options: of its environment, as they are overridden. num_own: how many the first run has.
    """

    players: Mapping[str, Contestant]
    config: Config
    options: EnvOptions
    num_own: int

    def searching(self, asked: SearchSettings | None) -> Contest:
        """Returns the same in which the policies of the first run search before each move; None: as they are.

        Raises UsageError where they cannot.
        """
        if asked is None:
            return self
        players: dict[str, Contestant] = {}
        for idx, (name, each) in enumerate(self.players.items()):
            if idx < self.num_own and isinstance(each, Checkpoint):
                named = f"{SEARCH}{asked.num_simulations}:{name}"
                spaces, data = spaces_of(each, name), checkpoint.encode(each)
                searcher = Opponent(named, self.config.run.env, self.options, *spaces, data, asked)
                searcher.player()  # what is wrong with it is said now
                players[named] = searcher
            else:
                players[name] = each
        options = opponents.with_single_envs(tuple(players), self.options)
        return dataclasses.replace(self, players=players, options=options)

    def roles(self, spec: EnvSpec) -> Roles:
        """Returns the players that may play each agent of the environment, see `sf.config.roles`.

        Raises UsageError for players that are not all policies of a run with roles, and those alone.
        """
        population = self.config.population
        if population.policy_of is None:
            return ()
        if len(self.players) != population.num_policies:
            raise UsageError(
                "the policies of this run have roles (policy_of), so all of them play, and nobody else: leave out "
                "--policy and --against"
            )
        return roles_of(population, spec, self.config.run.env)


def find_contest(
    run: Path,
    against: tuple[str, ...],
    which: str,
    policy_id: int | None,
    override: tuple[str, ...] = (),
    is_trusted: bool = False,
) -> Contest:
    """Finds the policies of `run`, and whom they play against. Raises ValueError if one cannot be found or made."""
    paths = tuple(Path(named) for named in against if not opponents.is_name(named))
    found: dict[str, Contestant] = {**find_policies(run, paths, which, policy_id, is_trusted)}
    name, first = next(iter(found.items()))
    assert isinstance(first, Checkpoint)
    config = config_of(first, name)
    options = config.evaluated_environment
    # Teams that are named for the evaluation alone do not add an index that nobody was trained with.
    if options.show_agent == "auto" and not any(_may_see_index(each) for each in found.values()):
        options = dataclasses.replace(options, show_agent=False)
    options = opponents.with_single_envs(against, overridden(options, override))
    if any(map(opponents.is_name, against)):
        obs_space, action_space = spaces_of(first, name)
        found |= _opponents(against, config.run.env, options, obs_space, action_space, is_trusted)
    return Contest(found, config, options, num_policies(located(run)) if policy_id is None else 1)


def _may_see_index(player: Contestant) -> bool:
    """Returns whether a policy sees `agent_index`, or does not say what it sees."""
    return isinstance(player, Opponent) or AGENT_INDEX in json.dumps(player.state.get("obs_space", AGENT_INDEX))


def contest_in(env: str, named: tuple[str, ...], override: tuple[str, ...] = (), is_trusted: bool = False) -> Contest:
    """Makes a contest without policies. Raises ValueError as `overridden` does, and if a player cannot be made."""
    options = opponents.with_single_envs(named, overridden(as_evaluated(env, EnvOptions()), override))
    spec = describe(env, options)
    if spec.num_agents == 1 and spec.advisers:  # a bot is none of the agents, and plays by what it says
        options = opponents.with_advice(named, options)
    players = _opponents(named, env, options, spec.native_obs_space, spec.action_space, is_trusted)
    return Contest(players, Config().replace(env=env), options, num_own=0)


def find_opponents(
    env: str, options: EnvOptions, spec: EnvSpec, against: tuple[str, ...], which: str, is_trusted: bool = False
) -> dict[str, Contestant]:
    """Finds the opponents of a person. Raises ValueError as `find_contest`, and for other spaces than `spec` has."""
    paths = [Path(named) for named in against if not opponents.is_name(named)]
    found: dict[str, Contestant] = {}
    if paths:
        policies = find_policies(paths[0], tuple(paths[1:]), which, None, is_trusted)
        for space, of_env in (("obs_space", spec.native_obs_space), ("action_space", spec.action_space)):
            expected = json.loads(json.dumps(space_json.to_json(of_env)))
            for name, policy in policies.items():
                if policy.state.get(space) != expected:
                    raise ValueError(
                        f"against: {name} has another {space} than {env}: name a policy of this environment"
                    )
        found |= policies
    return found | _opponents(against, env, options, spec.native_obs_space, spec.action_space, is_trusted)


def require_spaces(
    players: Mapping[str, Contestant], env: str, spec: EnvSpec, options: EnvOptions, roles: Roles = ()
) -> None:
    """Raises ValueError where a policy was trained with other observations or actions than `env` has now for the agents
    that it plays.

    Those of another size would fail later; others of the same size would be misread without a word. spec: of `env`
    with these options. roles: the players that may play each agent.
    """
    for idx, (name, each) in enumerate(players.items()):
        if isinstance(each, Opponent) or "obs_space" not in each.state:  # an older checkpoint does not say
            continue
        flags = each.state["config"]
        hidden = (*flags.get("critic_obs", ()), *flags.get("teacher_obs", ()))
        obs_space, action_space = spaces_of(each, name)
        theirs = layouts(ObsWriter(name, without(obs_space, hidden)).space, action_space)
        for played in (spec, spec_of_kinds(env, spec, kinds_played(roles, spec, idx), options)):
            own = layouts(cast("gym.spaces.Dict", without(played.obs_space, hidden)), played.action_space)
            if theirs == own:
                break
        else:
            what = next(what for what in theirs if theirs[what] != own[what])
            raise ValueError(
                f"the {what} of {env} are {own[what]}, and those that {name} was trained with are {theirs[what]}: name "
                "another policy, or the --env_kwargs that it was trained with"
            )


def _opponents(
    against: tuple[str, ...],
    env: str,
    options: EnvOptions,
    obs_space: gym.Space,
    action_space: gym.Space,
    is_trusted: bool,
) -> dict[str, Contestant]:
    """Makes the opponents that are no policies."""
    names = filter(opponents.is_name, against)
    return {name: Opponent.named(name, env, options, obs_space, action_space, is_trusted) for name in names}


def find_policies(
    run: Path, against: tuple[Path, ...], which: str, policy_id: int | None, is_trusted: bool = False
) -> dict[str, Checkpoint]:
    """The policies by name, those of `run` first.

    which: latest or best, of a run. policy_id: which of `run` alone; None: all of them. Raises ValueError where one is
    missing, where they cannot play the same environment, and where one names code that nobody vouches for.
    """
    if policy_id is not None and located(run).is_file():
        raise ValueError(f"policy is {policy_id}, but {run} is a checkpoint, which has one policy: leave it out")
    if which not in ("latest", "best"):
        raise ValueError(f"checkpoint is {which!r}: latest, best, or the path of a file in place of the run")
    paths = [run, *against]
    if which != "latest" and all(located(path).is_file() for path in paths):
        raise ValueError(f"checkpoint is {which!r}, but {run} is a checkpoint itself: leave it out, or name its run")
    found: dict[str, Checkpoint] = {}
    num_own = 0
    for number, named in enumerate(paths):
        path = located(named)
        if path.suffix in (".onnx", ".pt2"):
            raise ValueError(
                f"{path} is an export, for load_policy: name the run or the checkpoint that it was made from"
            )
        for wanted in range(num_policies(path)) if policy_id is None or number > 0 else [policy_id]:
            of_run = "latest" if path.is_file() else which
            with said_to(warn):
                file, saved = find_trusted(path, of_run, wanted, is_trusted)
            name = str(file.with_suffix("").relative_to(path.parent) if path == named else named)
            if name in found and path.is_file():  # the same name in another folder
                name = str(named)
            while name in found:
                name += "'"
            found[name] = saved
            num_own += number == 0
    (first_name, first), *others = found.items()
    for name, other in others[num_own - 1 :]:  # those of one run may have the spaces of their roles
        for space in ("obs_space", "action_space"):
            if other.state.get(space) != first.state.get(space):
                raise ValueError(
                    f"against: {name} has another {space} than {first_name}: both need the same environment"
                )
    return found


def overridden(options: EnvOptions, override: tuple[str, ...]) -> EnvOptions:
    """`options` with each NAME=VALUE applied. Raises ValueError for an unknown name, or a wrong value."""
    known = {field.name: field for field in dataclasses.fields(EnvOptions)}
    changed: dict[str, Any] = {}
    for assignment in override:
        name, equals, value = assignment.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"override is {assignment!r}: write NAME=VALUE, with a name among {', '.join(sorted(known))}"
            )
        if name in flags_for_training():
            raise ValueError(f"override is {assignment!r}: {name} is for training alone, so leave it out")
        changed[name] = value if known[name].type == "str" else _parsed(assignment, value)
    try:
        return dataclasses.replace(options, **changed)
    except TypeError:
        raise ValueError(f"override is {' '.join(override)!r}: a value has the wrong type") from None


def _parsed(assignment: str, value: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ValueError(f"override is {assignment!r}: {value!r} cannot be read as YAML; quote it") from None
