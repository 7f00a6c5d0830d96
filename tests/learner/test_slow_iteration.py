"""Iterations of training against a learner in float64 that is written as the papers have it, with nothing of this one's
code: statistics, network, targets, loss, clipping of gradients, Adam and PopArt."""

import math

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater

T, B, SIZE = 5, 6, 3
SPACE, ACTION = gym.spaces.Dict({"vector": gym.spaces.Box(-9, 9, (SIZE,), np.float32)}), ActionSpec((3, 2), 2)
HEADS = ("policy_head", "value_head")
FLAGS = {
    "rollout": T,
    "batch_size": T * B // 2,
    "num_batches_per_epoch": 2,
    "num_epochs": 2,
    "encoder_mlp_layers": (8, 8),
    "nonlinearity": "tanh",
    "normalize_input": True,
    "normalize_returns": True,
    "normalize_advantages_over": "minibatch",
    "with_vtrace": True,
    "with_ppo_clip": True,
    "decoupled_clip": True,
    "shuffle_steps": True,
    "gamma": 0.9,
    "gae_lambda": 0.8,
    "vtrace_rho": 1.5,
    "vtrace_c": 1.2,
    "ppo_clip_ratio": 0.1,
    "ppo_clip_value": 1.0,
    "value_loss_coeff": 0.7,
    "exploration_loss_coeff": 0.01,
    "reward_scale": 1.0,
    "reward_clip": 0.0,
    "learning_rate": 0.002,
    "adam_eps": 1e-4,
    "adam_beta1": 0.8,
    "adam_beta2": 0.99,
    "max_grad_norm": 4.0,
}


def make_batch(seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator)

    valid = uniform(T, B) > 0.15
    return Batch(
        obs={"vector": 3 + 2 * torch.randn(T + 1, B, SIZE, generator=generator)},
        first=uniform(T + 1, B) < 0.2,
        state=torch.zeros(B, 0),
        discrete=torch.stack([torch.randint(0, n, (T, B), generator=generator) for n in (3, 2)], -1).int(),
        continuous=torch.randn(T, B, 2, generator=generator),
        log_prob=-4 - uniform(T, B),
        value=20 * uniform(T, B) - 5,
        policy_version=torch.ones(T, B, dtype=torch.int32),
        reward=5 * torch.randn(T, B, generator=generator) + 2,
        terminated=(uniform(T, B) < 0.15) & valid,
        valid=valid,
    )


class SlowMoments:
    """Of all samples, which are kept."""

    def __init__(self, *shape: int) -> None:
        self.samples = torch.zeros(0, *shape, dtype=torch.float64)

    def add(self, samples: torch.Tensor) -> None:
        self.samples = torch.cat((self.samples, samples))

    @property
    def mean(self) -> torch.Tensor:
        return self.samples.mean(0) if len(self.samples) else torch.zeros(self.samples.shape[1:], dtype=torch.float64)

    def stddev(self, added: float | torch.Tensor) -> torch.Tensor:
        """added: to the variance."""
        return (self.samples.var(0, correction=0) + added).sqrt()


