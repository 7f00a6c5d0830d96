import numpy as np
import pytest
import torch

from sf.learner.batches.minibatches import Moments
from sf.learner.loss import ppo
from sf.learner.loss.ppo import PPOLoss
from sf.learner.loss.terms.term import LossSettings

SETTINGS = {
    "with_ppo_clip": True,
    "clip_ratio": 0.2,
    "rho_bar": 1.2,
    "with_importance_weight": False,
    "clip_value": 0.3,
    "value_loss_coeff": 0.5,
    "entropy_coeff": 0.01,
    "normalize_advantages": True,
}
NAMES = [
    "log_prob",
    "proximal_log_prob",
    "behaviour_log_prob",
    "entropy",
    "advantage",
    "value",
    "behaviour_value",
    "value_target",
    "returns",
]


def ppo_loss(settings=SETTINGS, **case) -> PPOLoss:
    of_terms = (1.0, settings["value_loss_coeff"], settings["entropy_coeff"])
    settings = {name: value for name, value in settings.items() if name in LossSettings._fields}
    return ppo.ppo_loss(**case, settings=LossSettings(**settings), coefficients=of_terms)


def random_case(shape: tuple[int, int], seed: int = 0) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    case = {name: torch.from_numpy(0.5 * rng.normal(size=shape)) for name in NAMES}
    case["mask"] = torch.from_numpy(rng.random(shape) > 0.3)
    case["mask"][0, 0] = True
    return case


def slow_loss(case: dict[str, np.ndarray], s: dict, moments: tuple[float, float] | None = None) -> dict[str, float]:
    """moments: mean and standard deviation to normalise advantages by; None for those of the samples."""
    rows = [{name: case[name][i] for name in NAMES} for i in np.ndindex(case["mask"].shape) if case["mask"][i]]
    if s["with_importance_weight"] and not s["with_ppo_clip"]:
        for row in rows:
            row["advantage"] *= min(s["rho_bar"], np.exp(row["log_prob"] - row["behaviour_log_prob"]))
    mean = np.mean([row["advantage"] for row in rows])
    stddev = np.std([row["advantage"] for row in rows])
    rounding = 1e-5 * np.sqrt(np.mean([row["returns"] ** 2 for row in rows]))
    norm_mean, norm_stddev = moments or (mean, stddev + rounding)
    policy, value, entropy, kl, clipped, value_clipped, behaviour_ratios = [], [], [], [], [], [], []
    for row in rows:
        a = (row["advantage"] - norm_mean) / norm_stddev if s["normalize_advantages"] else row["advantage"]
        ratio = np.exp(row["log_prob"] - row["proximal_log_prob"])
        if s["with_ppo_clip"]:
            weight = min(max(1.0, s["rho_bar"]), np.exp(row["proximal_log_prob"] - row["behaviour_log_prob"]))
            bounded = min(max(ratio, 1 / (1 + s["clip_ratio"])), 1 + s["clip_ratio"])
            policy.append(-weight * min(ratio * a, bounded * a))
        else:
            policy.append(-row["log_prob"] * a)
        errors = [(row["value"] - row["value_target"]) ** 2]
        if s["clip_value"] > 0:
            move = min(max(row["value"] - row["behaviour_value"], -s["clip_value"]), s["clip_value"])
            errors.append((row["behaviour_value"] + move - row["value_target"]) ** 2)
        value.append(max(errors))
        value_clipped.append(abs(row["value"] - row["behaviour_value"]) > s["clip_value"] > 0)
        entropy.append(row["entropy"])
        kl.append(ratio - 1 - np.log(ratio))
        clipped.append(not 1 / (1 + s["clip_ratio"]) <= ratio <= 1 + s["clip_ratio"])
        behaviour_ratios.append(np.exp(row["log_prob"] - row["behaviour_log_prob"]))
    targets = np.array([row["value_target"] for row in rows])
    values = np.array([row["value"] for row in rows])
    loss = np.mean(policy) + s["value_loss_coeff"] * np.mean(value) - s["entropy_coeff"] * np.mean(entropy)
    return {
        "loss": loss,
        "policy_loss": np.mean(policy),
        "value_loss": np.mean(value),
        "entropy": np.mean(entropy),
        "approx_kl": np.mean(kl),
        "ratio_mean": np.mean(behaviour_ratios),
        "clip_fraction": np.mean(clipped),
        "value_clip_fraction": np.mean(value_clipped),
        "effective_sample_size": np.sum(behaviour_ratios) ** 2 / np.sum(np.square(behaviour_ratios)) / len(rows),
        "explained_variance": 1 - np.var(targets - values) / np.var(targets) if len(rows) > 1 else np.nan,
        "advantage_mean": mean,
        "advantage_stddev": stddev,
        "num_samples": len(rows),
    }


