"""All information states of a game, beside OpenSpiel's own lists of them and what the environment shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions, UsageError

pytest.importorskip("pyspiel")

from open_spiel.python.algorithms.exploitability import nash_conv
from open_spiel.python.policy import TabularPolicy

from sf.envs.openspiel import information_states
from sf.envs.openspiel.information_states import InformationStates

IN_TURNS = [
    ("kuhn_poker", {"players": 3}),
    ("leduc_poker", {"tensor": "observation"}),
    ("tiny_hanabi", {}),
    ("dark_hex", {"board_size": 2}),
]
AT_ONCE = [
    ("matching_pennies_3p", {}),
    ("goofspiel", {"num_cards": 3, "imp_info": True, "players": 3, "points_order": "descending"}),
    ("oshi_zumo", {"coins": 3, "horizon": 3}),
]
UNIFORM = {"kuhn_poker": 11 / 24, "leduc_poker": 2.373611111111111, "matrix_rps": 0.0}  # NashConv / players


def find(name: str, **kwargs: Any) -> InformationStates:
    return information_states.find(f"openspiel:{name}", EnvOptions(env_kwargs=json.dumps(kwargs)))


@pytest.mark.parametrize(("name", "kwargs"), [*IN_TURNS, *AT_ONCE])
def test_they_are_those_of_openspiel_and_of_the_environment_each_after_what_leads_to_it(name, kwargs) -> None:
    states = find(name, **kwargs)
    masks, observations = states.obs["action_mask"], states.obs["observation"]
    oracle = TabularPolicy(states.game)
    if (name, kwargs) in IN_TURNS:
        assert states.num == len(oracle.states)
        assert set(states.keys) == set(oracle.state_lookup)
        legal = [oracle.legal_actions_mask[oracle.state_lookup[key]] for key in states.keys]
        np.testing.assert_array_equal(masks, legal)
    np.testing.assert_allclose(states.uniform().sum(axis=1), 1.0)

    for idx, sequence in enumerate(states.sequence_before):
        if sequence >= 0:
            before, action = divmod(int(sequence), masks.shape[1])
            assert before < idx
            assert states.player[before] == states.player[idx]
            assert masks[before, action] == 1

    policy = states.uniform() ** 2 + 0.3 * np.random.default_rng(1).random(masks.shape) * states.uniform()
    policy /= policy.sum(axis=1, keepdims=True)
    for key, row in zip(states.keys, policy, strict=True):
        oracle.action_probability_array[oracle.state_lookup[key]] = row
    assert states.nash_conv(policy) == pytest.approx(nash_conv(states.game, oracle))

    options = EnvOptions(env_kwargs=json.dumps(kwargs))
    first, steps = play(envs.make_group(f"openspiel:{name}", 4, options, seed=3, first_env_idx=0), 100)
    known = {(tensor.tobytes(), mask.tobytes()) for tensor, mask in zip(observations, masks, strict=True)}
    seen = {
        (tensor.tobytes(), mask.tobytes())
        for obs in (first, *(step.obs for step in steps))
        for tensor, mask in zip(obs["observation"], obs["action_mask"], strict=True)
        if mask.any()
    }
    assert len(seen) > 1
    assert seen <= known


@pytest.mark.parametrize("name", UNIFORM)
def test_random_moves_have_their_known_exploitability(name: str) -> None:
    states = find(name)
    assert states.nash_conv(states.uniform()) / states.num_players == pytest.approx(UNIFORM[name])


@pytest.mark.parametrize(
    ("name", "kwargs", "says"),
    [
        ("2048", {"max_tile": 16}, "one player"),
        ("tic_tac_toe", {}, "too large"),
        ("hanabi", {}, "information_state_string"),
        ("phantom_ttt", {}, "of two players alike"),
    ],
)
def test_what_cannot_be_measured_is_refused(name: str, kwargs: dict[str, Any], says: str, monkeypatch) -> None:
    monkeypatch.setattr(information_states, "MOST_HISTORIES", 20_000)
    with pytest.raises(UsageError, match=f"^exploitability: openspiel:{name} .*{says}"):
        find(name, **kwargs)


def test_the_bound_counts_information_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information_states, "MOST_INFORMATION_STATES", 12)
    assert find("kuhn_poker").num == 12
    monkeypatch.setattr(information_states, "MOST_INFORMATION_STATES", 11)
    with pytest.raises(UsageError, match="kuhn_poker is too large"):
        find("kuhn_poker")
    with pytest.raises(UsageError, match="share_reward"):
        information_states.find("openspiel:kuhn_poker", EnvOptions(share_reward=True))
