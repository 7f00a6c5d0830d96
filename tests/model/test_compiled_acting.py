"""Acting by a compiled program: made beside, checked at its first use; what goes wrong costs nothing but speed."""

import math
import os
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_batches import BY_KINDS
from untrained import untrained

from sf import envs
from sf.config import ModelConfig
from sf.envs import ActionSpec
from sf.envs.added.clock import with_clock
from sf.envs.spaces.partial_box import PartialBox
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.model import acting, compiled_acting, distributions
from sf.model.acting import TOLERANCE, Acting, Saying
from sf.model.compiled_acting import CompiledActing, acting_of, saying_of
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model, load_flat, num_weights, write_flat
from sf.system.native import kernels, packing, programs

pytestmark = [
    pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler"),
    pytest.mark.timeout(450),
]

PATIENCE_S = 400.0  # the compiler gives way to everything else on a busy machine
VECTOR = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (5,), np.float32))
IMAGE = gym.spaces.Dict(
    obs=gym.spaces.Box(0, 255, (48, 64, 3), np.uint8), measurements=gym.spaces.Box(-1, 1, (4,), np.float32)
)
MIXED = gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Discrete(2), gym.spaces.Box(-1, 1, (2,))))
VECTORS = "vectors"
IMAGES = "images, a recurrent core and mixed actions"
KINDS = "agents of two kinds, which have other choices and numbers"
GATED = "a core whose gates depend on the input alone"
ATTENTIVE = "a core that attends to the last steps"
APART = "an LSTM with layer norms, and a critic of its own that predicts logarithms"
NETWORKS = {
    VECTORS: (VECTOR, gym.spaces.Discrete(3), {"encoder_mlp_layers": (8,)}),
    IMAGES: (
        IMAGE,
        MIXED,
        {
            "encoder_mlp_layers": (8,),
            "encoder_conv_mlp_layers": (16,),
            "core": "gru",
            "rnn_size": 8,
            "normalize_returns": True,
        },
    ),
    KINDS: (BY_KINDS, gym.spaces.Tuple((*MIXED.spaces[:2], PartialBox(-1, 1, (2,)))), {"encoder_mlp_layers": (8,)}),
    GATED: (VECTOR, MIXED, {"encoder_mlp_layers": (8,), "core": "mingru", "rnn_size": 8}),
    ATTENTIVE: (
        VECTOR,
        MIXED,
        {"encoder_mlp_layers": (8,), "core": "transformer", "rnn_size": 8, "attention_window": 5},
    ),
    APART: (
        VECTOR,
        MIXED,
        {
            "encoder_mlp_layers": (16,),
            "core": "lstm",
            "rnn_size": 8,
            "layer_norm": True,
            "share_critic": False,
            "value_scale": "symlog",
        },
    ),
}


class Actor:
    """A network with what a policy worker has around it."""

    def __init__(self, obs_space, action_space, flags, precision="float32"):
        self.space, self.spec = obs_space, ActionSpec.of(action_space)
        torch.manual_seed(0)
        with torch.inference_mode(False):  # as in a policy worker
            self.network = inference_model(ModelConfig(**flags), obs_space, self.spec, precision, "cpu")
        self.acting = Acting(self.network, self.spec)
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.made_from = f"{flags} {precision}"

    def compiled(self, begins_after_s=None):
        example = self.inputs(programs.BATCH)

        def agree(inputs, one, other):
            return acting.agree_on(inputs, one, other, self.spec, self.dtype)

        return CompiledActing(self.acting, example, self.made_from, agree, begins_after_s)

    def inputs(self, num):
        rng = np.random.default_rng(num)
        obs = {
            key: torch.from_numpy(rng.uniform(box.low, box.high, (num, *box.shape)).astype(box.dtype))
            for key, box in self.space.items()
        }
        state = torch.from_numpy(rng.standard_normal((num, self.network.state_size)).astype(np.float32))
        noise = ActionDistribution.noise(self.spec, (num,), torch.device("cpu"), torch.Generator().manual_seed(num))
        return obs, state, torch.from_numpy(rng.random(num) < 0.5), *noise


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled_acting, "BEGINS_AFTER_S", 0.0)


def look_until_it_ends(compiled):
    ends = time.monotonic() + PATIENCE_S
    while compiled._program is None and not compiled._beside.is_over:
        compiled.look()
        assert time.monotonic() < ends
        time.sleep(0.01)