def named(result: PPOLoss) -> dict[str, float]:
    assert result.loss.shape == ()
    assert all(metric.shape == () and not metric.requires_grad for metric in result.metrics.values())
    return {"loss": result.loss.item()} | {k: v.item() for k, v in result.metrics.items()}


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (6, 4)])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"with_ppo_clip": False},
        {"with_ppo_clip": False, "with_importance_weight": True},
        {"with_importance_weight": True},
        {"clip_value": 0.0},
        {"normalize_advantages": False},
        {"value_loss_coeff": 2.0},
        {"rho_bar": 1e9},
        {"rho_bar": 0.5},
        {"rho_bar": 0.5, "with_ppo_clip": False, "with_importance_weight": True},
    ],
)
def test_the_loss_and_its_metrics_are_those_of_a_loop_over_samples(shape, change):
    settings = SETTINGS | change
    for seed in range(4):
        case = random_case(shape, seed)
        result = named(ppo_loss(**case, settings=settings))
        for name, expected in slow_loss({k: v.numpy() for k, v in case.items()}, settings).items():
            assert result[name] == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("change", [{}, {"with_ppo_clip": False, "with_importance_weight": True}])
def test_advantages_can_be_normalised_by_other_moments_than_those_of_the_samples(change):
    settings = SETTINGS | change
    case = random_case((6, 4))
    of_others = Moments(*torch.tensor([0.7, 2.4, 0.1], dtype=torch.float64))
    found = named(ppo_loss(**case, advantage_moments=of_others, settings=settings))
    for name, expected in slow_loss({k: v.numpy() for k, v in case.items()}, settings, (0.7, 2.5)).items():
        assert found[name] == pytest.approx(expected, rel=1e-9), name
    settings = settings | {"normalize_advantages": False}
    plain = [ppo_loss(**case, advantage_moments=m, settings=settings) for m in (of_others, None)]
    assert named(plain[0]) == named(plain[1])


def slow_weighted_loss(case: dict[str, np.ndarray], weight: np.ndarray, s: dict) -> dict[str, float]:
    """Each sample as many times as its weight says, which is a whole number: then all are alike."""
    indices = [i for i in np.ndindex(case["mask"].shape) if case["mask"][i] for _ in range(int(weight[i]))]
    repeated = {name: np.array([case[name][i] for i in indices])[:, None] for name in (*NAMES, "mask")}
    found = slow_loss(repeated, s)
    of_mask = weight[case["mask"]]
    found["loss"] *= of_mask.mean() / of_mask.max()
    return {**found, "num_samples": case["mask"].sum()}


@pytest.mark.parametrize("change", [{}, {"with_ppo_clip": False, "with_importance_weight": True}, {"clip_value": 0.0}])
def test_a_sample_counts_in_policy_value_and_entropy_as_much_as_its_weight_says(change):
    settings = SETTINGS | change
    for seed in range(4):
        case = random_case((6, 4), seed)
        weight = np.broadcast_to(np.random.default_rng(seed).integers(1, 6, size=4), (6, 4))
        for scale in (1.0, 0.01):  # only their ratios matter
            sample_weight = scale * torch.from_numpy(weight.copy()).double()
            found = named(ppo_loss(**case, sample_weight=sample_weight, settings=settings))
            expected = slow_weighted_loss({k: v.numpy() for k, v in case.items()}, weight, settings)
            for name, value in expected.items():
                assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name


