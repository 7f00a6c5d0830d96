"""`sf-psro`: grow a population by best responses, towards an equilibrium."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sf.config import Config, RunConfig
from sf.config.older import BEFORE_THE_FLAG, env_before
from sf.config.trust import TRUST, require_trusted
from sf.envs.field_types import require
from sf.storage import run_lock
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli
from sf.tools.psro.flags import default_end, require_even, require_no_run, require_response, say, saying_how_to_go_on
from sf.tools.report.outputs import require_outputs, write_json

if TYPE_CHECKING:
    from sf.tools.psro.record import Iteration, Population, SeatIteration

_DESCRIPTION = """\
Policy-space response oracles: each iteration trains a best response to a mixture of all players before it, fills in the
table of payoffs, and solves the game among them. The first player makes random moves. All flags of sf-train are
accepted; --train_for_env_steps is that of one best response. The search can be stopped at any moment: the same command
goes on.

  sf-psro --env openspiel:kuhn_poker --iterations 10 --train_for_env_steps 50000
"""
_DEFAULT_STEPS = 100_000  # of a best response
_OBJECTIVE = "pbt_target_objective"  # by which matches are judged


@dataclass(frozen=True)
class PsroFlags:
    """How the population grows."""

    iterations: int = 10
    """Best responses to train."""

    meta_solver: Literal["nash", "uniform", "latest", "alpharank"] = "nash"
    """What the next best response is trained against. nash: the equilibrium of the game among all players. uniform: all
    alike (fictitious play). latest: the last one. alpharank: by alpha-rank, which needs OpenSpiel."""

    population_per_seat: bool | Literal["auto"] = "auto"
    """Search with a population for each seat: each team, or each agent. false: one network plays all seats. auto: where
    they differ in their size or in the kinds of their agents, where there are more than two, and in games of OpenSpiel
    that are not zero-sum. If there are more than two seats, or the game is not zero-sum, take the meta_solver alpharank
    or uniform."""

    matches: int = 200
    """Matches of each pair of players, where payoffs cannot be computed exactly; an even number, but for a search that
    was begun with an odd one."""

    warm_start: bool = True
    """Begin each best response with the weights of the one before."""

    json: Path | None = None
    """Write the iterations to this file, too."""

    png: Path | None = None
    """Draw exploitability against env steps, the table of payoffs, and the mixtures, to this file: .png, .svg or .pdf.
    Needs the extra plot."""

    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        for name in ("iterations", "matches"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: at least 1")


def main() -> None:
    """Search, print a line an iteration; end with 0, 1 after a failure, 2 after a user's mistake, 128 + a signal."""
    args = sys.argv[1:]
    try:
        defaults = {**_of_the_responses(args), **default_end(args, _DEFAULT_STEPS)}
    except ValueError as error:
        cli.fail(str(error))
    config = cli.starting_config(args, defaults)
    flags = cli.parse_flags(PsroFlags, "sf-psro", _DESCRIPTION, args, PsroFlags(config=config))
    with cli.exit_status():
        _run(flags)


def _of_the_responses(args: Sequence[str]) -> dict[str, Any]:
    """Environment, sampler, network, learner and seed of the responses that a search has trained already: the next ones
    are like them, whatever the presets say by now. Raises ValueError where they name code that nobody vouches for, or
    where there is a run of sf-train in the place of a search."""
    from sf.tools.psro.record import RESPONSES  # noqa: PLC0415  numpy is slow to import: not for --help

    early = cli.early_flags(args)
    if "env" not in early:
        return {}
    run = RunConfig(**{name: early[name] for name in ("env", "train_dir", "experiment") if name in early})
    place = RunDir.at(run.train_dir, run.experiment_name)
    require_no_run(place.path)
    responses = place.path / RESPONSES
    for folder in () if "config" in early else sorted(responses.glob("policy_*"), reverse=True):
        run_dir = RunDir.at(str(responses), folder.name)
        try:
            saved = run_dir.saved_flags()
        except ValueError:
            continue  # a search says itself what is damaged
        if saved is not None:
            require_trusted(saved, str(run_dir.config), early.get(TRUST, False), named_by_user=early)
            config = Config()
            parts = (config.environment, config.sampler, config.model, config.learner)
            names = {_OBJECTIVE, "seed", *(name for part in parts for name in vars(part))}
            before = {**BEFORE_THE_FLAG, **env_before(saved)}
            return {name: value for name, value in {**before, **saved}.items() if name in names}
    return {}


