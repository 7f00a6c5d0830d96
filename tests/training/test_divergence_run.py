"""A network that gives NaN from some update on, through the real processes."""

import dataclasses
import json
import math

import allocated
import pytest
import torch
from recorded_reports import RecordedReports

from sf.config import Config
from sf.learner.checkpoints.saver import Saver
from sf.learner.divergence import Rollback
from sf.learner.state import LearnerState
from sf.learner.worker import learner
from sf.model.actor_critic import ActorCritic
from sf.model.registry import register_model
from sf.policy.worker import policy_worker
from sf.run.children.verdict import ChildError
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import RolledBack, SaveFailed

BATCH, ROLLOUT = 64, 8
GOOD_UPDATES, BAD_UPDATES = 5, 3
_num_updates = 0  # of this process: a rollback makes a new network, but no new world


@register_model("diverging")
class DivergingModel(ActorCritic):
    """Its values are NaN in updates 6 to 8."""

    def unroll(self, obs, state, first):
        global _num_updates  # noqa: PLW0603  see there
        _num_updates += first.shape[1] == BATCH // ROLLOUT  # not the learner's trial before the run, of a piece of it
        out = super().unroll(obs, state, first)
        is_bad = GOOD_UPDATES < _num_updates <= GOOD_UPDATES + BAD_UPDATES
        return out._replace(value=out.value * math.nan) if is_bad else out


def policy_body(reports, args):
    """The real one; named here so that its process imports this module, and with it the model."""
    policy_worker(reports, args)


def learner_body(reports, args):
    learner(reports, args)


def make_config(tmp_path, **flags):
    return Config().replace(
        env="toy_identity",
        train_dir=str(tmp_path),
        model="diverging",
        num_workers=1,
        num_envs_per_worker=8,
        rollout=ROLLOUT,
        batch_size=BATCH,
        encoder_mlp_layers=(16,),
        device="cpu",
        learner_threads=1,
        max_skipped_updates=BAD_UPDATES,
        save_every_sec=1e-9,  # after every update
        train_for_env_steps=20 * BATCH,
        **flags,
    )


def run(config):
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    return Run(make_plan(config), run_dir, bodies={"policy": policy_body, "learner": learner_body}).run()


def test_a_run_that_diverges_goes_back_and_on_with_a_lower_learning_rate(tmp_path, capsys):
    config = make_config(tmp_path)
    summary = run(config)
    output = capsys.readouterr().out
    (line,) = [line for line in output.splitlines() if "not finite" in line]
    assert line == (
        "learner-0: 3 updates in a row were not finite (policy_loss, value_loss, loss, grad_norm), so it goes back to "
        f"the checkpoint of {GOOD_UPDATES * BATCH} env steps, with learning rate 5e-05; training on "
        f"{BAD_UPDATES * BATCH} frames is lost"
    )
    assert summary["env_steps"] == 20 * BATCH  # they count on
    assert summary["train/skipped_updates"] == BAD_UPDATES
    assert summary["train/learning_rate"] == 5e-5
    assert summary["lost_frames"] == BAD_UPDATES * BATCH
    assert summary["restarts"] == 0
    last = checkpoint.load(checkpoint.latest(tmp_path / "toy_identity" / "checkpoints"))
    assert last.state["env_steps"] == 20 * BATCH
    assert last.state["trained_steps"] == (20 - BAD_UPDATES) * BATCH
    steps = [value for name, value in last.tensors.items() if name.endswith("/step")]
    assert all(step == 20 - BAD_UPDATES for step in steps)
    assert steps


@pytest.mark.long
def test_a_run_that_diverges_stops_with_one_sentence_where_the_flag_says_so(tmp_path):
    config = make_config(tmp_path, on_divergence="stop")
    with pytest.raises(ChildError, match="learner-0: training has diverged: 3 updates in a row") as error:
        run(config)
    assert "Traceback" not in str(error.value)
    summary = json.loads((tmp_path / "toy_identity" / "summary.json").read_text())
    assert summary["restarts"] == 0
    assert summary["train/skipped_updates"] == BAD_UPDATES
    last = checkpoint.load(checkpoint.latest(tmp_path / "toy_identity" / "checkpoints"))
    assert last.state["env_steps"] == GOOD_UPDATES * BATCH