class SlowLearner:
    def __init__(self, flags: dict, weights: dict[str, torch.Tensor]) -> None:
        self.flags = flags
        self.weights = {name: weight.detach().double().clone() for name, weight in weights.items()}
        self.obs, self.returns = SlowMoments(SIZE), SlowMoments()
        self.moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in self.weights.items()}
        self.num_steps = 0

    @property
    def return_stddev(self):
        return self.returns.stddev(added=(1e-6 * self.returns.mean) ** 2)

    def normal(self, returns):
        if not self.flags["normalize_returns"]:
            return returns
        return (returns - self.returns.mean) / self.return_stddev if len(self.returns.samples) else 0 * returns

    def of_normal(self, value):
        if not self.flags["normalize_returns"]:
            return value
        return value * self.return_stddev + self.returns.mean if len(self.returns.samples) else 0 * value

    def network(self, obs, weights):
        x = obs.double()
        if self.flags["normalize_input"]:
            x = ((x - self.obs.mean) / self.obs.stddev(added=1e-5)).clamp(-10, 10)
        for layer in ("trunk.actor.encoders.0.linear.0", "trunk.actor.encoders.0.linear.2"):
            x = torch.tanh(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
        params, value = (x @ weights[f"{head}.weight"].T + weights[f"{head}.bias"] for head in HEADS)
        return params, value[..., 0]

    def log_prob_and_entropy(self, params, weights, discrete, continuous):
        log_prob = entropy = 0.0
        for head, choices in enumerate((slice(0, 3), slice(3, 5))):
            log_probs = params[..., choices] - params[..., choices].exp().sum(-1, keepdim=True).log()
            log_prob = log_prob + log_probs.gather(-1, discrete[..., head : head + 1].long())[..., 0]
            entropy = entropy - (log_probs.exp() * log_probs).sum(-1)
        stddev = weights["log_stddev"].exp()
        density = (-0.5 * ((continuous - params[..., 5:]) / stddev) ** 2).exp() / (stddev * math.sqrt(2 * math.pi))
        return log_prob + density.log().sum(-1), entropy + (stddev * math.sqrt(2 * math.pi * math.e)).log().sum()

    def targets(self, batch: Batch, log_prob, value):
        """Value targets and advantages [T, B]; of rows that are not valid, whatever."""
        flags, target, advantage = self.flags, value[:-1].clone(), torch.zeros_like(value[:-1])
        rho_bar, c_bar, lambda_ = flags["vtrace_rho"], flags["vtrace_c"], flags["gae_lambda"]
        for b in range(batch.num_trajectories):
            error = 0.0  # of the step behind: target - value
            for t in range(T - 1, -1, -1):
                if not batch.valid[t, b]:
                    error = 0.0
                    continue
                bound = flags["reward_clip"] or math.inf
                reward = np.clip(batch.reward[t, b].item() * flags["reward_scale"], -bound, bound)
                discount = 0.0 if batch.terminated[t, b] else flags["gamma"]
                ratio = (log_prob[t, b] - batch.log_prob[t, b]).exp().item()
                rho, c = (min(rho_bar, ratio), min(c_bar, ratio)) if flags["with_vtrace"] else (1.0, 1.0)
                delta = reward + discount * value[t + 1, b] - value[t, b]
                advantage[t, b] = delta + discount * lambda_ * error
                error = rho * delta + discount * lambda_ * c * error
                target[t, b] = value[t, b] + error
        return target, advantage

    def corrected(self, advantage, log_prob, behaviour):
        if self.flags["with_ppo_clip"] or not self.flags["with_vtrace"]:
            return advantage
        return advantage * (log_prob.detach() - behaviour).exp().clamp(max=self.flags["vtrace_rho"])

    def iteration(self, batch: Batch) -> None:
        flags = self.flags
        self.obs.add(batch.obs["vector"][:-1][batch.valid].double())
        params, value = self.network(batch.obs["vector"], self.weights)
        before, _ = self.log_prob_and_entropy(params[:-1], self.weights, batch.discrete, batch.continuous)
        targets = self.targets(batch, before, self.of_normal(value))
        proximal = before if flags["decoupled_clip"] else batch.log_prob
        moments = None
        if flags["normalize_advantages_over"] == "iteration":
            advantage = self.corrected(targets[1], before, batch.log_prob)[batch.valid]
            moments = advantage.mean(), advantage.std(correction=0), (targets[0][batch.valid] ** 2).mean().sqrt()
        for _ in range(flags["num_epochs"]):
            if flags["shuffle_steps"]:
                flat = [tensor.flatten(0, 1) for tensor in (batch.valid, proximal, *targets)]
                for steps in torch.randperm(T * B).chunk(2):
                    valid, *others = (tensor[steps][:, None] for tensor in flat)
                    self.step(batch.steps(steps[:, None]), valid, *others, moments=moments)
            else:
                for columns in torch.randperm(B).chunk(2):
                    part = batch.columns(columns)
                    self.step(part, part.valid, proximal[:, columns], moments=moments)

    def step(self, batch: Batch, valid, proximal, target=None, advantage=None, *, moments) -> None:
        flags = self.flags
        weights = {name: weight.clone().requires_grad_() for name, weight in self.weights.items()}
        params, value = self.network(batch.obs["vector"], weights)
        log_prob, entropy = self.log_prob_and_entropy(params[:-1], weights, batch.discrete, batch.continuous)
        if target is None:
            target, advantage = self.targets(batch, log_prob.detach(), self.of_normal(value.detach()))
        log_prob, entropy, value, behaviour, old_value, proximal, target, advantage = (
            tensor[valid]
            for tensor in (log_prob, entropy, value[:-1], batch.log_prob, batch.value, proximal, target, advantage)
        )
        advantage = self.corrected(advantage, log_prob, behaviour)
        mean, stddev, size = moments or (advantage.mean(), advantage.std(correction=0), (target**2).mean().sqrt())
        advantage = (advantage - mean) / (stddev + 1e-5 * size)
        ratio, low, high = (log_prob - proximal).exp(), 1 / (1 + flags["ppo_clip_ratio"]), 1 + flags["ppo_clip_ratio"]
        if flags["with_ppo_clip"]:
            weight = (proximal - behaviour).exp().clamp(max=flags["vtrace_rho"])
            objective = weight * torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
        else:
            objective = log_prob * advantage
        old_value, normal_target = self.normal(old_value), self.normal(target)
        error = (value - normal_target) ** 2
        if flags["ppo_clip_value"]:
            move = (value - old_value).clamp(-flags["ppo_clip_value"], flags["ppo_clip_value"])
            error = torch.maximum(error, (old_value + move - normal_target) ** 2)
        loss = -objective + flags["value_loss_coeff"] * error - flags["exploration_loss_coeff"] * entropy
        self.adam(dict(zip(weights, torch.autograd.grad(loss.mean(), list(weights.values())), strict=True)))
        if flags["normalize_returns"]:
            self.pop_art(target)

    def adam(self, gradients) -> None:
        flags = self.flags
        norm = math.sqrt(sum((gradient**2).sum().item() for gradient in gradients.values()))
        scale = min(1.0, flags["max_grad_norm"] / norm) if flags["max_grad_norm"] else 1.0
        self.num_steps += 1
        for name, gradient in gradients.items():
            clipped = gradient * scale
            first, second = self.moments[name]
            first = flags["adam_beta1"] * first + (1 - flags["adam_beta1"]) * clipped
            second = flags["adam_beta2"] * second + (1 - flags["adam_beta2"]) * clipped**2
            self.moments[name] = first, second
            unbiased = second / (1 - flags["adam_beta2"] ** self.num_steps)
            change = first / (1 - flags["adam_beta1"] ** self.num_steps) / (unbiased.sqrt() + flags["adam_eps"])
            self.weights[name] = self.weights[name] - flags["learning_rate"] * change

    def pop_art(self, target) -> None:
        is_first = not len(self.returns.samples)
        mean, stddev = self.returns.mean, None if is_first else self.return_stddev
        self.returns.add(target)
        if is_first:
            return
        weight, bias = self.weights["value_head.weight"], self.weights["value_head.bias"]
        self.weights["value_head.weight"] = weight * stddev / self.return_stddev
        self.weights["value_head.bias"] = (stddev * bias + mean - self.returns.mean) / self.return_stddev


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"shuffle_steps": False},
        {"normalize_returns": False},
        {"normalize_input": False},
        {"normalize_advantages_over": "iteration"},
        {"with_vtrace": False},
        {"decoupled_clip": False},
        {"with_ppo_clip": False},
        {"with_ppo_clip": False, "shuffle_steps": False, "normalize_advantages_over": "iteration"},
        {"ppo_clip_value": 0.1},
        {"ppo_clip_value": 0.0},
        {"reward_scale": 0.3, "reward_clip": 0.7},
        {"max_grad_norm": 0.05},
        {"max_grad_norm": 0.0},
    ],
    ids=str,
)
def test_weights_after_some_iterations_are_those_of_the_slow_learner(change):
    flags = FLAGS | change
    torch.manual_seed(3)
    updater = Updater(Config().replace(**flags), SPACE, ACTION, bfloat16=False, device=torch.device("cpu"))
    before = {name: weight.detach().clone() for name, weight in updater.model.named_parameters()}
    slow = SlowLearner(flags, before)
    for seed in range(3):
        batch, drawn = make_batch(seed), torch.get_rng_state()
        updater.train_iteration(batch, 0.0)
        torch.set_rng_state(drawn)
        slow.iteration(batch)
    for name, weight in updater.model.named_parameters():
        torch.testing.assert_close(weight.double(), slow.weights[name], rtol=0, atol=1e-5, msg=name)
        assert (weight - before[name]).abs().max() > 1e-3, name
