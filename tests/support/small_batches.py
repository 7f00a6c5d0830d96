"""Networks of a few weights with all that a step may have, and batches for them."""

import gymnasium as gym
import numpy as np
import torch

from sf.envs import ActionSpec
from sf.envs.spaces.identity import Identity
from sf.learner.batches.batch import Batch
from sf.learner.loss.terms.term import LossTerm, total

T, B = 4, 6
VECTOR = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (5,), np.float32))
MASKED = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (5,), np.float32), action_mask=gym.spaces.Box(0, 1, (5,), np.int8))
BY_KINDS = gym.spaces.Dict(
    obs=gym.spaces.Box(-1, 1, (5,), np.float32),
    agent_kind=Identity(2),
    action_mask=gym.spaces.Box(0, 1, (5,), np.int8),
    continuous_mask=gym.spaces.Box(0, 1, (2,), np.int8),
)
BY_TASKS = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (5,), np.float32), task=Identity(3))
PICTURE = gym.spaces.Dict(obs=gym.spaces.Box(0, 255, (36, 36, 3), np.uint8))
MIXED = ActionSpec((3, 2), 2)
FLAGS = {
    "rollout": T,
    "batch_size": T * B // 2,
    "num_batches_per_epoch": 2,
    "num_epochs": 2,
    "shuffle_steps": True,
    "encoder_mlp_layers": (8,),
    "nonlinearity": "tanh",
    "normalize_returns": True,
    "learning_rate": 0.01,
    "exploration_loss_coeff": 0.01,
}
# A term that pulls values towards single rewards.
DISTANCE = LossTerm(
    "distance",
    compute=lambda samples: (samples.mean((samples.value - samples.fields["reward"]).square()), {}),
    metrics={"distance": total("value")},
    coefficient="value_loss_coeff",
    fields=("reward",),
)
KINDS = "agents of two kinds, which have other choices and numbers"
TASKS = "several tasks, with statistics of returns and a value for each"
FIRST = "continuous and discrete actions, a critic of its own"
TURNS = "games by turns, logarithms, layer norms, advantages of the iteration, without clipping of gradients"
PICTURES = "pictures, and ELU, for which there are loops, advantages as they are"
TEAMS = "agents of two teams, whose critic sees them all, and values that are mixed"
TEAMS_OF = {TEAMS: (0, 0, 1)}
CASES = {
    FIRST: (VECTOR, MIXED, {"share_critic": False}),
    TURNS: (
        MASKED,
        ActionSpec((3, 2), 0),
        {
            "value_scale": "symlog",
            "normalize_returns": False,
            "layer_norm": True,
            "normalize_advantages_over": "iteration",
            "ppo_clip_value": 0.0,
            "max_grad_norm": 0.0,
        },
    ),
    KINDS: (BY_KINDS, ActionSpec((3, 2), 2, is_partial=True), {}),
    TASKS: (BY_TASKS, ActionSpec((3, 2), 0), {"normalize_returns_by": "task", "show_task": True}),
    PICTURES: (
        PICTURE,
        ActionSpec((), 3),
        {
            "nonlinearity": "elu",
            "encoder_conv_mlp_layers": (16,),
            "with_ppo_clip": False,
            "normalize_advantages": False,
            "normalize_advantages_over": "iteration",
            "max_grad_norm": 0.05,
        },
    ),
    TEAMS: (VECTOR, MIXED, {"critic": "all", "mixer": "monotonic"}),
}


def make_batch(space, spec, seed, version=1, state_size=0, size=(T, B), draws_choices=False):
    """size: steps of each trajectory, trajectories. draws_choices: else the first one is chosen, which masks allow."""
    num_trajectories, rows = size[1], (size[0] + 1, size[1])
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator)

    def observations(box):
        high = 256 if box.dtype == np.uint8 else 2
        shape = (*rows, *box.shape)
        if box.dtype == np.float32:
            return uniform(*shape)
        return torch.randint(0, high, shape, generator=generator).to(torch.from_numpy(np.zeros(0, box.dtype)).dtype)

    obs = {key: observations(box) for key, box in space.items()}
    if "task" in obs:
        (num_tasks,) = space["task"].shape
        obs["task"] = torch.eye(num_tasks)[torch.randint(0, num_tasks, rows, generator=generator)]
    if "action_mask" in obs:
        obs["action_mask"][..., [0, 3]] = 1
        obs["action_mask"][uniform(*rows) < 0.4] = 0  # waits for its turn, so minibatches are smaller, and unequal
    sizes = spec.discrete_sizes
    discrete = torch.zeros(*size, len(sizes), dtype=torch.int32)
    if draws_choices:
        discrete = torch.stack([torch.randint(0, n, size, generator=generator) for n in sizes], -1).int()
    return Batch(
        obs=obs,
        first=uniform(*rows) < 0.2,
        state=uniform(num_trajectories, state_size),
        discrete=discrete,
        continuous=uniform(*size, spec.num_continuous),
        log_prob=-uniform(*size),
        value=uniform(*size),
        policy_version=torch.full(size, version, dtype=torch.int32),
        reward=uniform(*size),
        terminated=uniform(*size) < 0.1,
        valid=uniform(*size) > 0.1,
    )
