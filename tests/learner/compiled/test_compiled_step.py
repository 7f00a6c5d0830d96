"""The optimiser step by a program: it does what the learner's own does, which is taken where no program can be."""

import math
import time

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_batches import CASES, DISTANCE, FIRST, FLAGS, PICTURES, TASKS, TEAMS, TEAMS_OF, TURNS, B, T, make_batch

from sf.config import Config
from sf.envs import Planes
from sf.learner import update
from sf.learner.compiled import compiled_step
from sf.learner.compiled.compiled_step import CompiledStep
from sf.learner.compiled.training_step import followed
from sf.learner.loss.terms import table
from sf.learner.update import Updater
from sf.model import distributions
from sf.model.actor_critic import UnrollOutput
from sf.system.native import kernels, library, programs
from sf.system.native.library import CompilerError

pytestmark = pytest.mark.timeout(450)
with_compiler = pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler")

PATIENCE_S = 400.0  # the compiler gives way to everything else on a busy machine
CPU = torch.device("cpu")
FROZEN = "trunk.actor.encoders.0.linear.0.weight"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled_step, "BEGINS_AFTER_S", 0.0)


class Learner:
    """An updater, with a program for its steps or without."""

    def __init__(self, case=FIRST, with_program=True, bfloat16=False, **flags):
        self.space, self.spec, own_flags = CASES[case]
        self.config, self.teams = Config().replace(**FLAGS | own_flags | flags), TEAMS_OF.get(case, ())
        self.compiled = None
        if with_program:
            example = make_batch(self.space, self.spec, seed=0)
            self.compiled = CompiledStep(self.config, self.space, self.spec, bfloat16, example, teams=self.teams)
        torch.manual_seed(0)
        self.updater = self.new_updater(bfloat16)

    def new_updater(self, bfloat16=False):
        return Updater(self.config, self.space, self.spec, bfloat16, CPU, faster_step=self.compiled, teams=self.teams)

    def train(self, num_iterations, first_seed=1, size=(T, B)):
        torch.manual_seed(5)  # of the order of the samples
        for seed in range(first_seed, first_seed + num_iterations):
            batch = make_batch(self.space, self.spec, seed, self.updater.version, size=size)
            self.updater.train_iteration(batch, 0.1 * seed)

    def weights(self):
        return {name: tensor.clone() for name, tensor in self.updater.model.state_dict().items()}


@pytest.fixture(scope="module")
def followed_programs():
    """By the names of their files."""
    return {}


@pytest.fixture
def followed_only(monkeypatch, followed_programs):
    """Programs are what PyTorch's exporter gives: what is compiled is the same, and takes ten times as long to make."""

    def operations_of(learner_step):
        name = learner_step._path_of_program().name
        if name not in followed_programs:
            inputs = learner_step._example_inputs()
            followed_programs[name] = followed(learner_step._network, learner_step._fixed, inputs).module()
            distributions._padded_index.cache_clear()  # tensors without content, which a maker keeps to itself
        return followed_programs[name]

    class Runner:
        def __init__(self, learner_step):
            self.operations = operations_of(learner_step)
            self.num_runs = 0

        def run(self, tensors):
            self.num_runs += 1
            return [self.operations(*tensors)]

    def take(self, _path):
        self._runner = Runner(self)

    monkeypatch.setattr(CompiledStep, "_take", take)
    monkeypatch.setattr(programs, "is_there", lambda _: True)
    monkeypatch.setattr(compiled_step, "_is_faster", lambda *_: True)


def assert_same(found, expected, tolerance=1e-5):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, rtol=tolerance, atol=tolerance), name


def build_with_frozen_weight(*args, own=update.build_model):
    model = own(*args)
    model.get_parameter(FROZEN).requires_grad_(False)
    return model


@pytest.mark.parametrize(
    "case", [case if case in (TURNS, TEAMS, TASKS) else pytest.param(case, marks=pytest.mark.long) for case in CASES]
)
def test_a_step_by_a_program_does_what_the_learners_own_does_for_iterations_of_any_size(
    case, followed_only, monkeypatch
):
    if case == TURNS:
        monkeypatch.setattr(table, "TERMS", [*table.TERMS, DISTANCE])
    if case == PICTURES:
        monkeypatch.setattr(update, "build_model", build_with_frozen_weight)
    one, other = Learner(case), Learner(case, with_program=False)
    before = one.weights()
    for learner in (one, other):
        learner.train(3)
    assert one.compiled.is_at_work
    assert one.compiled._runner.num_runs >= 12
    assert one.updater.version == other.updater.version == 13
    assert_same(one.weights(), other.weights(), tolerance=1e-3)  # Adam makes whole steps of what is only rounding
    stays = {name for name, weight in one.updater.model.named_parameters() if torch.equal(weight, before[name])}
    assert (FROZEN in stays) == (case == PICTURES)
    found, expected = one.updater.pop_metrics(), other.updater.pop_metrics()
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert ("distance" in found) == (case == TURNS)
    moments = [learner.updater.tensors() for learner in (one, other)]
    moments = [{name: tensor for name, tensor in each.items() if name != "rng"} for each in moments]
    assert_same(*moments, tolerance=1e-3)
    for size in ((1, 12), (7, 3), (3, 9)) if case == TEAMS else ((1, 5), (7, 1), (3, 9)):
        num_runs = one.compiled._runner.num_runs
        for learner in (one, other):
            learner.train(2, first_seed=4, size=size)
        assert one.compiled._runner.num_runs > num_runs
    assert_same(one.weights(), other.weights(), tolerance=2e-2)
    path = one.compiled._path_of_program()
    one.compiled._example = make_batch(one.space, one.spec, seed=0, size=(2, 1))
    assert one.compiled._path_of_program() == path


