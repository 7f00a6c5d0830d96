"""Chains of operations on networks of all kinds: the last one computes what the first one did, and all of it learns."""

import gymnasium as gym
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import box, inside, observe, operate, outputs, patient, picture, resumed, train

NETWORKS = st.fixed_dictionaries(
    {
        "core": st.sampled_from(["none", "gru", "lstm", "mingru"]),
        "share_critic": st.booleans(),
        "nonlinearity": st.sampled_from(["elu", "relu", "tanh"]),
        "normalize_returns": st.booleans(),
        "encoder_mlp_layers": st.sampled_from([(6,), (6, 5)]),
        "optimizer": st.sampled_from(["adam", "muon"]),
    }
)
HEADS = st.lists(st.integers(2, 3), min_size=2, max_size=2)


class Chain:
    """A policy, and what its environment shows and takes by now."""

    def __init__(self, flags, sizes, num_numbers, is_masked):
        self.flags, self.sizes, self.num_numbers, self.is_masked = dict(flags), list(sizes), num_numbers, is_masked
        self.shapes = {"obs": (4,)}
        self.saved = patient(*self.spaces, num_iterations=2, **self.flags)

    @property
    def spaces(self):
        boxes = {key: picture(*shape) if len(shape) == 3 else box(*shape) for key, shape in self.shapes.items()}
        if self.is_masked:
            boxes["action_mask"] = gym.spaces.Box(0, 1, (sum(self.sizes),), "int8")
        heads = [gym.spaces.Discrete(size) for size in self.sizes]
        numbers = [box(self.num_numbers)] if self.num_numbers else []
        return boxes, gym.spaces.Tuple((*numbers, *heads))

    def step(self, name):
        STEPS[name](self)
        self.saved = operate(
            self.saved, *self.spaces, request={"new_choice_probability": 0.0}, **self.flags
        ).checkpoint()


def add_layer(chain):
    widths, residual = (chain.flags.get(f"encoder_mlp_{name}", 0) for name in ("layers", "residual"))
    chain.flags |= {"encoder_mlp_layers": (*widths, widths[-1]), "encoder_mlp_residual": residual + 1}


def add_units(chain):
    chain.flags["encoder_mlp_layers"] = tuple(width + 2 for width in chain.flags["encoder_mlp_layers"])


def add_memory(chain):
    if chain.flags["core"] == "none":
        chain.flags |= {"core": "gru", "core_skip": True}
    else:
        chain.flags["rnn_size"] = chain.flags.get("rnn_size", 8) + 2


def add_picture(chain):
    chain.shapes["a picture"] = (36, 36, chain.shapes.get("a picture", (0, 0, 0))[2] + 1)


STEPS = {
    "an entry": lambda chain: chain.shapes.update(obs=(chain.shapes["obs"][0] + 1,)),
    "a key": lambda chain: chain.shapes.update({f"key {len(chain.shapes)}": (2,)}),
    "a picture, or a channel of it": add_picture,
    "a choice": lambda chain: chain.sizes.__setitem__(0, chain.sizes[0] + 1),
    "a head": lambda chain: chain.sizes.append(2),
    "units": add_units,
    "a layer": add_layer,
    "a core, or units of it": add_memory,
    "a critic": lambda chain: chain.flags.update(share_critic=False),
    "a clock": lambda chain: chain.flags.update(critic_clock=True, critic_clock_residual=True),
    "another scale of values": lambda chain: chain.flags.update(normalize_returns=not chain.flags["normalize_returns"]),
}


@settings(max_examples=15)
@given(NETWORKS, HEADS, st.integers(0, 2), st.booleans(), st.lists(st.sampled_from([*STEPS]), min_size=5, max_size=5))
def test_after_five_operations_the_outputs_are_those_from_before_and_new_weights_learn(
    flags, sizes, num_numbers, is_masked, steps
):
    chain = Chain(flags, sizes, num_numbers, is_masked)
    first_flags, first_spaces, first_saved = dict(chain.flags), chain.spaces, chain.saved
    for name in steps:
        chain.step(name)
    before, config = resumed(first_saved, *first_spaces, **first_flags)
    after, new_config = resumed(chain.saved, *chain.spaces, **chain.flags)
    old_obs, first = observe(*first_spaces, config, seed=1)
    new_obs, _ = observe(*chain.spaces, new_config, seed=2)
    if is_masked:  # each head has a choice that it had before
        new_obs["action_mask"][..., [sum(chain.sizes[:n]) for n in range(len(chain.sizes))]] = 1
        old_obs["action_mask"] = new_obs["action_mask"][..., columns(sizes, chain.sizes, 0)]
    seen = inside({key: rows for key, rows in old_obs.items() if key != "action_mask"}, new_obs)
    (params, value), (new_params, new_value) = outputs(before, old_obs, first), outputs(after, seen, first)
    kept = columns(sizes, chain.sizes, num_numbers)
    torch.testing.assert_close(new_params[..., kept], params, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(new_value, value, atol=2e-5, rtol=1e-5)
    after._learning_rate.steps_since_surgery = None
    after._learning_rate.set(0.02)
    train(after, *chain.spaces, new_config, num_iterations=7, seed=50)
    for name, weight in after.model.named_parameters():
        moments = after._optimizer.moments(weight)
        assert not weight.requires_grad or any(moments[key].any() for key in moments if key != "step"), name


def columns(old, new, num_numbers):
    """The places of old logits and numbers among the new params."""
    starts = [sum(new[:n]) for n in range(len(old))]
    logits = [start + n for start, size in zip(starts, old, strict=True) for n in range(size)]
    return logits + [sum(new) + n for n in range(2 * num_numbers)]