def assert_same(found, expected, spec, tolerance):
    num_discrete = len(spec.discrete_sizes)
    same = (found[0][:, :num_discrete] == expected[0][:, :num_discrete]).all(dim=1)
    assert same.float().mean() > 0.9
    floats, expected_floats = (
        out[0][same, num_discrete:].contiguous().view(torch.float32) for out in (found, expected)
    )
    assert torch.allclose(floats, expected_floats, rtol=tolerance, atol=tolerance)
    assert torch.allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_step_can_be_followed_for_batches_of_any_size(name, monkeypatch):
    monkeypatch.setattr(packing, "_can_be_packed", lambda _: False)  # packed weights come with the compiled program
    actor = Actor(*NETWORKS[name])
    program = programs.followed(actor.acting, actor.inputs(programs.BATCH)).module()
    distributions._padded_index.cache_clear()  # tensors without content, which a maker keeps to itself
    inputs, weights = actor.inputs(5), programs.weights_of(actor.acting)
    with torch.no_grad():
        found, expected = program(weights, *inputs), actor.acting(*inputs)
    assert_same(found, expected, actor.spec, tolerance=1e-5)


@pytest.mark.long
@torch.inference_mode()
def test_what_a_teacher_says_is_compiled_as_well(said):
    space, action_space, flags = NETWORKS[IMAGES]
    actor = Actor(space, action_space, flags, "bfloat16")
    saying = saying_of(actor.network, ModelConfig(**flags), space, True, "cpu", "a teacher")
    with torch.inference_mode(False):
        look_until_it_ends(saying)
    for num in (7, 1):
        obs, state, first, *_ = actor.inputs(num)
        found, expected = saying(obs, state, first), Saying(actor.network)(obs, state, first)
        assert [tensor.shape for tensor in found] == [tensor.shape for tensor in expected]
        assert all(torch.allclose(*pair, rtol=0.1, atol=0.1) for pair in zip(found, expected, strict=True))
    assert saying._program is not None
    assert said == ["a teacher's step is compiled from here on; the next run of this network begins with that"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "precision"),
    [(IMAGES, "bfloat16"), (APART, "float32"), pytest.param(ATTENTIVE, "bfloat16", marks=pytest.mark.long)],
)
@torch.inference_mode()
def test_a_program_is_made_beside_and_computes_the_same(name, precision, said):
    actor = Actor(*NETWORKS[name], precision)
    compiled, player = actor.compiled(), actor.compiled(begins_after_s=math.inf)
    player.look()
    assert player._beside._maker is None
    tolerance = TOLERANCE[actor.dtype]
    with torch.inference_mode(False):
        look_until_it_ends(compiled)
        look_until_it_ends(player)
    assert len(said) == 2
    assert "is compiled from here on" in said[0]
    for num in (64, 1, 2, 7):
        inputs = actor.inputs(num)
        assert_same(compiled(*inputs), actor.acting(*inputs), actor.spec, tolerance)
    program, ran = compiled._program, []
    compiled._program = lambda *inputs: ran.append(len(inputs[1])) or program(*inputs)
    compiled(*actor.inputs(1))
    assert ran == [2]  # one alone is computed twice
    obs, *others = actor.inputs(7)
    found = compiled(dict(reversed(obs.items())), *others)  # by name, not by place
    assert_same(found, actor.acting(obs, *others), actor.spec, tolerance)

    again = actor.compiled()  # another policy worker, or run
    assert again._program is not None
    assert len(said) == 2

    for version in range(1, 4):  # as they come from the learner, again and again
        with torch.inference_mode(False):
            weights = torch.empty(num_weights(actor.network))
            write_flat(actor.network, weights)
            change = torch.randn(len(weights), generator=torch.Generator().manual_seed(version))
            load_flat(actor.network, weights * (1 + change / 8))
        for num in (7, 2):
            inputs = actor.inputs(num)
            for each in (compiled, again, player):
                assert_same(each(*inputs), actor.acting(*inputs), actor.spec, tolerance)


@pytest.mark.parametrize(
    ("env", "critic_clock", "precision"),
    [("CartPole-v1", True, "bfloat16"), ("CartPole-v1", False, "float32"), ("toy_symbols", True, "float32")],
)
def test_a_snapshot_acts_by_the_program_of_the_run(env, critic_clock, precision):
    policy = TorchPolicy(untrained(env, critic_clock=critic_clock), "test", precision=precision)
    model, spec = policy.config.model, envs.describe(env, policy.config.environment)
    spec = with_clock(spec) if critic_clock else spec
    of_run = inference_model(model, spec.obs_space, ActionSpec.of(spec.action_space), precision, "cpu")
    paths = {
        acting_of(network, model, spec, precision == "bfloat16", "cpu", begins_after_s)._beside._path
        for network, begins_after_s in ((of_run, None), (policy.network, math.inf))
    }
    assert len(paths) == 1


def test_nothing_is_made_before_the_run_has_lasted(monkeypatch):
    monkeypatch.setattr(compiled_acting, "BEGINS_AFTER_S", 1000.0)
    compiled = Actor(*NETWORKS[VECTORS]).compiled()
    compiled.look()
    assert compiled._beside._maker is None


