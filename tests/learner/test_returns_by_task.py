"""Training on tasks with rewards of different sizes: with statistics for each, the size of one changes nothing."""

import pytest
import torch
from small_batches import CASES, FLAGS, TASKS, make_batch

from sf.config import Config
from sf.learner.update import Updater

LARGE = 1  # the task whose rewards are multiplied


def trained(factor, **flags):
    """The weights after four iterations. factor: of the rewards of a task."""
    space, spec, own = CASES[TASKS]
    config = Config().replace(**FLAGS | own | {"max_grad_norm": 0.5} | flags)
    torch.manual_seed(0)
    updater = Updater(config, space, spec, False, torch.device("cpu"))
    torch.manual_seed(1)
    for seed in range(4):
        batch = make_batch(space, spec, seed, updater.version)
        task = torch.zeros_like(batch.obs["task"])
        task[..., :] = batch.obs["task"][0]  # one for each trajectory
        of_task = task[:-1].argmax(-1) == LARGE
        reward = torch.where(of_task, factor * batch.reward, batch.reward)
        batch = batch.replaced(obs={**batch.obs, "task": task}, reward=reward, value=torch.zeros_like(reward))
        updater.train_iteration(batch, 0.0)
    return {name: weight.detach() for name, weight in updater.model.named_parameters()}


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"shuffle_steps": False},
        {"normalize_advantages_over": "iteration", "normalize_advantages": True},
        {"with_ppo_clip": False, "trajectory_priority": 0.7, "shuffle_steps": False},
    ],
    ids=str,
)
def test_rewards_a_thousand_times_as_large_at_one_task_leave_all_weights_as_they_were(flags):
    one, other = trained(1.0, **flags), trained(1000.0, **flags)
    for name, weight in one.items():
        torch.testing.assert_close(other[name], weight, rtol=1e-3, atol=1e-4, msg=name)
    together, apart = (trained(factor, normalize_returns_by="all", **flags) for factor in (1.0, 1000.0))
    assert torch.cat([(apart[name] - weight).flatten() for name, weight in together.items()]).abs().max() > 0.01
