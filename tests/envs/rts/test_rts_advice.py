"""A bot does what it says that it would do, and nobody but a teacher's pupil hears of it."""

import numpy as np
import pytest

from sf import envs
from sf.config import Config
from sf.envs import EnvOptions, StepResult, UsageError
from sf.envs.rts.engine.ais import ADVISERS
from sf.envs.rts.games import Games, command_of
from sf.envs.rts.settings import settings
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.opponents import AdvisedPlayer, Opponent
from sf.evaluation.play.teachers import Adviser
from sf.model.distributions import IMPOSSIBLE
from sf.run.planning import make_plan
from sf.shared.rows import policy_keys
from sf.tools.commands import record
from sf.tools.commands.record import RecordFlags


@pytest.mark.parametrize(("game", "ai"), [("mini", "simple"), ("mini", "hit_and_run"), ("flag", "flag")])
def test_a_bot_does_what_it_says_wherever_it_says_that_this_is_the_same(game, ai):
    own = settings(game, {"opponent_frame_skip": 1, "max_ticks": 3000}, game)
    by_bot, by_advice = Games(own, [7]), Games(own, [7])
    commands, is_same = np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 1), bool)
    by_bot.begin(np.ones(1, bool))
    by_bot.set_ai(0, 1, ai)
    said = []
    while by_bot.winner[0] < 0:
        by_advice.restore(0, by_bot.snapshot(0))
        by_bot.advise([ai], commands, is_same)
        by_advice.advance(commands, 1)
        by_bot.advance(np.full((1, 1, 1), command_of(ai)), 1)
        if is_same[0, 0, 0]:
            said.append(int(commands[0, 0, 0]))
            for name in ("units", "games"):
                np.testing.assert_array_equal(getattr(by_bot.worlds, name), getattr(by_advice.worlds, name))
    assert len(said) > 100
    assert len(set(said)) >= 2


def test_advice_is_an_observation_that_a_player_can_act_by_and_episodes_tell_how_often_it_was_exact():
    options = EnvOptions(advice=("hit_and_run",), env_kwargs='{"max_ticks": 2000}')
    group = envs.make_group("rts_mini", 3, options, seed=5, first_env_idx=0)
    seen = obs_arrays(group.spec.obs_space, 3)
    rows = {key: list(array) for key, array in seen.items()}
    spec = group.spec
    opponent = Opponent("bot:hit_and_run", "rts_mini", options, spec.native_obs_space, spec.action_space)
    actors, result, ended = opponent.player().actors(3, seed=0), StepResult.empty(3), []
    group.reset(rows)
    while len(ended) < 3:
        advice = seen["advice_hit_and_run"]
        assert advice.sum(-1).tolist() == [1, 1, 1]
        actions = actors.act(seen, result.first)
        assert actions.discrete[:, 0].tolist() == advice.argmax(-1).tolist()
        params = Adviser("hit_and_run").params(seen, result.first, np.arange(3))
        np.testing.assert_array_equal(params == IMPOSSIBLE, advice == 0)
        ended += group.step(actions.discrete, actions.continuous, rows, result)
    assert {episode.stats["advice_exact_hit_and_run"] for episode in ended} == {1.0}


def test_a_teacher_that_is_a_bot_is_heard_by_its_pupil_alone():
    config = Config().replace(env="rts_mini", teacher=("bot:simple",), device="cpu", rollout=8, batch_size=64)
    plan = make_plan(config)
    assert policy_keys(plan.spec) == ["obs"]
    assert "advice_simple" in plan.spec.obs_space.spaces
    assert set(ADVISERS) >= set(plan.spec.advisers) == {"simple", "hit_and_run"}
    with pytest.raises(UsageError, match="advice is random: the bots of rts_mini that say"):
        make_plan(config.replace(teacher=("bot:random",)))
    with pytest.raises(UsageError, match="are: none"):
        make_plan(config.replace(env="CartPole-v1"))


def test_a_bot_is_recorded_by_what_it_says_also_in_a_match():
    task, num_own = record._task(RecordFlags(player="bot:simple", to="x-v0", env="rts_mini_match", against=("random",)))
    assert num_own == 1
    players = [each.player() for each in task.players.values()]
    assert players[0] == AdvisedPlayer("simple")
    with pytest.raises(UsageError, match="does not say how"):
        record._task(RecordFlags(player="bot:random", to="x-v0", env="rts_mini_match"))
