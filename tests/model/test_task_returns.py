"""PopArt for each task: against a loop in NumPy that keeps the statistics and the value head of each task by itself."""

import numpy as np
import pytest
import torch

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.identity import Identity
from sf.envs.tasks.united import TASK
from sf.model.building import build_model
from sf.model.task_returns import TaskReturns, advantage_scale, scale_of, update_value_norm

import gymnasium as gym  # isort: skip

T, B, N, F = 5, 7, 3, 4
SCALES = (1e-3, 1.0, 1e4)  # of the returns of the tasks


class Slow:
    """One task: all of its returns so far, and its row of the value head."""

    def __init__(self, weight, bias):
        self.returns, self.weight, self.bias = [], weight.copy(), bias

    @property
    def mean(self):
        return np.mean(self.returns) if self.returns else 0.0

    @property
    def stddev(self):
        return np.std(self.returns) if self.returns else 0.0

    def value(self, features):
        """In the scale of returns: sigma (w x + b) + mu."""
        return self.stddev * (self.weight @ features + self.bias) + self.mean

    def update(self, returns):
        if not len(returns):
            return
        mean, stddev, is_first = self.mean, self.stddev, not self.returns
        self.returns += list(returns)
        if not is_first:
            self.weight *= stddev / self.stddev
            self.bias = (stddev * self.bias + mean - self.mean) / self.stddev


def one_hot(rng, *shape):
    return torch.from_numpy(np.eye(N, dtype=np.float32)[rng.integers(0, N, shape)])


@pytest.mark.parametrize("seed", range(3))
def test_statistics_values_and_heads_are_those_of_each_task_alone(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    norm, head = TaskReturns(N), torch.nn.Linear(F, N)
    weight, bias = head.weight.detach().double().numpy(), head.bias.detach().double().numpy()
    slow = [Slow(weight[i], bias[i]) for i in range(N)]
    for batch in range(4):
        task, mask = one_hot(rng, T, B), torch.from_numpy(rng.random((T, B)) < 0.7)
        if batch == 0:
            mask &= task.argmax(-1) != 2  # a task that comes later
        numbers = task.argmax(-1).numpy()
        returns = torch.from_numpy(np.array(SCALES)[numbers] * rng.normal(3 + batch, 2, (T, B))).float()
        norm.update(returns, mask, head, task)
        for i, each in enumerate(slow):
            each.update(returns.double()[mask & (task.argmax(-1) == i)].numpy())
        features, of_rows = rng.normal(size=(9, F)), one_hot(rng, 9)
        with torch.no_grad():
            value = norm.value(head(torch.from_numpy(features).float()), of_rows)
            assert value.shape == (9,)
            found = norm.scale(of_rows).denormalize(value)
            back = norm.scale(of_rows).normalize(found)
        is_known = np.array([bool(slow[i].returns) for i in of_rows.argmax(-1)])
        expected = [slow[i].value(x) for i, x in zip(of_rows.argmax(-1).tolist(), features, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(back[is_known], value[is_known], rtol=1e-3, atol=1e-3)
        assert (found[~is_known] == 0).all()
    assert all(each.returns for each in slow)
    for moments, each in zip((part.moments for part in norm.tasks), slow, strict=True):
        assert moments.count == len(each.returns)
        assert float(moments.mean) == pytest.approx(each.mean, rel=1e-5)


def model(**flags):
    torch.manual_seed(0)
    space = gym.spaces.Dict({"obs": gym.spaces.Box(-1, 1, (F,), np.float32), TASK: Identity(N)})
    flags = {"encoder_mlp_layers": (8,), "normalize_returns": True, "normalize_returns_by": "task", **flags}
    return build_model(ModelConfig(**flags), space, ActionSpec((3,), 0))


@pytest.mark.parametrize("show_task", [False, True])
def test_the_policy_sees_the_task_only_if_it_is_shown_and_the_value_is_always_that_of_the_task(show_task):
    network, rng = model(show_task=show_task), np.random.default_rng(0)
    returns, task = torch.randn(T, B), one_hot(rng, T + 1, B)
    obs = {"obs": torch.rand(T + 1, B, F), TASK: task}
    update_value_norm(network, returns, torch.ones(T, B, dtype=torch.bool), obs)
    alike = {"obs": torch.rand(1, F).expand(N, F), TASK: torch.eye(N)}
    step = network.step(alike, torch.zeros(N, 0), torch.zeros(N, dtype=torch.bool))
    assert len(set(step.value.tolist())) == N
    assert len({tuple(row) for row in step.params.tolist()}) == (N if show_task else 1)
    out = network.unroll(obs, torch.zeros(B, 0), torch.zeros(T + 1, B, dtype=torch.bool))
    each = network.step({key: value[2] for key, value in obs.items()}, torch.zeros(B, 0), torch.zeros(B).bool())
    torch.testing.assert_close(scale_of(network.value_norm, obs).denormalize(out.value)[2], each.value)


def test_advantages_are_in_units_of_the_returns_of_their_task_and_wait_for_its_first_statistics():
    network, rng = model(), np.random.default_rng(0)
    task = one_hot(rng, T + 1, B)
    number = task.argmax(-1)
    returns = torch.tensor(SCALES)[number[:-1]] * torch.randn(T, B)
    mask = number[:-1] != 1
    update_value_norm(network, returns, mask, {TASK: task})
    scale = advantage_scale(network.value_norm, {TASK: task})
    assert (scale[number[:-1] == 1] == 0).all()
    for i in (0, 2):
        of_task = number[:-1] == i
        expected = 1 / returns[of_task].double().std(correction=0)
        torch.testing.assert_close(scale[of_task], expected.expand(int(of_task.sum())), rtol=1e-4, atol=0)
    assert advantage_scale(model(normalize_returns_by="all").value_norm, {TASK: task}) is None
