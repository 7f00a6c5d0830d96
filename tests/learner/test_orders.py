"""What the learner of a policy makes of the parent's decisions over the population."""

import json
from multiprocessing import Pipe

import pytest
import torch
from allocated import allocate, learner_args
from network_numbers import numbers_of
from recorded_reports import RecordedReports

from sf.config import Config
from sf.learner.checkpoints.saver import Saver
from sf.learner.orders import Orders
from sf.learner.state import LearnerState
from sf.storage import checkpoint


class Policies:
    """The states of two learners of one run, what saves each, and where each gets its orders from."""

    def __init__(self, tmp_path):
        config = Config().replace(
            env="toy_identity", num_policies=2, num_workers=1, encoder_mlp_layers=(8,), device="cpu"
        )
        self.memory = allocate(config, tmp_path)
        self.pipes, self.states, self.savers, self._orders = [], [], [], []
        for policy_id in range(2):
            torch.manual_seed(policy_id)
            orders, pipe = Pipe(duplex=False)
            args = learner_args(self.memory, policy_id, orders=orders)
            self.pipes.append(pipe)
            state = LearnerState(args, 0)
            self.states.append(state)
            self.savers.append(Saver(args, state, RecordedReports()))
            self._orders.append(Orders(args, state, self.savers[-1]))

    def order(self, policy_id, hyperparameters, copies=None, weights_event=0, **more):
        order = {"hyperparameters": hyperparameters, "copies": copies, "weights_event": weights_event, **more}
        self.pipes[policy_id].send_bytes(json.dumps(order).encode())

    def carry_out(self, policy_id=0):
        return self._orders[policy_id].carry_out()


@pytest.fixture
def policies(tmp_path):
    return Policies(tmp_path)


def weights(state):
    return numbers_of(state.updater.model)


def test_hyperparameters_count_from_then_on_and_weights_stay(policies):
    state = policies.states[0]
    before = weights(state)
    policies.order(0, {"learning_rate": 0.25, "exploration_loss_coeff": 0.5})
    assert not policies.carry_out()
    assert torch.equal(weights(state), before)
    assert state.updater.learning_rate == 0.25
    assert state.updater._config.exploration_loss_coeff == 0.5
    assert state._new_updater().learning_rate == 0.25  # after a rollback, too


def test_a_copy_waits_until_the_other_policy_has_put_its_weights_into_shared_memory(policies):
    copying, copied = policies.states
    policies.order(0, {"learning_rate": 0.25}, copies=1, weights_event=7)
    policies.order(0, {"learning_rate": 0.5})
    before = weights(copying)
    assert not policies.carry_out()
    assert torch.equal(weights(copying), before)
    assert copying.updater.learning_rate != 0.5  # orders are carried out one after the other
    policies.savers[1].remember_if_due()
    assert policies.carry_out()
    assert torch.equal(weights(copying), weights(copied))
    assert not torch.equal(weights(copying), before)
    assert copying.updater.learning_rate == 0.5
    assert copying.weights_event == 7
    assert not policies.carry_out()


def test_what_was_played_with_the_old_weights_is_never_trained_on(policies):
    copying, copied = policies.states
    copying.updater.version, copied.updater.version = 10, 99
    policies.savers[1].remember_if_due()
    policies.order(0, {}, copies=1, weights_event=7)
    policies.carry_out()
    assert copying.updater.version == 11  # its own count goes on: lag is a difference of versions
    assert copying.updater._oldest_version == 11


def test_a_replacement_is_saved_at_once_and_a_successor_knows_it(policies, tmp_path):
    copying, saver = policies.states[0], policies.savers[0]
    policies.savers[1].remember_if_due()
    saver.remember_if_due()
    assert not saver.is_save_due
    policies.order(0, {}, copies=1, weights_event=7)
    policies.carry_out()
    assert saver.is_save_due
    saver.remember_if_due()
    successor = policies.memory.recoveries[0].read()
    assert successor.state["weights_event"] == 7
    assert successor.state["updater"]["oldest_version"] == copying.updater.version
    assert saver.save()
    saved = checkpoint.load(checkpoint.latest(tmp_path / "checkpoints" / "policy_00"))
    assert saved.state["weights_event"] == 7


def test_random_numbers_stay_those_of_the_policy(policies):
    policies.savers[1].remember_if_due()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    policies.order(0, {}, copies=1, weights_event=7)
    policies.carry_out()
    assert torch.equal(torch.rand(3), expected)


def test_a_policy_begins_anew_from_a_file(policies, tmp_path):
    state, other = policies.states
    checkpoint.write(tmp_path / "beginning.safetensors", other.checkpoint())
    state.updater.version = 10
    policies.order(0, {}, weights_event=3, begins_from=str(tmp_path / "beginning.safetensors"))
    assert policies.carry_out()
    assert torch.equal(weights(state), weights(other))
    assert (state.updater.version, state.updater._oldest_version, state.weights_event) == (11, 11, 3)


def test_a_beginning_that_is_gone_is_said_and_training_goes_on(policies, tmp_path, said):
    state = policies.states[0]
    before = weights(state)
    policies.order(0, {}, weights_event=3, begins_from=str(tmp_path / "gone.safetensors"))
    assert policies.carry_out()
    assert torch.equal(weights(state), before)
    assert state.weights_event == 3
    (sentence,) = said
    assert "cannot load" in sentence
