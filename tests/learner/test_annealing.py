"""What follows training in a learner: schedules of flags, and moves that episodes have earned."""

import pytest
from ranks_in_threads import each_rank

from sf.config import Config, LearnerConfig
from sf.config.schedules import Stage, parse
from sf.learner.loss.numbers import without_numbers
from sf.learner.schedules import Annealing, schedules_of_flags
from sf.ranks.ranks import ALONE
from sf.shared.scheduled import Scheduled

ACTORS = 3


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        ({"lr_schedule": "linear", "learning_rate": 2.0}, [2.0, 1.5, 1.0, 0.0]),
        ({"lr_schedule": "cosine", "learning_rate": 2.0}, [2.0, 1.7071068, 1.0, 0.0]),
        ({"lr_schedule": "kl_adaptive", "lr_adaptive_max": 2.0, "lr_adaptive_max_final": 1.0}, [2.0, 1.75, 1.5, 1.0]),
        (
            {
                "lr_schedule": "kl_adaptive",
                "lr_adaptive_max": 2.0,
                "lr_adaptive_max_final": 1.0,
                "lr_adaptive_max_hold": 0.5,
            },
            [2.0, 2.0, 2.0, 1.0],
        ),
        ({"exploration_loss_coeff": 0.4, "exploration_loss_coeff_final": 0.0}, [0.4, 0.3, 0.2, 0.0]),
        ({"exploration_loss_coeff": 0.1, "exploration_loss_coeff_extra": 0.8}, [0.9, 0.4375, 0.2, 0.1]),
    ],
)
def test_flags_of_their_own_make_schedules_by_the_share_of_the_run(flags, values):
    (schedule,) = schedules_of_flags(LearnerConfig(**flags), has_end=True)
    assert [schedule.value(Stage(share_done=done)) for done in (0.0, 0.25, 0.5, 1.0)] == pytest.approx(values)


def annealing(*lines, stats_avg=4, ranks=ALONE):
    scheduled = Scheduled.allocate(parse(lines), num_policies=2, num_actors=ACTORS)
    return scheduled, Annealing(scheduled, 1, stats_avg, ranks)


def end(scheduled, *values, actor=0, policy_id=1):
    for value in values:
        scheduled.arrays["sums"][policy_id, 0, actor] += value
        scheduled.arrays["counts"][policy_id, 0, actor] += 1


def test_a_metric_moves_a_value_once_enough_of_the_latest_episodes_have_it():
    scheduled, state = annealing("env.size=5:8@success:0.75", "gamma=0.9:0.99@100")
    sizes = scheduled.arrays["values"][1]

    def after(*values, **where):
        end(scheduled, *values, **where)
        state.look()
        state.publish(50)
        return sizes[0]

    assert after() == 5.0
    assert sizes[1] == pytest.approx(0.945)
    assert state.values(LearnerConfig()) == {"gamma": pytest.approx(0.945)}
    assert state.metrics()["annealed/env.size"] == 5.0
    assert after(1, 1, 1, policy_id=0) == 5.0  # another policy's
    assert after(0, 0) == 5.0
    assert after(1, actor=2) == 5.0  # three episodes so far
    assert after(1) == 5.0  # half of four
    assert after(1, 1) == 6.0  # of the latest four, all: those before are left out
    assert after(1, 1, 1) == 6.0  # it begins to count anew
    assert after(1) == 7.0
    assert after(*[1] * 9) == 8.0
    assert after(*[1] * 9) == 8.0
    assert state.moves == {"env.size": 3}


def test_a_checkpoint_of_other_schedules_goes_on_with_the_moves_that_it_knows():
    _, state = annealing("env.size=5:8@success:0.75", "env.wind=0.0:1.0@success:0.5")
    known = {"env.size": {"moves": 2, "latest": [(3.0, 3)]}, "env.depth": {"moves": 4, "latest": []}}
    state.load(known)
    assert state.moves == {"env.size": 2, "env.wind": 0}
    assert state.state()["env.size"] == known["env.size"]


def test_ranks_decide_by_the_episodes_of_all():
    def body(ranks):
        scheduled, state = annealing("env.size=5:8@success:0.75", ranks=ranks)
        end(scheduled, *([1, 1, 1] if ranks.rank == 0 else [0]))
        state.look()
        return state.moves

    assert each_rank(2, body) == [{"env.size": 1}] * 2


def test_a_program_is_the_same_whatever_the_annealed_numbers_are():
    config = Config().learner
    changed = {"gamma": 0.5, "ppo_clip_ratio": 0.3, "reward_scale": 2.0, "gae_lambda": 0.1, "learning_rate": 1.0}
    changed |= {"value_loss_coeff": 3.0, "exploration_loss_coeff": 1.0, "exploration_loss_coeff_final": 0.0}
    assert without_numbers(LearnerConfig(**changed)) == without_numbers(config)
    assert without_numbers(LearnerConfig(ppo_clip_value=0.7)) != without_numbers(config)