def test_weight_decay_is_in_the_program(followed_only):
    one, other = Learner(weight_decay=10.0), Learner(weight_decay=10.0, with_program=False)
    without = Learner(with_program=False)
    for learner in (one, other, without):
        learner.train(2)
    assert one.compiled.is_at_work
    assert_same(one.weights(), other.weights(), tolerance=1e-3)
    size, full_size = (
        sum(float(x.detach().norm()) for x in each.updater.model.parameters()) for each in (one, without)
    )
    assert size < 0.999 * full_size


def test_what_changes_during_a_run_needs_no_other_program(followed_only):
    flags = {
        "exploration_loss_coeff_extra": 0.5,
        "train_for_env_steps": 1000,
        "lr_schedule": "linear",
    }
    one, other = Learner(**flags), Learner(with_program=False, **flags)
    for learner in (one, other):
        learner.train(2)
        learner.updater.set_hyperparameters(
            {"learning_rate": 0.05, "gamma": 0.9, "exploration_loss_coeff": 0.2, "ppo_clip_ratio": 0.01}
        )
        learner.train(2, first_seed=3)
    assert one.compiled._runner.num_runs >= 16
    assert_same(one.weights(), other.weights())


def test_with_settings_that_it_was_not_made_for_the_learners_own_step_is_taken(followed_only):
    one, other = Learner(), Learner(with_program=False)
    for learner in (one, other):
        learner.train(1)
        learner.updater.set_hyperparameters({"ppo_clip_value": 0.01})
    num_runs = one.compiled._runner.num_runs
    for learner in (one, other):
        learner.train(2, first_seed=2)
    assert one.compiled._runner.num_runs == num_runs
    assert not one.compiled.is_at_work  # so gradient workers may help
    assert_same(one.weights(), other.weights())
    one.updater.set_hyperparameters({"ppo_clip_value": one.config.learner.ppo_clip_value})
    one.train(1)
    assert one.compiled._runner.num_runs == num_runs + 4
    assert one.compiled.is_at_work


def test_a_step_that_is_not_finite_changes_nothing_and_is_counted(followed_only):
    learner = Learner()
    learner.train(1)
    before = learner.updater.tensors()
    before = {name: tensor.clone() for name, tensor in before.items() if name != "rng"}
    batch = make_batch(learner.space, learner.spec, 2, learner.updater.version)
    batch.continuous[:] = math.inf
    learner.updater.train_iteration(batch, 0.5)
    after = learner.updater.tensors()
    for name, tensor in before.items():
        if "obs_norm" not in name:  # merged before the first step
            assert torch.equal(after[name], tensor), name
    assert learner.updater.skipped.total == learner.updater.skipped.in_row == 4
    learner.train(1, first_seed=3)
    assert learner.updater.skipped.in_row == 0
    assert learner.updater.is_finite()


def test_a_step_without_a_sample_changes_nothing_and_is_not_counted(followed_only):
    learner = Learner()
    learner.train(1)
    before = learner.weights()
    batch = make_batch(learner.space, learner.spec, 2, learner.updater.version)
    batch.valid[:] = False
    num_runs = learner.compiled._runner.num_runs
    learner.updater.train_iteration(batch, 0.5)
    assert learner.compiled._runner.num_runs == num_runs + 4
    assert_same(learner.weights(), before, tolerance=0.0)
    assert learner.updater.skipped.total == 0


def test_the_bounds_and_steps_of_an_observation_belong_to_a_program(monkeypatch):
    """An encoder may have them as constants."""
    spaces = [gym.spaces.Box(0, 4, (3,), np.int16), gym.spaces.Box(1, 5, (3,), np.int16), Planes(1, 1, 3)]
    spaces += [Planes(1, 1, 3, step=0.5), Planes(1, 1, 3, step=0.25)]
    learner, paths = Learner(), set()
    for space in spaces:
        learner.compiled._obs_space = gym.spaces.Dict({"obs": space})
        paths.add(learner.compiled._path_of_program())
    assert len(paths) == len(spaces)


