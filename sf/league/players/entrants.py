"""The players that `--players` names, and the ratings at which `--reference_ratings` holds them, found before a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import gymnasium as gym

from sf.envs import EnvOptions, EnvSpec
from sf.envs.errors import UsageError
from sf.evaluation.play import opponents
from sf.evaluation.play.named_checkpoint import find_checkpoint, num_policies, require_known_code
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.league import record, reference
from sf.league.players.snapshots import kept_at
from sf.league.record import Player, policy_name
from sf.storage.checkpoint import Checkpoint, load, weights_of
from sf.storage.zoo.places import located
from sf.system.messages import said_to, say, warn

Entrant = Checkpoint | Opponent

_OWN_NAME = re.compile(r"policy_\d+(_\d+)?|beginning_\d+")  # of policies that learn, snapshots, exploiters' beginnings
_MOST_BYTES = 200


def find_entrants(
    named: Sequence[str],
    env: str,
    options: EnvOptions,
    spec: EnvSpec,
    run_dir: Path,
    is_trusted: bool = False,
    resumes: bool = True,
    of_roles: Sequence[EnvSpec] = (),
    operate: Callable[[Checkpoint, str], Checkpoint] | None = None,
) -> dict[str, Entrant]:
    """Finds players by their names in the pool, in the same order. All policies of a run with several are included.

    run_dir: of the run, which has copies of the players that it has met before: they are taken where originals are
    gone. resumes: whether the run goes on with what is there. of_roles: the specs of the policies of each role, of
    which a player needs one; empty: all have `spec`. operate: gives a player with other spaces those of the run, where
    it can; it is given its file, too. One that was operated on before has its copy in `run_dir`.
    Raises ValueError where a player cannot be found or loaded, plays another environment, or is named twice.
    """
    found: dict[str, Entrant] = {}
    for player, policy_id, name in _one_by_one(named, run_dir, resumes):
        if name in found:
            raise UsageError(f"players names {player!r} twice, or another one that is called {name}, too: name it once")
        if opponents.is_name(player):
            spaces = spec.native_obs_space, spec.action_space
            found[name] = Opponent.named(player, env, options, *spaces, is_trusted)
            continue
        try:
            file, saved = _original_or_copy(player, policy_id, kept_at(run_dir, name), is_trusted)
            policy = TorchPolicy(saved, str(file))
            if not any(_has_spaces_of(policy, its) for its in of_roles or (spec,)):
                if resumes and kept_at(run_dir, name).is_file():
                    file, saved = find_checkpoint(kept_at(run_dir, name))
                elif operate is not None:
                    saved = operate(saved, str(file))
                policy = TorchPolicy(saved, str(file))
        except ValueError as error:
            raise UsageError(f"players names {player!r}: {error}") from None
        if not any(_has_spaces_of(policy, its) for its in of_roles):
            _require_spaces(policy, spec, player, env)
        if resumes and file != kept_at(run_dir, name):
            _say_where_the_copy_differs(player, saved, kept_at(run_dir, name))
        found[name] = saved
    return found


def fitting_roles(entrants: Mapping[str, Entrant], of_roles: Sequence[EnvSpec]) -> dict[str, set[int]]:
    """Returns by name the roles whose spaces a player has. of_roles: the spec of each role."""
    found = {}
    for name, entrant in entrants.items():
        policy = TorchPolicy(entrant, name) if isinstance(entrant, Checkpoint) else None
        found[name] = {role for role, spec in enumerate(of_roles) if policy is None or _has_spaces_of(policy, spec)}
    return found


def _has_spaces_of(policy: TorchPolicy, spec: EnvSpec) -> bool:
    """Returns whether a policy sees and does what these agents do."""
    return policy.flat_obs_space == _seen(policy, spec) and policy.action_space == spec.action_space


def _seen(policy: TorchPolicy, spec: EnvSpec) -> gym.spaces.Dict:
    return gym.spaces.Dict({key: box for key, box in spec.obs_space.items() if policy.sees(key)})


def _require_spaces(policy: TorchPolicy, spec: EnvSpec, player: str, env: str) -> None:
    """Raises UsageError for a policy of other observations or actions. player: as the user names it."""
    for what, theirs, ours in (
        ("observations", policy.flat_obs_space, _seen(policy, spec)),
        ("actions", policy.action_space, spec.action_space),
    ):
        if theirs != ours:
            raise UsageError(
                f"players names {player!r}, whose {what} are {_short(theirs)}, and those of {env} are {_short(ours)}: "
                "name a player of the same environment"
            )


def _say_where_the_copy_differs(player: str, saved: Checkpoint, copy: Path) -> None:
    try:
        is_same = not copy.is_file() or weights_of(load(copy)) == weights_of(saved)
    except (OSError, ValueError):  # the player worker says what is wrong with it
        return
    if not is_same:
        warn(f"players names {player!r}, whose weights have changed since it joined: {copy} plays on")


def _one_by_one(named: Sequence[str], run_dir: Path, resumes: bool) -> Iterator[tuple[str, int, str]]:
    """Yield what was named, the policy of that run, and the name that it has in the pool."""
    for player in named:
        if opponents.is_name(player):
            yield player, 0, player
            continue
        name = _file_name(player)
        # Runs of earlier versions met the first policy alone, by the name of its run, and go on with it.
        is_alone = resumes and kept_at(run_dir, name).is_file()
        num = 1 if is_alone else _num_policies(player, kept_at(run_dir, name))
        for policy_id in range(num):
            yield player, policy_id, name if num == 1 else f"{name}_{policy_name(policy_id)}"


def _num_policies(player: str, copy: Path) -> int:
    """Returns the policies of a run, also of copies of one that is gone, or 1 for all else, which others refuse."""
    try:
        path = located(Path(player))
        if path.exists():
            return num_policies(path)
    except ValueError:
        pass
    return len(list(copy.parent.glob(f"{copy.stem}_policy_[0-9][0-9]{copy.suffix}"))) or 1


def _original_or_copy(player: str, policy_id: int, copy: Path, is_trusted: bool) -> tuple[Path, Checkpoint]:
    """A copy stands in for an original that is gone or damaged, not for one whose code nobody vouches for."""
    with said_to(warn):
        try:
            file, saved = find_checkpoint(located(Path(player)), "latest", policy_id)
        except ValueError as error:
            if not copy.is_file():
                raise
            say(f"{error}. {copy} plays in its place")
            file, saved = find_checkpoint(copy, "latest", 0)
    require_known_code(saved, file, is_trusted)
    return file, saved


def _file_name(player: str) -> str:
    """Returns the last two parts of the path of a run or checkpoint, but no name that the run gives to its own."""
    parts = Path(player.removesuffix(".safetensors")).parts[-2:]
    name = re.sub(r"(?:[^\w.-]|_)+", "_", "_".join(parts)).strip("._")
    if len(name.encode()) > _MOST_BYTES:  # of the name of a file
        name = f"{name[:40]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return name if name and not _OWN_NAME.fullmatch(name) else f"player_{name}".rstrip("_")


def _short(space: gym.Space) -> str:
    return " ".join(str(space).split())


def find_reference(
    named: str | None, played: str, entrants: Mapping[str, Entrant], run_dir: Path, resumes: bool
) -> Mapping[str, float]:
    """The ratings at which players of the pool are held, by their names there. None: nobody is.

    played: see `sf.league.reference.played`. run_dir: of the run. resumes: whether it goes on with what is there: the
    players of its record are those that have joined it, and the ratings of its record stay where the file is gone.
    Raises ValueError where the file has no ratings of these players.
    """
    if named is None:
        return {}
    path = run_dir / record.NAME
    is_there = resumes and path.is_file()
    try:
        pool = reference.read(Path(named))
    except FileNotFoundError:
        if is_there and (before := record.reference_of(path)):
            warn(f"reference_ratings is {named}, which is gone. The ratings in {path} stay")
            return before
        raise UsageError(
            f"reference_ratings is {named}, and there is no such file: name one that sf-league --json has written"
        ) from None
    except ValueError as error:
        raise UsageError(f"reference_ratings: {error}") from None
    joined = [player for player in record.players_of(path) if player.policy is None] if is_there else []
    known = {name: weights_of(each) if isinstance(each, Checkpoint) else None for name, each in entrants.items()}
    try:
        return pool.held(played, {**known, **identities(joined, run_dir)})
    except ValueError as error:
        raise UsageError(f"reference_ratings: {error}") from None


def identities(players: Iterable[Player], directory: Path) -> dict[str, str | None]:
    """Returns by name the fingerprint of the weights of a policy, or None for a player without weights.

    directory: of the record. A policy whose weights are neither in its row nor can be read there is left out.
    """
    found: dict[str, str | None] = {}
    for player in players:
        is_policy = (player.weights, player.path, player.policy, player.env_steps) != (None, None, None, None)
        weights = player.weights or _weights_of_copy(player, directory)
        if weights is not None or not is_policy:
            found[player.name] = weights
    return found


def _weights_of_copy(player: Player, directory: Path) -> str | None:
    if player.path is None:
        return None
    try:
        return weights_of(load(directory / player.path))
    except (OSError, ValueError):
        return None