def changed(name, by):
    """What a program would give that computes this wrongly. answers: [N, 1 action, log-probability, value]."""

    def program(answers, state):
        floats = answers[:, 1:].clone().view(torch.float32)
        actions = answers[:, :1].clone()
        if name == "actions":
            actions = (actions + 1) % 3
        elif name == "log-probabilities":
            floats[:, 0] -= by
        elif name == "values":
            floats[:, 1] += by
        else:
            state = state + by
        return torch.cat((actions, floats.view(torch.int32)), dim=1), state

    return program


def test_one_observation_is_compared_by_many_draws_of_its_action(said):
    actor = Actor(*NETWORKS[VECTORS])
    compiled, ran = actor.compiled(), []

    def program(*inputs):
        ran.append(len(inputs[1]))
        answers, state = actor.acting(*inputs)
        if len(answers) > 2:
            answers[0, 0] = (answers[0, 0] + 1) % 3  # where rounding decides
        return answers, state

    compiled._program = program
    inputs = actor.inputs(1)
    assert_same(compiled(*inputs), actor.acting(*inputs), actor.spec, 1e-5)
    assert ran == [acting.DRAWS, 2]
    assert said == []


def test_a_program_that_another_process_has_made_is_left_to_it():
    actor = Actor(*NETWORKS[VECTORS])
    compiled = actor.compiled(begins_after_s=math.inf)
    compiled._program = lambda *inputs: changed("values", 0.01)(*actor.acting(*inputs))
    compiled._beside._path.write_bytes(b"of a policy worker")
    inputs = actor.inputs(6)
    assert torch.equal(compiled(*inputs)[0], actor.acting(*inputs)[0])
    assert compiled._program is None
    assert compiled._beside._path.exists()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("actions", {}),
        ("log-probabilities", {"float32": 0.002, "bfloat16": 0.07}),
        ("values", {"float32": 0.01, "bfloat16": 1.0}),
        ("states", {"float32": 0.01, "bfloat16": 1.0}),
    ],
)
def test_a_program_that_computes_something_else_is_given_up_with_a_sentence(name, by, precision, said, monkeypatch):
    monkeypatch.setattr(programs, "make", lambda *_: None)  # a compiler would outlive the test
    obs_space, action_space, flags = NETWORKS[VECTORS]
    actor = Actor(obs_space, action_space, {**flags, "core": "gru", "rnn_size": 4}, precision)
    compiled = actor.compiled()
    compiled._program = lambda *inputs: changed(name, by.get(precision))(*actor.acting(*inputs))
    compiled._beside._path.write_bytes(b"of other code")
    inputs = actor.inputs(6)
    for _ in range(2):
        found, expected = compiled(*inputs), actor.acting(*inputs)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    compiled.look()
    assert compiled._program is None
    assert len(said) == 1
    assert "its results differ" in said[0]
    assert not compiled._beside._path.exists()


def test_a_program_that_cannot_be_made_is_one_sentence_with_the_reason(monkeypatch, said):
    def refuse(*_):
        raise RuntimeError("no room\nmore")

    monkeypatch.setattr(programs, "make", refuse)
    actor = Actor(*NETWORKS[VECTORS])
    compiled = actor.compiled()
    look_until_it_ends(compiled)
    (sentence,) = said
    assert sentence.startswith("the policy's step is not compiled (RuntimeError: no room), so it runs with PyTorch's")
    inputs = actor.inputs(4)
    assert torch.equal(compiled(*inputs)[0], actor.acting(*inputs)[0])


def test_a_maker_that_is_killed_is_one_sentence(monkeypatch, said):
    monkeypatch.setattr(programs, "make", lambda *_: time.sleep(PATIENCE_S))
    actor = Actor(*NETWORKS[VECTORS])
    compiled = actor.compiled()
    compiled.look()
    os.kill(compiled._beside._maker._pid, 9)
    look_until_it_ends(compiled)
    assert "the compiler ended with status 9" in said[0]


def test_closing_ends_the_maker_at_once(monkeypatch):
    def make(_follow, path):
        Path(path.parent, f"making-{os.getpid()}-folder").mkdir()
        time.sleep(PATIENCE_S)

    monkeypatch.setattr(programs, "make", make)
    compiled = Actor(*NETWORKS[VECTORS]).compiled()
    compiled.look()
    pid, folder = compiled._beside._maker._pid, compiled._beside._path.parent
    while not list(folder.glob("making-*")):
        time.sleep(0.01)
    started = time.monotonic()
    compiled.close()
    assert time.monotonic() - started < PATIENCE_S / 2
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not list(folder.glob("making-*"))