def test_a_restored_learner_and_one_that_is_rolled_back_go_on_by_it(followed_only):
    one = Learner()
    one.train(2)
    tensors = {name: tensor.detach().clone() for name, tensor in one.updater.tensors().items()}
    state = one.updater.state()
    one.train(1, first_seed=3)
    expected = one.weights()
    one.updater.load(tensors, state)
    one.train(1, first_seed=3)
    assert_same(one.weights(), expected, tolerance=0.0)
    one.updater = one.new_updater()
    one.updater.load(tensors, state)
    num_runs = one.compiled._runner.num_runs
    one.train(1, first_seed=3)
    assert_same(one.weights(), expected, tolerance=0.0)
    assert one.compiled._runner.num_runs == num_runs + 4


@pytest.mark.parametrize(
    ("added", "is_faster", "why"),
    [(0.1, True, "its results differ from those of the network"), (0.0, False, "a program takes no less time")],
)
def test_a_program_that_differs_or_is_slower_is_not_taken(added, is_faster, why, followed_only, monkeypatch, said):
    monkeypatch.setattr(compiled_step, "_is_faster", lambda *_: is_faster)
    one, other = Learner(), Learner(with_program=False)
    runner = one.compiled._runner
    monkeypatch.setattr(runner, "run", lambda tensors: [runner.operations(*tensors) + added])
    for learner in (one, other):
        learner.train(1)
    assert not one.compiled.is_at_work
    assert said == [f"the learner's step is not compiled ({why}), so it runs with PyTorch's operations"]
    assert_same(one.weights(), other.weights(), tolerance=0.0)


def test_a_program_that_fails_is_not_taken_and_its_file_is_gone(followed_only, monkeypatch, tmp_path, said):
    one, other = Learner(), Learner(with_program=False)
    path = tmp_path / "program.pt2"
    path.touch()
    monkeypatch.setattr(one.compiled._beside, "_path", path)

    def run(tensors):
        tensors[0].add_(1.0)  # it may have written by then
        raise RuntimeError("expected inputs vector size to be 61, but got 59\nat model_base.h:12")

    monkeypatch.setattr(one.compiled._runner, "run", run)
    for learner in (one, other):
        learner.train(1)
    assert not one.compiled.is_at_work
    assert said == [
        "the learner's step is not compiled (it fails: expected inputs vector size to be 61, but got 59), so it runs "
        "with PyTorch's operations"
    ]
    assert not path.exists()
    assert_same(one.weights(), other.weights(), tolerance=0.0)


def test_a_network_that_decides_by_what_it_computes_is_one_sentence(monkeypatch):
    learner = Learner()

    def unroll(*inputs, own=learner.updater.model.unroll):
        out = own(*inputs)
        return UnrollOutput(-out.params, out.value) if out.value.sum() > 0 else out

    monkeypatch.setattr(learner.updater.model, "unroll", unroll)
    with pytest.raises(Exception, match="data-dependent"):
        followed(learner.updater.model, learner.compiled._fixed, learner.compiled._example_inputs())


def test_a_program_that_cannot_be_made_is_one_sentence_with_the_reason(monkeypatch, said):
    def refuse(*_):
        raise RuntimeError("no room\nmore")

    monkeypatch.setattr(programs, "make", refuse)
    monkeypatch.setattr(library, "folder", lambda: _refused("a full disk"))
    refused = Learner()
    assert said == ["the learner's step is not compiled (a full disk), so it runs with PyTorch's operations"]
    refused.train(1)
    monkeypatch.undo()
    said.clear()
    monkeypatch.setattr(programs, "make", refuse)
    monkeypatch.setattr(compiled_step, "BEGINS_AFTER_S", 0.0)
    learner = Learner()
    look_until_it_ends(learner.compiled)
    assert said == ["the learner's step is not compiled (RuntimeError: no room), so it runs with PyTorch's operations"]
    learner.train(1)


def _refused(why):
    raise CompilerError(why)


@with_compiler
@pytest.mark.long
@pytest.mark.parametrize(("case", "bfloat16"), [(FIRST, False), (PICTURES, True)])
def test_it_is_compiled_beside_and_the_next_learner_begins_with_it(case, bfloat16, monkeypatch, said):
    monkeypatch.setattr(compiled_step, "_is_faster", lambda *_: True)
    one, other = Learner(case, bfloat16=bfloat16), Learner(case, with_program=False, bfloat16=bfloat16)
    look_until_it_ends(one.compiled)
    assert not said
    for learner in (one, other):
        learner.train(2)
    assert one.compiled.is_at_work
    assert "compiled from here on" in said[0]
    # Adam's steps are as long as the rate, 0.01, also where a gradient is hardly more than rounding.
    assert_same(one.weights(), other.weights(), tolerance=0.05 if bfloat16 else 1e-3)
    following = Learner(case, bfloat16=bfloat16)
    assert following.compiled._runner is not None
    following.train(1)
    assert following.compiled.is_at_work


def look_until_it_ends(compiled):
    ends = time.monotonic() + PATIENCE_S
    while compiled._runner is None and not compiled._beside.is_over:
        compiled.look()
        assert time.monotonic() < ends
        time.sleep(0.01)
