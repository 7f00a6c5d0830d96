"""The transformer against a slow double loop, and step by step against whole trajectories."""

import math

import pytest
import torch

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.model.cores.attention import WindowAttention, visible
from sf.model.cores.transformer import Transformer

IN, H, HEADS, WINDOW, LAYERS = 5, 6, 2, 4, 2
REACH = LAYERS * (WINDOW - 1)  # steps back from which something can come


def build(batch=3, num_steps=12, dtype=torch.float32, resets=0.2):
    torch.manual_seed(0)
    core = Transformer(IN, H, num_layers=LAYERS, num_heads=HEADS, window=WINDOW).to(dtype)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(num_steps, batch, IN, dtype=dtype)
    return core, x, torch.zeros(batch, core.state_size, dtype=dtype), torch.rand(num_steps, batch) < resets


def stepped(core, x, state, first):
    """The output [T, B, H] of one step at a time, and the state before each."""
    outs, states = [], []
    for t in range(len(x)):
        states.append(state)
        out, state = core.step(x[t], state, first[t])
        outs.append(out)
    return torch.stack(outs), [*states, state]


def slow_attention(attention, x, context, keys_of):
    """keys_of: (t, b) -> the distances of the steps that step t of trajectory b may see."""
    (num_steps, batch, width), num_context, d = x.shape, context.shape[2], H // HEADS
    q, k, v = attention.project(x).split(width, dim=-1)
    out = torch.zeros_like(x)
    for t in range(num_steps):
        for b in range(batch):
            for head in range(HEADS):
                part = slice(head * d, (head + 1) * d)
                rows = []
                for distance in keys_of(t, b):
                    at = t - distance
                    key = k[at, b] if at >= 0 else context[b, 0, num_context + at]
                    value = v[at, b] if at >= 0 else context[b, 1, num_context + at]
                    score = q[t, b, part] @ key[part] / math.sqrt(d) + attention.bias[head, distance]
                    rows.append((score, value[part]))
                weights = torch.softmax(torch.stack([score for score, _ in rows]), 0)
                out[t, b, part] = sum(weight * value for weight, (_, value) in zip(weights, rows, strict=True))
    return attention.out(out)


