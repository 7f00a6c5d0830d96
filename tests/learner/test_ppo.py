import numpy as np
import pytest
import torch

from sf.learner.ppo import PPOLoss, ppo_loss

SETTINGS = {
    "with_ppo_clip": True,
    "clip_ratio": 0.2,
    "clip_value": 0.3,
    "value_loss_coeff": 0.5,
    "entropy_coeff": 0.01,
    "normalize_advantages": True,
}
NAMES = [
    "log_prob",
    "behaviour_log_prob",
    "entropy",
    "advantage",
    "value",
    "behaviour_value",
    "value_target",
]


def random_case(shape: tuple[int, int], seed: int = 0) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    case = {name: torch.from_numpy(0.5 * rng.normal(size=shape)) for name in NAMES}
    case["mask"] = torch.from_numpy(rng.random(shape) > 0.3)
    case["mask"][0, 0] = True
    return case


def slow_loss(case: dict[str, np.ndarray], s: dict) -> dict[str, float]:
    rows = [{name: case[name][i] for name in NAMES} for i in np.ndindex(case["mask"].shape) if case["mask"][i]]
    mean = np.mean([row["advantage"] for row in rows])
    stddev = np.std([row["advantage"] for row in rows])
    policy, value, entropy, kl, clipped, ratios = [], [], [], [], [], []
    for row in rows:
        a = (row["advantage"] - mean) / (stddev + 1e-5) if s["normalize_advantages"] else row["advantage"]
        ratio = np.exp(row["log_prob"] - row["behaviour_log_prob"])
        if s["with_ppo_clip"]:
            bounded = min(max(ratio, 1 / (1 + s["clip_ratio"])), 1 + s["clip_ratio"])
            policy.append(-min(ratio * a, bounded * a))
        else:
            policy.append(-row["log_prob"] * a)
        errors = [(row["value"] - row["value_target"]) ** 2]
        if s["clip_value"] > 0:
            move = min(max(row["value"] - row["behaviour_value"], -s["clip_value"]), s["clip_value"])
            errors.append((row["behaviour_value"] + move - row["value_target"]) ** 2)
        value.append(max(errors))
        entropy.append(row["entropy"])
        kl.append(ratio - 1 - np.log(ratio))
        clipped.append(not 1 / (1 + s["clip_ratio"]) <= ratio <= 1 + s["clip_ratio"])
        ratios.append(ratio)
    targets = np.array([row["value_target"] for row in rows])
    values = np.array([row["value"] for row in rows])
    loss = np.mean(policy) + s["value_loss_coeff"] * np.mean(value) - s["entropy_coeff"] * np.mean(entropy)
    return {
        "loss": loss,
        "policy_loss": np.mean(policy),
        "value_loss": np.mean(value),
        "entropy": np.mean(entropy),
        "approx_kl": np.mean(kl),
        "ratio_mean": np.mean(ratios),
        "clip_fraction": np.mean(clipped),
        "effective_sample_size": np.sum(ratios) ** 2 / np.sum(np.square(ratios)) / len(ratios),
        "explained_variance": 1 - np.var(targets - values) / np.var(targets) if len(rows) > 1 else 0.0,
        "advantage_mean": mean,
        "advantage_stddev": stddev,
        "num_samples": len(rows),
    }


def named(result: PPOLoss) -> dict[str, float]:
    assert result.loss.shape == ()
    assert all(metric.shape == () and not metric.requires_grad for metric in result.metrics)
    return {"loss": result.loss.item()} | {k: v.item() for k, v in result.metrics._asdict().items()}


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (6, 4)])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"with_ppo_clip": False},
        {"clip_value": 0.0},
        {"normalize_advantages": False},
        {"value_loss_coeff": 2.0},
    ],
)
def test_the_loss_and_its_metrics_are_those_of_a_loop_over_samples(shape, change):
    settings = SETTINGS | change
    for seed in range(4):
        case = random_case(shape, seed)
        result = named(ppo_loss(**case, **settings))
        for name, expected in slow_loss({k: v.numpy() for k, v in case.items()}, settings).items():
            assert result[name] == pytest.approx(expected, rel=1e-9, abs=1e-9), name


def gradients(case: dict[str, torch.Tensor], **settings) -> dict[str, torch.Tensor]:
    leaves = {name: case[name].clone().requires_grad_() for name in ("log_prob", "entropy", "value")}
    ppo_loss(**(case | leaves), **(SETTINGS | settings)).loss.backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


def test_samples_outside_the_mask_may_be_nan_and_get_no_gradient():
    case = random_case((6, 4))
    clean, clean_grads = named(ppo_loss(**case, **SETTINGS)), gradients(case)
    for name in NAMES:
        case[name] = torch.where(case["mask"], case[name], torch.nan)
    assert named(ppo_loss(**case, **SETTINGS)) == clean
    for name, grad in gradients(case).items():
        torch.testing.assert_close(grad, clean_grads[name])
        assert (grad[~case["mask"]] == 0).all()


def test_an_empty_mask_gives_a_loss_of_0_and_gradients_of_0():
    case = random_case((3, 2))
    case["mask"] = torch.zeros(3, 2, dtype=torch.bool)
    assert all(value == 0 for value in named(ppo_loss(**case, **SETTINGS)).values())
    assert all((grad == 0).all() for grad in gradients(case).values())


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "moves"),
    [(0.5, 1.0, False), (0.5, -1.0, True), (-0.5, -1.0, False), (-0.5, 1.0, True)],
)
def test_the_policy_has_no_gradient_once_it_has_gone_beyond_the_clip_in_the_direction_of_the_advantage(
    log_ratio, advantage, moves
):
    case = random_case((1, 1))
    case["log_prob"] = case["behaviour_log_prob"] + log_ratio
    case["advantage"] = torch.full((1, 1), advantage).double()
    assert (gradients(case, normalize_advantages=False)["log_prob"] != 0).item() is moves


def test_on_policy_the_surrogate_has_the_gradient_of_the_policy_gradient():
    case = random_case((5, 4))
    case["behaviour_log_prob"] = case["log_prob"].clone()
    surrogate, plain = gradients(case), gradients(case, with_ppo_clip=False)
    torch.testing.assert_close(surrogate["log_prob"], plain["log_prob"])


def test_ratios_that_overflow_stay_finite():
    case = random_case((2, 2))
    case["log_prob"] = case["log_prob"].float() + 500.0
    assert all(np.isfinite(value) for value in named(ppo_loss(**case, **SETTINGS)).values())