class Learner:
    """The state of a learner that has not begun, its reports, and what saves it and rolls it back."""

    def __init__(self, tmp_path):
        torch.manual_seed(0)
        self.reports = RecordedReports()
        self.args = learner_args(make_config(tmp_path).replace(model="actor_critic"), tmp_path)
        self.state, self.saver = begin(self.args, self.reports)
        self.rollback = Rollback(self.args, self.state, self.saver, self.reports)


def begin(args, reports):
    state = LearnerState(args, 0)
    return state, Saver(args, state, reports)


@pytest.fixture
def begun(tmp_path):
    return Learner(tmp_path)


def learner_args(config, run_dir):
    return allocated.learner_args(allocated.allocate(config, run_dir))


def diverge(state, num_steps):
    """What iterations do that are all skipped."""
    state.count(num_steps)
    names = ("policy_loss", "value_loss", "entropy", "loss", "grad_norm")
    state.updater.metrics.add_step(dict.fromkeys(names, torch.tensor(math.nan)))
    for _ in range(BAD_UPDATES):
        state.updater.skipped.count(torch.ones(()))


def test_before_the_first_checkpoint_a_rollback_begins_anew(begun):
    state, reports = begun.state, begun.reports
    with torch.no_grad():
        for parameter in state.updater.model.parameters():
            parameter.fill_(1e9)
    diverge(state, 100)
    assert begun.rollback.is_due
    begun.rollback.roll_back()
    assert not begun.rollback.is_due
    assert all((parameter.abs() < 10).all() for parameter in state.updater.model.parameters())
    report = reports.sent[-1]
    assert isinstance(report, RolledBack)
    assert "a new network" in report.text
    assert report.lost_steps == 100
    assert state.env_steps == 100


def test_steps_that_are_lost_are_counted_once(begun):
    state, reports = begun.state, begun.reports
    state.updater.version += 1
    state.count(1000)
    assert begun.saver.save()
    lost = []
    for num_steps in (100, 10):  # both go back to the same checkpoint
        diverge(state, num_steps)
        begun.rollback.roll_back()
        lost.append(reports.sent[-1].lost_steps)
    assert lost == [100, 10]
    assert state.env_steps == 1110
    assert state.updater.learning_rate == pytest.approx(1e-4 / 4)


def test_weights_from_before_a_replacement_are_reported_as_such(begun):
    state, reports = begun.state, begun.reports
    state.updater.version += 1
    state.weights_event = 3
    assert begun.saver.save()
    state.weights_event = 4  # it took over another policy's weights, and diverged before they were saved
    diverge(state, 100)
    begun.rollback.roll_back()
    assert state.weights_event == reports.sent[-1].weights_event == 3


def test_what_a_dead_learner_has_lost_is_not_lost_once_more_with_its_successor(tmp_path):
    config = make_config(tmp_path).replace(model="actor_critic")
    args = learner_args(config, tmp_path)
    first, saver = begin(args, RecordedReports())
    first.count(1000)
    saver.remember_if_due()
    later = dataclasses.replace(args, predecessor_env_steps=1500)
    successor, saver = begin(later, RecordedReports())
    assert successor.lost_steps == 500
    saver.remember_if_due()
    assert LearnerState(later, 0).lost_steps == 0


def test_no_checkpoint_is_due_while_updates_are_skipped(begun):
    state, saver = begun.state, begun.saver
    assert saver.is_save_due
    state.updater.skipped.count(torch.ones(()))
    assert not saver.is_save_due
    state.updater.skipped.count(torch.zeros(()))
    assert saver.is_save_due


@pytest.mark.parametrize("prefix", ["model/", "optimizer/"])
def test_what_is_not_finite_is_neither_saved_nor_kept_for_a_successor(begun, prefix, tmp_path):
    state, reports = begun.state, begun.reports
    for parameter in state.updater.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    state.updater._optimizer.step(torch.zeros(()))
    state.updater.version += 1
    spoiled = [
        value for name, value in state.updater.tensors().items() if name.startswith(prefix) and value.numel() > 1
    ]
    with torch.no_grad():
        spoiled[0].view(-1)[0] = math.nan
    assert not begun.saver.save()
    begun.saver.remember_if_due()
    assert reports.sent == [SaveFailed("the weights are not finite")]
    assert checkpoint.latest(tmp_path / "checkpoints") is None
    assert begun.args.recoveries[0].read() is None