def test_weights_divided_by_their_maximum_have_the_gradients_of_each_term_without_normalisation():
    """Schaul et al. 2016, section 3.4: the loss of each sample times w / max w."""
    case, settings = random_case((6, 4)), {"normalize_advantages": False}
    weight = torch.rand(6, 4, dtype=torch.float64) + 0.1
    found = gradients(case, sample_weight=weight, **settings)
    plain = gradients(case, **settings)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, plain[name] * weight / weight[case["mask"]].max())


def gradients(case: dict[str, torch.Tensor], sample_weight=None, **settings) -> dict[str, torch.Tensor]:
    leaves = {name: case[name].clone().requires_grad_() for name in ("log_prob", "entropy", "value")}
    settings = SETTINGS | settings
    ppo_loss(**(case | leaves), sample_weight=sample_weight, settings=settings).loss.backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


def test_samples_outside_the_mask_may_be_nan_and_get_no_gradient():
    case = random_case((6, 4))
    clean, clean_grads = named(ppo_loss(**case)), gradients(case)
    for name in NAMES:
        case[name] = torch.where(case["mask"], case[name], torch.nan)
    assert named(ppo_loss(**case)) == clean
    for name, grad in gradients(case).items():
        torch.testing.assert_close(grad, clean_grads[name])
        assert (grad[~case["mask"]] == 0).all()


@pytest.mark.parametrize("weight", [None, torch.ones(3, 2, dtype=torch.float64)], ids=["plain", "weighted"])
def test_an_empty_mask_gives_a_loss_of_0_and_gradients_of_0(weight):
    case = random_case((3, 2))
    case["mask"] = torch.zeros(3, 2, dtype=torch.bool)
    found = named(ppo_loss(**case, sample_weight=weight))
    assert np.isnan(found.pop("explained_variance"))
    assert all(value == 0 for value in found.values())
    assert all((grad == 0).all() for grad in gradients(case, sample_weight=weight).values())


@pytest.mark.parametrize("behaviour", [-2.0, 0.0, 2.0])  # its log ratio to the proximal policy
@pytest.mark.parametrize(
    ("log_ratio", "advantage", "moves"),
    [(0.5, 1.0, False), (0.5, -1.0, True), (-0.5, -1.0, False), (-0.5, 1.0, True)],
)
def test_the_policy_has_no_gradient_once_it_has_left_the_proximal_one_behind_in_the_direction_of_the_advantage(
    behaviour, log_ratio, advantage, moves
):
    case = random_case((1, 1))
    case["log_prob"] = case["proximal_log_prob"] + log_ratio
    case["behaviour_log_prob"] = case["proximal_log_prob"] + behaviour
    case["advantage"] = torch.full((1, 1), advantage).double()
    assert (gradients(case, normalize_advantages=False)["log_prob"] != 0).item() is moves


def test_on_policy_the_surrogate_has_the_gradient_of_the_policy_gradient():
    case = random_case((5, 4))
    case["proximal_log_prob"] = case["behaviour_log_prob"] = case["log_prob"].clone()
    surrogate, plain = gradients(case), gradients(case, with_ppo_clip=False)
    torch.testing.assert_close(surrogate["log_prob"], plain["log_prob"])


def policy_loss(case: dict[str, torch.Tensor], **settings) -> float:
    return ppo_loss(**case, settings=SETTINGS | settings).metrics["policy_loss"].item()


def test_with_weights_of_any_size_the_objective_is_that_of_decoupled_ppo():
    """Hilton et al. 2022, section 3: the ratio to the behaviour policy stands in place of the weight and the ratio."""
    case = random_case((6, 4))
    mask, advantage = case["mask"], case["advantage"][case["mask"]]
    to_behaviour = (case["log_prob"] - case["behaviour_log_prob"]).exp()[mask]
    to_proximal = (case["log_prob"] - case["proximal_log_prob"]).exp()[mask]
    weight = (case["proximal_log_prob"] - case["behaviour_log_prob"]).exp()[mask]
    clipped = weight * to_proximal.clamp(1 / 1.2, 1.2)
    objective = torch.minimum(to_behaviour * advantage, clipped * advantage).mean()
    assert policy_loss(case, rho_bar=1e9, normalize_advantages=False) == pytest.approx(-objective.item(), rel=1e-9)


