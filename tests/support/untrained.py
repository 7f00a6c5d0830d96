"""Checkpoints of networks that nobody has trained: quicker to have than a run."""

import torch

from sf import envs
from sf.config import Config
from sf.envs import ActionSpec
from sf.envs.spaces import space_json
from sf.model.building import build_model
from sf.storage.checkpoint import MODEL, Checkpoint


def untrained(env, seed=0, env_steps=1234, **flags):
    """What a learner would save of a small network for `env`."""
    small = {"encoder_mlp_layers": (16,), "encoder_conv_mlp_layers": (32,), "rnn_size": 16}
    config = Config().replace(env=env, **{**small, **flags})
    spec = envs.describe(env, config.environment)
    torch.manual_seed(seed)
    model = build_model(config.model, spec.obs_space, ActionSpec.of(spec.action_space))
    state = {
        "env_steps": env_steps,
        "config": config.flat(),
        "obs_space": space_json.to_json(spec.native_obs_space),
        "action_space": space_json.to_json(spec.action_space),
    }
    return Checkpoint({MODEL + name: tensor for name, tensor in model.state_dict().items()}, state)