def _run(flags: PsroFlags) -> None:
    from sf import envs  # noqa: PLC0415  slow to import: not for --help
    from sf.tools.psro import judge, seat_judge  # noqa: PLC0415
    from sf.tools.psro.by_seat import SeatSearch  # noqa: PLC0415
    from sf.tools.psro.search import Search  # noqa: PLC0415
    from sf.tools.psro.seats import config_of_responses, is_by_seat, seats_of  # noqa: PLC0415

    require_outputs(flags.json, flags.png)
    config = flags.config
    spec = envs.describe(config.run.env, config.environment)
    require_response(config, "sf-psro itself says whom a best response meets")
    by_seat = is_by_seat(flags.population_per_seat, flags.meta_solver, config, spec)
    if not config.run.ends_by_steps:
        raise ValueError("train_for_env_steps is needed: it says how long a best response is trained")
    if config.environment.share_reward == "all":
        raise ValueError("share_reward is all, so nobody wins what another one loses: take team, or leave it out")
    if config.run.init_from is not None:
        raise ValueError(f"init_from is {config.run.init_from}: --warm_start says what a response begins with")
    directory = RunDir.at(config.run.train_dir, config.run.experiment_name).path
    if not by_seat:
        _require_fair_matches(flags.matches, directory)
    settings = {
        "env": config.run.env,
        **json.loads(json.dumps(vars(config.environment))),
        "meta_solver": flags.meta_solver,
        "warm_start": flags.warm_start,
        "train_for_env_steps": config.run.train_for_env_steps,
    }
    if config.run.train_for_env_frames is not None:
        settings["train_for_env_frames"] = config.run.train_for_env_frames
    start: Callable[[], Search | SeatSearch]
    if by_seat:
        seats = seats_of(spec)
        of_seats = seat_judge.seat_judge_of(config, spec, [seat.agents for seat in seats], flags.matches, say)
        is_exact, of_all = isinstance(of_seats, seat_judge.Exact), config_of_responses(config, spec)
        start = partial(SeatSearch, directory, of_all, seats, of_seats, flags.meta_solver, flags.warm_start, settings)
    else:
        of_players = judge.judge_of(config, spec, flags.matches, say)
        is_exact = isinstance(of_players, judge.Exact)
        start = partial(Search, directory, config, of_players, flags.meta_solver, flags.warm_start, settings)
    settings["is_exact"] = is_exact
    if not is_exact:  # payoffs in one table are by the same measure
        settings |= {"matches": flags.matches, _OBJECTIVE: config.population.pbt_target_objective}
    with run_lock.held(directory):
        search = start()
        for iteration in search.iterations:
            say(_line(iteration))
        with saying_how_to_go_on(lambda: f"stopped after {max(len(search.iterations) - 1, 0)} iterations"):
            for iteration in search.run(flags.iterations, say):
                say(_line(iteration))
    write_json(flags.json, [asdict(iteration) for iteration in search.iterations])
    if flags.png is not None:
        from sf.tools.psro.figure import draw  # noqa: PLC0415  matplotlib is an extra
        from sf.tools.report import style  # noqa: PLC0415

        style.save(draw(config.run.env, search.iterations), flags.png, "png")


def _require_fair_matches(matches: int, directory: Path) -> None:
    """Raises ValueError for an odd number, unless the search that is there was begun with it, or needs no matches."""
    from sf.tools.psro import record  # noqa: PLC0415  numpy is slow to import: not for --help

    begun = record.read(directory / record.NAME)
    if not begun or begun[0].settings.get("matches", matches) != matches:
        require_even(matches)


def _line(iteration: Iteration | SeatIteration) -> str:
    known = iteration.exploitability
    measured = "" if known is None else f"exploitability {known:.4f}, "
    populations = "; ".join(map(_of_population, iteration.populations))
    return f"iteration {iteration.iteration}: {measured}{iteration.env_steps:,} env steps, {populations}"


def _of_population(population: Population) -> str:
    shares = sorted(population.mixture.items(), key=lambda item: -item[1])[:4]
    mixture = ", ".join(f"{name} {share:.2f}" for name, share in shares if share >= 0.005)
    won = ""
    if population.response_value is not None:
        best = population.best_response_value
        won = f"the response won {population.response_value:.3f}" + ("" if best is None else f" of {best:.3f}") + ", "
    return f"{population.seat}{': ' if population.seat else ''}{won}mixture {mixture}"
