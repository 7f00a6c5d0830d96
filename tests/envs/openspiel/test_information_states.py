"""All information states of a game, beside OpenSpiel's own lists of them and what the environment shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.spaces.observations import obs_arrays

pytest.importorskip("pyspiel")

from open_spiel.python.policy import TabularPolicy

from sf.envs.openspiel import information_states
from sf.envs.openspiel.information_states import InformationStates

IN_TURNS = [
    ("kuhn_poker", {}),
    ("kuhn_poker", {"players": 3}),
    ("leduc_poker", {}),
    ("leduc_poker", {"tensor": "observation"}),
    ("tiny_hanabi", {}),
    ("dark_hex", {"board_size": 2}),
]
AT_ONCE = [
    ("matrix_rps", {}),
    ("matching_pennies_3p", {}),
    ("goofspiel", {"num_cards": 3}),
    ("goofspiel", {"num_cards": 3, "imp_info": True, "players": 3, "points_order": "descending"}),
    ("oshi_zumo", {"coins": 3, "horizon": 3}),
]
UNIFORM = {  # NashConv / players of random moves
    "kuhn_poker": 11 / 24,
    "leduc_poker": 2.373611111111111,
    "matrix_rps": 0.0,
}


def find(name: str, **kwargs: Any) -> InformationStates:
    return information_states.find(f"openspiel:{name}", EnvOptions(env_kwargs=json.dumps(kwargs)))


@pytest.mark.parametrize(("name", "kwargs"), IN_TURNS)
def test_they_are_those_that_openspiel_lists_with_its_actions(name: str, kwargs: dict[str, Any]) -> None:
    states = find(name, **kwargs)
    oracle = TabularPolicy(states.game)
    assert states.num == len(oracle.states)
    assert set(states.keys) == set(oracle.state_lookup)
    masks = np.array([oracle.legal_actions_mask[oracle.state_lookup[key]] for key in states.keys])
    np.testing.assert_array_equal(states.obs["action_mask"], masks)
    np.testing.assert_allclose(states.uniform().sum(axis=1), 1.0)


@pytest.mark.parametrize(("name", "kwargs"), [*IN_TURNS, *AT_ONCE])
def test_observations_are_those_of_the_environment(name: str, kwargs: dict[str, Any]) -> None:
    states = find(name, **kwargs)
    options = EnvOptions(env_kwargs=json.dumps(kwargs))
    group = envs.make_group(f"openspiel:{name}", 4, options, seed=3, first_env_idx=0)
    num_players = group.spec.num_agents
    obs, result = obs_arrays(group.spec.obs_space, group.num_actors), envs.StepResult.empty(group.num_actors)
    known = {
        (tensor.tobytes(), mask.tobytes())
        for tensor, mask in zip(states.obs["observation"], states.obs["action_mask"], strict=True)
    }
    rows = {key: list(array) for key, array in obs.items()}
    rng = np.random.default_rng(0)
    group.reset(rows)
    seen = set()
    for _ in range(100):
        masks = obs["action_mask"]
        for actor in np.flatnonzero(masks.any(axis=1)):
            seen.add((obs["observation"][actor].tobytes(), masks[actor].tobytes()))
        actions = [rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks]
        group.step(np.array(actions, np.int32)[:, None], np.zeros((len(actions), 0), np.float32), rows, result)
    group.close()
    assert num_players == states.num_players
    assert len(seen) > 1
    assert seen <= known


@pytest.mark.parametrize(("name", "kwargs"), [*IN_TURNS, *AT_ONCE])
def test_each_comes_after_the_sequence_that_leads_to_it(name: str, kwargs: dict[str, Any]) -> None:
    states = find(name, **kwargs)
    num_actions = states.obs["action_mask"].shape[1]
    for idx, sequence in enumerate(states.sequence_before):
        if sequence >= 0:
            before, action = divmod(int(sequence), num_actions)
            assert before < idx
            assert states.player[before] == states.player[idx]
            assert states.obs["action_mask"][before, action] == 1


@pytest.mark.parametrize("name", UNIFORM)
def test_random_moves_have_their_known_exploitability(name: str) -> None:
    states = find(name)
    assert states.nash_conv(states.uniform()) / states.num_players == pytest.approx(UNIFORM[name])


@pytest.mark.parametrize(("name", "kwargs"), [*IN_TURNS, *AT_ONCE])
def test_nash_conv_is_that_of_openspiels_python(name: str, kwargs: dict[str, Any]) -> None:
    from open_spiel.python.algorithms.exploitability import nash_conv  # noqa: PLC0415

    states = find(name, **kwargs)
    policy = states.uniform() ** 2 + 0.3 * np.random.default_rng(1).random(states.uniform().shape) * states.uniform()
    policy /= policy.sum(axis=1, keepdims=True)
    oracle = TabularPolicy(states.game)
    for key, row in zip(states.keys, policy, strict=True):
        oracle.action_probability_array[oracle.state_lookup[key]] = row
    assert states.nash_conv(policy) == pytest.approx(nash_conv(states.game, oracle))


@pytest.mark.parametrize(
    ("name", "kwargs", "says"),
    [
        ("2048", {"max_tile": 16}, "has one player"),
        ("tic_tac_toe", {}, "is too large"),
        ("connect_four", {}, "is too large"),
        ("hanabi", {}, "does not say what a player knows"),
        ("phantom_ttt", {}, "calls information states of two players alike"),
        ("deep_sea", {}, "has one player"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(name: str, kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"^exploitability: openspiel:{name} .*{says}") as refused:
        find(name, **kwargs)
    assert "\n" not in str(refused.value)


def test_the_bound_counts_information_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information_states, "MOST_INFORMATION_STATES", 12)
    assert find("kuhn_poker").num == 12
    monkeypatch.setattr(information_states, "MOST_INFORMATION_STATES", 11)
    with pytest.raises(UsageError, match="kuhn_poker is too large"):
        find("kuhn_poker")


def test_a_game_of_shared_rewards_is_another_game() -> None:
    with pytest.raises(UsageError, match="share_reward is true"):
        information_states.find("openspiel:kuhn_poker", EnvOptions(share_reward=True))
