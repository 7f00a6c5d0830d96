"""Exported policies compute what the trainer's network does, and act without torch and without the trainer."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from untrained import untrained

from sf import envs
from sf.envs.spaces import space_json
from sf.envs.spaces.actions import decoder, heads, leaf_actions, leaves
from sf.evaluation.play.onnx_policy import OnnxNetwork, OnnxPolicy
from sf.evaluation.play.policy import load_policy
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.model.distributions import ActionDistribution
from sf.model.registry import register_encoder
from sf.storage import checkpoint
from sf.tools.commands import export as export_command
from sf.tools.export import export
from sf.tools.export.check import TOLERANCE, largest_difference
from sf.tools.export.export import export_policy
from sf.tools.export.graph import action_layout

ROOT = Path(__file__).parents[3]
INF = np.inf


class Spaces(gym.Env):
    """Random observations."""

    def __init__(self, obs_space, action_space):
        self.observation_space = obs_space
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, False, False, {}


SEVERAL_INPUTS = gym.spaces.Dict(
    {
        "state": gym.spaces.Box(-INF, INF, (3,), np.float64),  # as an input of recurrent networks is called, too
        "eyes/left": gym.spaces.Box(0, 255, (36, 40, 3), np.uint8),
        "door": gym.spaces.Discrete(3, start=-1),
        "counts": gym.spaces.Box(-5, 5, (2,), np.int64),
        "camera": gym.spaces.Box(0, 255, (3, 36, 40), np.uint8),
        "glyphs": gym.spaces.Box(0, 5976, (21, 79), np.int16),
        "grid": gym.spaces.Box(0, 255, (7, 7, 3), np.uint8),
    }
)
EVERY_ACTION = gym.spaces.Tuple(
    [
        gym.spaces.MultiDiscrete([3, 2]),
        gym.spaces.Box(np.array([-1.0, 0.0, -INF]), np.array([3.0, INF, INF]), dtype=np.float64),
        gym.spaces.Discrete(4, start=5),
    ]
)
envs.register_env("several_inputs", lambda: Spaces(SEVERAL_INPUTS, EVERY_ACTION))
MIXED = gym.spaces.Dict(
    state=gym.spaces.Box(-INF, INF, (3,), np.float64),
    clock=gym.spaces.Box(1.7e9, 1.7e9 + 10, (2,), np.float64),
    action_mask=gym.spaces.MultiBinary(5),
)
MIXED_ACTION = gym.spaces.Dict(
    turn=gym.spaces.Tuple([gym.spaces.MultiDiscrete([3, 2]), gym.spaces.Box(-2.0, 5.0, (2,))]),
    price=gym.spaces.Box(0, 1000, (1,), np.int32),
)
envs.register_env("mixed", lambda: Spaces(MIXED, MIXED_ACTION))


@register_encoder("export_own")
class Own(nn.Module):
    def __init__(self, space, config):
        super().__init__()
        self.out_size = 8
        self.layer = nn.Linear(space.shape[0], self.out_size)

    def forward(self, obs):
        return self.layer(obs) + torch.zeros(obs.shape[0], self.out_size)


@register_encoder("export_untraceable")
class Untraceable(Own):
    def forward(self, obs):
        return self.layer(obs) * (2.0 if float(obs.sum()) > 0 else 1.0)


CASES = {
    "policy.onnx": ("CartPole-v1", {}),
    "recurrent.onnx": (
        "CartPole-v1",
        {"core": "gru", "layer_norm": True, "share_critic": False, "value_scale": "symlog", "normalize_returns": False},
    ),
    "mixed.onnx": ("mixed", {"core": "gru", "normalize_returns": True, "initial_stddev": 0.05}),
    "policy.pt2": (
        "CartPole-v1",
        {"encoder": "export_own", "core": "gru", "share_critic": False, "normalize_input": False},
    ),
    "kinds.onnx": ("kinds_env:Movers", {"initial_stddev": 0.05}),
    "mingru.onnx": ("CartPole-v1", {"core": "mingru"}),
    "transformer.onnx": ("CartPole-v1", {"core": "transformer", "attention_window": 5}),
    "everything.onnx": ("several_inputs", {"encoder": "atari", "core": "lstm", "normalize_returns": True}),
}
SLOW = {"policy.onnx", "recurrent.onnx", "everything.onnx", "mingru.onnx", "transformer.onnx"}


def marked(names):
    return [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in names]


def random_obs(space, *shape, seed=0):
    """{key: [*shape, ...]}, of the space or around 100 where that is infinite."""
    rng = np.random.default_rng(seed)
    obs = {}
    for key, box in space.items():
        low, high = np.where(np.isfinite(box.low), box.low, 90.0), np.where(np.isfinite(box.high), box.high, 110.0)
        numbers = rng.uniform(low, high, (*shape, *box.shape))
        obs[key] = (numbers if box.dtype.kind == "f" else numbers.round()).astype(box.dtype)
    return obs


def as_if_trained(env, **flags):
    """A policy whose statistics and probabilities are not those of the start."""
    policy = TorchPolicy(untrained(env, **flags), "test")
    mask = torch.ones(4, 8, dtype=torch.bool)
    obs = {key: torch.from_numpy(rows) for key, rows in random_obs(policy.flat_obs_space, 4, 8, seed=1).items()}
    policy.network.update_normalizers(obs, mask)
    policy.network.update_value_norm(torch.randn(4, 8) * 50 + 300, mask)
    policy.network.policy_head.weight.mul_(200)
    policy.network.value_head.bias.add_(1)
    return policy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def exported(folder):
    """A function: the name of a case -> the policy and its file, which is written once."""
    made, said = {}, []
    handler = logging.Handler(logging.ERROR)
    handler.emit = said.append
    logging.getLogger("torch").addHandler(handler)

    def get(name):
        if name not in made:
            env, flags = CASES[name]
            policy = as_if_trained(env, **flags)
            assert export_policy(policy, folder / name).difference <= TOLERANCE
            assert said == []  # of a way to trace that fails where the other succeeds
            made[name] = policy
        return made[name], folder / name

    yield get
    logging.getLogger("torch").removeHandler(handler)


def runner(path, is_recurrent):
    """A function: obs, state, first -> the outputs by name; with no code of the exporter."""
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [node.name for node in session.get_outputs()]

        def run_onnx(obs, state, first):
            feed = {"obs" if key == "obs" else f"obs/{key}": rows for key, rows in obs.items()}
            memory = {"state": state, "first": first} if is_recurrent else {}
            return dict(zip(names, session.run(None, {**feed, **memory}), strict=True))

        return run_onnx
    program = torch.export.load(path).module()

    def run_program(obs, state, first):
        memory = {"state": torch.from_numpy(state), "first": torch.from_numpy(first)} if is_recurrent else {}
        out = program(obs={key: torch.from_numpy(rows) for key, rows in obs.items()}, **memory)
        return {name: tensor.numpy() for name, tensor in out.items()}

    return run_program


@pytest.mark.parametrize("name", marked(CASES))
def test_an_export_gives_what_the_learner_computes_of_whole_trajectories(exported, name):
    policy, path = exported(name)
    run = runner(path, policy.network.state_size > 0)
    for batch_size in (1, 5):
        compare_trajectories(policy, run, batch_size)


def compare_trajectories(policy, run, batch_size):
    network, steps = policy.network, 7
    obs = random_obs(policy.flat_obs_space, steps, batch_size)  # {key: [T, N, ...]}
    first = np.random.default_rng(2).random((steps, batch_size)) < 0.3
    state = np.random.default_rng(3).standard_normal((batch_size, network.state_size)).astype(np.float32)
    tensors = {key: torch.from_numpy(rows) for key, rows in obs.items()}
    unrolled = network.unroll(tensors, torch.from_numpy(state), torch.from_numpy(first))
    value = network.value_norm.denormalize(unrolled.value)
    for t in range(steps):
        out = run({key: rows[t] for key, rows in obs.items()}, state, first[t])
        state = out.get("next_state", state)
        np.testing.assert_allclose(out["value"], value[t], rtol=1e-4, atol=1e-4)
        if t == steps - 1:
            break  # the learner has no distribution of the last row
        params = [out[key] for key in ("logits", "mean", "log_stddev") if key in out]
        np.testing.assert_allclose(np.concatenate(params, -1), unrolled.params[t], rtol=1e-4, atol=1e-4)
        mode = ActionDistribution(policy.action_spec, torch.from_numpy(np.concatenate(params, -1))).mode()
        for n, (discrete, continuous) in enumerate(zip(*(part.numpy() for part in mode), strict=True)):
            action = decoder(policy.action_space)(discrete, continuous)
            flat = {"action_discrete": [], "action_continuous": []}
            parts = leaf_actions(policy.action_space, action)
            for leaf, part in zip(leaves(policy.action_space), parts, strict=True):
                flat["action_continuous" if heads(leaf) is None else "action_discrete"].extend(np.ravel(part))
            for key, numbers in flat.items():
                np.testing.assert_allclose(out[key][n] if key in out else [], numbers, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_the_cases_are_not_trivial(exported):
    policy, path = exported("everything.onnx")
    run = runner(path, is_recurrent=True)
    obs, state = random_obs(policy.flat_obs_space, 50), np.zeros((50, policy.network.state_size), np.float32)
    out = run(obs, state, np.ones(50, bool))
    assert len(np.unique(out["action_discrete"], axis=0)) > 1
    assert (out["value"] > 30).all()  # in the scale of returns
    assert np.ptp(out["mean"]) > 0.1
    with_memory = run(obs, out["next_state"], np.zeros(50, bool))
    assert np.abs(with_memory["mean"] - out["mean"]).max() > 0.01


@pytest.mark.parametrize("name", marked(name for name in CASES if name.endswith(".onnx")))
def test_a_file_acts_as_the_policy_does(exported, name):
    policy, path = exported(name)
    loaded = load_policy(path)
    assert isinstance(loaded, OnnxPolicy)
    assert (loaded.obs_space, loaded.action_space) == (policy.obs_space, policy.action_space)
    assert (loaded.env_id, loaded.env_steps, loaded.name) == (policy.env_id, 1234, str(path))
    policy.obs_space.seed(0)
    for t in range(12):
        if t in (0, 5):
            policy.reset()
            loaded.reset()
        obs = policy.obs_space.sample()
        expected, found = (each.act(obs, deterministic=True) for each in (policy, loaded))
        assert policy.action_space.contains(loaded.act(obs))
        assert policy.action_space.contains(found)
        assert type(found) is type(expected)
        parts = (leaf_actions(policy.action_space, action) for action in (expected, found))
        for a, b in zip(*parts, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        policy.act(obs)  # as the other one has


def test_actions_are_drawn_with_their_probabilities(exported):
    policy, path = exported("policy.onnx")
    several = random_obs(policy.flat_obs_space, 50)["obs"]
    network, memory = OnnxNetwork(path.read_bytes(), "test"), (np.zeros((50, 0), np.float32), np.ones(50, bool))
    out = network({"obs": several}, *memory)
    as_float64 = network({"obs": several.astype(np.float64)}, *memory)  # as where files did not keep its digits
    np.testing.assert_array_equal(as_float64["logits"], out["logits"])
    probabilities = 1 / (1 + np.exp(out["logits"][:, 0] - out["logits"][:, 1]))
    chosen = np.abs(probabilities - 0.3).argmin()
    obs, probability = several[chosen], probabilities[chosen]
    assert 0.2 < probability < 0.4
    loaded = load_policy(path, seed=1)
    actions = [loaded.act(obs) for _ in range(2000)]
    assert np.mean(actions) == pytest.approx(probability, abs=4 * np.sqrt(0.3 * 0.7 / 2000))
    again = load_policy(path, seed=1)
    assert [again.act(obs) for _ in range(50)] == actions[:50]


def test_a_file_obeys_action_masks_and_draws_continuous_actions_around_their_mean(exported):
    _, path = exported("mixed.onnx")
    loaded = load_policy(path)
    obs = {"state": np.full(3, 100.0), "clock": np.full(2, 1.7e9 + 5)}

    def act(**how):
        loaded.reset()
        return loaded.act(obs, **how)["turn"]

    for allowed in ([2, 0], [1, 1], [0, 1]):
        obs["action_mask"] = np.zeros(5, np.int8)
        obs["action_mask"][[allowed[0], 3 + allowed[1]]] = 1
        for deterministic in (True, False):
            assert act(deterministic=deterministic)[0].tolist() == allowed
    mean = act(deterministic=True)[1]
    assert (np.abs(mean - 1.5) < 3).all()  # where nothing is clipped
    actions = np.stack([act()[1] for _ in range(400)])
    stddev = 0.05 * 3.5  # in units of half the range
    np.testing.assert_allclose(actions.mean(0), mean, atol=4 * stddev / np.sqrt(400))
    np.testing.assert_allclose(actions.std(0), stddev, rtol=0.15)


@pytest.mark.parametrize("name", ["mixed.onnx", "policy.pt2"])
def test_a_file_says_what_it_is(exported, name):
    policy, path = exported(name)
    if path.suffix == ".onnx":
        texts = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    else:
        files = {"metadata.json": ""}
        torch.export.load(path, extra_files=files)
        texts = {key: json.dumps(value) for key, value in json.loads(files["metadata.json"]).items()}
    metadata = {key: json.loads(text, parse_constant=pytest.fail) for key, text in texts.items()}  # no Infinity, NaN
    assert (metadata["env"], metadata["env_steps"]) == (policy.env_id, policy.env_steps)
    assert space_json.from_json(metadata["obs_space"]) == policy.obs_space
    assert space_json.from_json(metadata["action_space"]) == policy.action_space
    assert metadata["model"]["core"] == policy.config.model.core
    assert metadata["action_layout"]["discrete_sizes"] == list(policy.action_spec.discrete_sizes)
    assert str(ROOT).encode() not in path.read_bytes()  # nor anything of the machine that wrote it


def test_a_batch_of_any_size_has_the_same_name_everywhere(exported):
    _, path = exported("mixed.onnx")
    graph = onnx.load(path).graph
    onnx.checker.check_model(onnx.load(path), full_check=True)
    inputs = [value.name for value in graph.input]
    assert inputs == ["obs/action_mask", "obs/clock", "obs/state", "state", "first"]  # no key hides another input
    batch = {value.type.tensor_type.shape.dim[0].dim_param for value in [*graph.input, *graph.output]}
    assert batch == {"N"}


@pytest.mark.parametrize(
    "space",
    [
        EVERY_ACTION,
        MIXED_ACTION,
        gym.spaces.Discrete(3, start=-2),
        gym.spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [2, 3]]),
        gym.spaces.Box(-np.finfo(np.float64).max, np.finfo(np.float64).max, (2,), np.float64),
        gym.spaces.Box(np.array([[-0.1], [5.0]]), np.array([[0.4], [INF]]), dtype=np.float64),
    ],
    ids=str,
)
def test_the_layout_of_actions_is_that_of_the_decoder(space):
    layout = {key: np.array(numbers) for key, numbers in action_layout(space).items()}
    num_heads, num_continuous = len(layout["discrete_sizes"]), len(layout["continuous_low"])
    rng = np.random.default_rng(0)
    for _ in range(20):
        choices = rng.integers(0, layout["discrete_sizes"], num_heads)
        x = rng.standard_normal(num_continuous) * 2
        action = decoder(space)(choices, x)
        in_order = list(zip(leaves(space), leaf_actions(space, action), strict=True))
        numbers = layout["continuous_centre"] + layout["continuous_scale"] * x
        numbers = np.where(layout["continuous_is_integer"], np.rint(numbers), numbers)
        numbers = np.clip(numbers, layout["continuous_low"], layout["continuous_high"])
        for are_numbers, expected in ((False, layout["discrete_start"] + choices), (True, numbers)):
            parts = [np.ravel(part) for leaf, part in in_order if (heads(leaf) is None) == are_numbers]
            np.testing.assert_allclose(np.concatenate(parts) if parts else [], expected, rtol=1e-6)


def test_the_check_sees_another_weight_and_a_nan(exported):
    policy, path = exported("mixed.onnx")
    network = OnnxNetwork(path.read_bytes(), "test")
    assert largest_difference(policy, network) <= TOLERANCE
    weights = {name: tensor.clone() for name, tensor in policy.network.state_dict().items()}
    for change in (0.01, np.nan):
        policy.network.trunk.actor.core.bias_hh.add_(change)
        assert not largest_difference(policy, network) <= TOLERANCE
        policy.network.load_state_dict(weights)


def test_the_check_sees_other_logits_beside_forbidden_ones(exported):
    policy, path = exported("mixed.onnx")
    network = OnnxNetwork(path.read_bytes(), "test")
    assert largest_difference(policy, network) <= TOLERANCE
    bias = policy.network.policy_head.bias
    before = bias.clone()
    bias[0] += 1.0
    assert largest_difference(policy, network) > TOLERANCE
    bias.copy_(before)


def test_what_differs_is_not_written(exported, tmp_path, monkeypatch):
    _, path = exported("policy.onnx")
    other = TorchPolicy(untrained("CartPole-v1", seed=7), "test")
    written = b"", OnnxNetwork(path.read_bytes(), "test")
    monkeypatch.setattr(export, "trace", lambda _: None)
    monkeypatch.setattr(export, "_WRITERS", {".pt2": lambda *_: written})
    with pytest.raises(ValueError, match=r"would differ from PyTorch by \d"):
        export_policy(other, tmp_path / "policy.pt2")
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_cannot_be_traced_is_said_in_one_sentence(tmp_path):
    policy = TorchPolicy(untrained("CartPole-v1", encoder="export_untraceable"), "test")
    with pytest.raises(ValueError, match=r"cannot trace .* export_untraceable"):
        export_policy(policy, tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("train_dir") / "cartpole"
    checkpoint.save(path / "checkpoints", untrained("CartPole-v1"), 1234, keep=2)
    (path / "config.yaml").write_text("env: CartPole-v1\n")
    return path


def test_the_command_says_what_it_wrote_and_a_link_that_is_named_stays_one(run_dir, tmp_path, status_of, capsys):
    (tmp_path / "policy.pt2").symlink_to(tmp_path / "target")
    assert status_of(export_command.main, run_dir, "--out", tmp_path / "policy.pt2") == 0
    printed = capsys.readouterr().out
    assert "CartPole-v1 after 1,234 env steps" in printed
    assert "inputs:  obs float32 [N, 4]\n" in printed
    assert "action_discrete int64 [N, 1], logits float32 [N, 2], value float32 [N]" in printed
    assert re.search(r"largest difference from PyTorch: \S+ \(allowed: 0.001\)", printed)
    assert (tmp_path / "policy.pt2").is_symlink()
    assert (tmp_path / "target").stat().st_size > 1000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--out", "policy.pt"], "must end with .onnx or .pt2"),
        (["--out", "policy.onnx", "--checkpoint", "best"], "no best checkpoint"),
        (["--out", "policy.onnx", "--policy", "2"], "policy is 2"),
        (["--out", "{folder}"], "cannot be written (Is a directory)"),
    ],
)
def test_a_wrong_flag_takes_one_sentence_before_the_work(
    run_dir, flags, message, tmp_path, monkeypatch, capsys, status_of
):
    (tmp_path / "folder.pt2").mkdir()
    flags = [flag.format(folder=tmp_path / "folder.pt2") for flag in flags]
    monkeypatch.setattr(export, "trace", None)  # it is not come to
    assert status_of(export_command.main, run_dir, *flags) == 2
    assert message in capsys.readouterr().err


def not_ours():
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ({}, "with sf-export"),
        ({"format": "2"}, "newer version"),
        (b"not a model", "not an ONNX file"),
    ],
    ids=["missing", "foreign", "newer", "broken"],
)
def test_a_file_that_cannot_be_used_is_said_in_one_sentence(tmp_path, content, message):
    path = tmp_path / "policy.onnx"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        model = not_ours()
        onnx.helper.set_model_props(model, content)
        onnx.save(model, path)
    with pytest.raises(ValueError, match=message):
        load_policy(path)


def test_what_load_policy_does_not_take_is_said(exported, monkeypatch):
    with pytest.raises(ValueError, match=r"torch\.export\.load"):
        load_policy("policy.pt2")
    _, path = exported("policy.onnx")
    with pytest.raises(ValueError, match="on the CPU"):
        load_policy(path, device="cuda")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match="pip install onnxruntime"):
        load_policy(path)


def test_a_file_acts_without_torch(exported):
    _, path = exported("recurrent.onnx")
    code = (
        "import sys, numpy as np\n"
        "from sf.evaluation.play.onnx_policy import OnnxPolicy\n"
        f"policy = OnnxPolicy({str(path)!r})\n"
        "assert policy.act(np.zeros(4, np.float32)) in (0, 1)\n"
        "assert not any(m == 'torch' or m.startswith('torch.') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_examples_of_the_docs_run(exported, monkeypatch):
    for name in ("policy.onnx", "recurrent.onnx", "policy.pt2"):
        _, path = exported(name)
    monkeypatch.chdir(path.parent)
    text = (ROOT / "docs" / "export.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["action"] in (0, 1)