def test_the_weight_of_a_sample_is_at_most_rho_bar_and_carries_no_gradient():
    case = random_case((1, 1))
    case["log_prob"] = case["proximal_log_prob"].clone()
    case["advantage"] = torch.ones(1, 1).double()
    for log_weight, expected in ((-1.0, np.exp(-1.0)), (0.0, 1.0), (np.log(1.5), 1.5), (1.0, 1.5), (600.0, 1.5)):
        case["behaviour_log_prob"] = case["proximal_log_prob"] - log_weight
        settings = {"rho_bar": 1.5, "normalize_advantages": False}
        assert policy_loss(case, **settings) == pytest.approx(-expected, rel=1e-9)
        assert gradients(case, **settings)["log_prob"].item() == pytest.approx(-expected, rel=1e-9)


def test_ratios_that_overflow_stay_finite():
    case = random_case((2, 2))
    case["log_prob"] = case["log_prob"].float() + 500.0
    assert all(np.isfinite(value) for value in named(ppo_loss(**case)).values())


@pytest.mark.parametrize("size", [1e-6, 1e-5, 1e-4, 1e-3])
def test_the_kl_divergence_of_a_small_update_keeps_its_digits_in_float32(size):
    for seed in range(20):
        case = {name: x.float() if x.is_floating_point() else x for name, x in random_case((16, 16), seed).items()}
        case["proximal_log_prob"].zero_()
        case["log_prob"] = size * torch.randn(16, 16, generator=torch.Generator().manual_seed(seed))
        log_ratio = case["log_prob"][case["mask"]].double()
        found = named(ppo_loss(**case))["approx_kl"]
        assert found >= 0
        assert found == pytest.approx((log_ratio.expm1() - log_ratio).mean().item(), rel=0.1, abs=1e-13)


@pytest.mark.parametrize(("stddev", "is_known"), [(0.005, False), (0.1, True)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_explained_variance_is_unknown_where_the_returns_barely_vary_in_whatever_scale(scale, stddev, is_known):
    case = random_case((6, 4))
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal((6, 4)))
    returns = 1.0 + stddev * noise  # as on a solved task
    case["value_target"], case["value"] = scale * returns, scale * (returns + 0.05)
    assert np.isfinite(named(ppo_loss(**case))["explained_variance"]) == is_known
    case["value_target"], case["value"] = (returns - 1.0) / 0.5, (returns - 0.95) / 0.5  # normalised
    found = named(ppo_loss(**case, zero_return=-2.0))["explained_variance"]
    assert np.isfinite(found) == is_known


def test_samples_without_a_choice_teach_the_critic_alone():
    case = random_case((6, 4))
    has_choice = torch.from_numpy(np.random.default_rng(5).random((6, 4)) > 0.5)
    chosen = case["mask"] & has_choice
    assert 0 < chosen.sum() < case["mask"].sum()
    found = named(ppo_loss(**case, has_choice=has_choice))
    of_all, of_chosen = (
        named(ppo_loss(**case)),
        named(ppo_loss(**(case | {"mask": chosen}))),
    )
    of_critic = {"value_loss", "value_clip_fraction", "explained_variance", "num_samples"}
    for name in found.keys() - {"loss"}:
        assert found[name] == pytest.approx((of_all if name in of_critic else of_chosen)[name], rel=1e-9), name
    of_value = SETTINGS["value_loss_coeff"] * (of_all["value_loss"] - of_chosen["value_loss"])
    assert found["loss"] == pytest.approx(of_chosen["loss"] + of_value, rel=1e-9)
    grads = gradients(case | {"has_choice": has_choice})
    assert torch.equal(grads["log_prob"] != 0, grads["log_prob"].where(chosen, 0.0) != 0)
    assert torch.equal(grads["entropy"] != 0, chosen)
    assert (grads["value"][case["mask"] & ~has_choice] != 0).any()
