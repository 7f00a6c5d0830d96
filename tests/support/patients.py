"""Policies for surgery: small networks that have trained for a moment, and what they compute."""

import gymnasium as gym
import numpy as np
import torch
from small_batches import make_batch

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.envs.added.clock import with_clock
from sf.envs.tasks.united import TASK
from sf.learner.checkpoints.content import make_checkpoint
from sf.learner.update import Updater
from sf.model.task_returns import scale_of
from sf.surgery.operated import Operated, Request
from sf.surgery.subject import Subject

T, B = 6, 4
SMALL = {
    "encoder_mlp_layers": (8,),
    "encoder_conv_mlp_layers": (8,),
    "rnn_size": 8,
    "rollout": T,
    "batch_size": T * B,
    "learning_rate": 0.02,
    "compile": False,
    "critic_clock": False,
}


def box(*shape, low=-2.0, high=2.0):
    return gym.spaces.Box(low, high, shape, np.float32)


def picture(*shape):
    return gym.spaces.Box(0, 255, shape, np.uint8)


def codes(*shape, highest=4):
    return gym.spaces.Box(0, highest, shape, np.int32)


def spec_of(obs_space, action_space, config):
    """The spec of an environment with these spaces. obs_space: a Dict of Boxes."""
    spec = EnvSpec(gym.spaces.Dict(obs_space), action_space)
    return with_clock(spec) if config.model.critic_clock is True else spec


def make_updater(obs_space, action_space, config, teams=()):
    torch.manual_seed(config.run.seed)
    spec = spec_of(obs_space, action_space, config)
    return Updater(config, spec.obs_space, ActionSpec.of(action_space), False, torch.device("cpu"), teams=teams)


def train(updater, obs_space, action_space, config, num_iterations, seed=0):
    spec, action = spec_of(obs_space, action_space, config), ActionSpec.of(action_space)
    sizes = {"state_size": updater.model.state_size, "size": (T, B), "draws_choices": bool(action.discrete_sizes)}
    for n in range(num_iterations):
        batch = make_batch(spec.obs_space, action, seed + n, updater.version, **sizes)
        updater.train_iteration(batch, 0.0)


def patient(obs_space, action_space, num_iterations=3, teams=(), **flags):
    """The checkpoint of a policy that has trained for some iterations."""
    config = Config().replace(**{**SMALL, **flags})
    updater = make_updater(obs_space, action_space, config, teams)
    train(updater, obs_space, action_space, config, num_iterations)
    return make_checkpoint(updater, config, spec_of(obs_space, action_space, config), env_steps=1000)


def operate(saved, obs_space, action_space, teams=(), request=None, **flags):
    """The same policy with other spaces and flags."""
    config = Config().replace(**{**saved.state["config"], **flags})
    subject = Subject.of_spec(config.model, spec_of(obs_space, action_space, config), teams)
    return Operated(saved, "the run", Request(subject, config, **(request or {})))


def resumed(saved, obs_space, action_space, **flags):
    """A learner that goes on from a checkpoint."""
    config = Config().replace(**{**saved.state["config"], **flags})
    updater = make_updater(obs_space, action_space, config)
    updater.load(saved.tensors, saved.state["updater"])
    return updater, config


@torch.no_grad()
def outputs(updater, obs, first):
    """What a policy computes of observations [T+1, B, ...]: params [T, B, P] and values [T+1, B]."""
    out = updater.model.unroll(obs, torch.zeros(first.shape[1], updater.model.state_size), first)
    return out.params, scale_of(updater.model.value_norm, obs).denormalize(out.value)


def observe(obs_space, action_space, config, seed):
    """Random observations {key: [T+1, B, ...]}, and where episodes begin."""
    batch = make_batch(
        spec_of(obs_space, action_space, config).obs_space, ActionSpec.of(action_space), seed, size=(T, B)
    )
    batch.first[0] = True
    return batch.obs, batch.first


def inside(old, new):
    """Observations of a larger space: old ones stand in front, along each axis, of others."""
    out = {key: torch.zeros_like(rows) if key == TASK else rows.clone() for key, rows in new.items()}
    for key in old.keys() & new.keys():
        out[key][tuple(map(slice, old[key].shape))] = old[key].to(out[key].dtype)
    return out