@pytest.mark.parametrize("num_steps", [1, 2, 9])
def test_attention_and_its_gradients_are_those_of_a_slow_loop(num_steps):
    torch.manual_seed(1)
    batch = 3
    attention = WindowAttention(H, HEADS, WINDOW).double()
    with torch.no_grad():
        attention.bias.normal_()
    x = torch.randn(num_steps, batch, H, dtype=torch.float64)
    context = torch.randn(batch, 2, WINDOW, H, dtype=torch.float64)
    first, num_known = torch.rand(num_steps, batch) < 0.3, torch.tensor([0, 1, WINDOW])

    def keys_of(t, b):
        """Back to the beginning of the episode, or to what is known before step 0."""
        found = []
        for distance in range(WINDOW):
            at = t - distance
            if at < -num_known[b]:
                break
            found.append(distance)
            if at >= 0 and first[at, b]:
                break
        return found

    def ours(leaf):
        query, *own = attention.projected(leaf.transpose(0, 1))
        keys, values = (torch.cat(both, 1) for both in zip(context.unbind(1), own, strict=True))
        return attention(query, keys, values, visible(first, num_known, WINDOW)).transpose(0, 1)

    weights, results = torch.randn_like(x), []
    for way in (
        ours,
        lambda leaf: slow_attention(attention, leaf, context, keys_of),
    ):
        attention.zero_grad()
        leaf = x.clone().requires_grad_()
        out = way(leaf)
        (out * weights).sum().backward()
        named = {name: parameter.grad.clone() for name, parameter in attention.named_parameters()}
        results.append({"out": out.detach(), "x": leaf.grad} | named)
    found, slow = results
    for name, expected in slow.items():
        assert found[name].shape == expected.shape
        torch.testing.assert_close(found[name], expected, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("resets", [0.0, 0.2, 0.6])
def test_acting_step_by_step_gives_what_training_sees_over_several_trajectories(resets):
    core, x, state, first = build(num_steps=24, resets=resets)
    with torch.no_grad():
        outs, states = stepped(core, x, state, first)
        for begin in range(0, 24, 6):  # shorter than what the layers reach back together
            trajectory = slice(begin, begin + 6)
            unrolled = core.unroll(x[trajectory], states[begin], first[trajectory])
            torch.testing.assert_close(unrolled, outs[trajectory], rtol=0, atol=1e-5)
    assert outs.shape == (24, 3, H)
    assert outs.dtype == states[-1].dtype == torch.float32
    assert states[-1].shape == (3, core.state_size)


@pytest.mark.parametrize("begin", [0, 10], ids=["in the trajectory", "in the context"])
def test_what_lies_before_a_reset_has_no_influence_and_what_lies_behind_it_has(begin):
    core, x, state, first = build(num_steps=16, resets=0.0)
    first[11] = True
    other = x.clone()
    other[10] += 1.0
    found = []
    with torch.no_grad():
        for seen in (x, other):
            _, states = stepped(core, seen, state, first)
            found.append(core.unroll(seen[begin:], states[begin], first[begin:])[11 - begin :])
        assert torch.equal(*found)
        other[11] += 1.0
        changed = core.unroll(other, state, first)[11:] - core.unroll(x, state, first)[11:]
    assert (changed[: REACH + 1] != 0).any(-1).all()


@pytest.mark.parametrize("begin", [0, 3], ids=["in the trajectory", "in the context"])
def test_what_lies_beyond_the_window_has_no_influence_and_what_lies_in_it_has(begin):
    core, x, state, first = build(num_steps=16, resets=0.0)
    other = x.clone()
    other[2] += 1.0
    with torch.no_grad():
        outs = [
            core.unroll(seen[begin:], stepped(core, seen, state, first)[1][begin], first[begin:]) for seen in (x, other)
        ]
    differs = (outs[0] != outs[1]).flatten(1).any(1)  # [16 - begin], in any trajectory
    steps = torch.arange(begin, 16)
    assert torch.equal(differs, (steps >= 2) & (steps <= 2 + REACH))


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_a_state_that_is_not_finite_does_not_pass_the_beginning_of_an_episode(lost):
    core, x, state, first = build()
    first[0] = True
    with torch.no_grad():
        torch.testing.assert_close(core.unroll(x, state + lost, first), core.unroll(x, state, first))
        for ours, expected in zip(
            core.step(x[0], state + lost, first[0]), core.step(x[0], state, first[0]), strict=True
        ):
            torch.testing.assert_close(ours, expected)


def test_no_gradient_flows_into_the_context():
    core, x, state, first = build(resets=0.0)
    state = stepped(core, x, state, first)[1][-1].detach().requires_grad_()
    core.unroll(x.requires_grad_(), state, first).sum().backward()
    assert state.grad is None
    assert x.grad.ne(0).all()
    assert all(parameter.grad is not None for parameter in core.parameters())


def test_gradients_pass_gradcheck():
    core, x, state, first = build(batch=2, num_steps=5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: core.unroll(x, state, first), (x.requires_grad_(),))


def test_mixed_precision_keeps_the_state_in_float32_and_the_output_close():
    core, x, state, first = build()
    with torch.no_grad():
        exact, states = stepped(core, x, state, first)
        with torch.autocast("cpu", torch.bfloat16):
            out, rounded = stepped(core, x, state, first)
            unrolled = core.unroll(x, state, first)
    assert out.dtype == unrolled.dtype == rounded[-1].dtype == torch.float32
    torch.testing.assert_close(out, unrolled, rtol=0, atol=0.1)
    torch.testing.assert_close(out, exact, rtol=0, atol=0.1)
    torch.testing.assert_close(rounded[-1], states[-1], rtol=0, atol=0.1)


def test_a_new_layer_hands_on_most_of_what_comes_in():
    torch.manual_seed(0)
    core = Transformer(IN, 32, num_layers=1, num_heads=4, window=8)
    x, first = torch.randn(9, 3, IN), torch.zeros(9, 3, dtype=torch.bool)
    with torch.no_grad():
        given, out = core.embed(x), core.unroll(x, torch.zeros(3, core.state_size), first)
    assert torch.nn.functional.cosine_similarity(given, out, dim=-1).mean() > 0.9


def test_heads_share_the_width_equally():
    with pytest.raises(UsageError, match="rnn_size is 10, and core_heads 4: "):
        ModelConfig(core="transformer", rnn_size=10)
