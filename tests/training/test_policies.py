"""Several policies in the real processes: each learns from its own rows alone, and those are whole."""

import itertools

import pytest
from recorded import ACTION, AGENT, ENV_IDX, EPISODE, NUM_BATCHES, STEP, recorded


@pytest.fixture(scope="module", params=[True, False], ids=["mixed", "one policy a match"])
def trajectories(request, tmp_path_factory):
    found, _ = recorded(
        tmp_path_factory.mktemp("train"),
        num_policies=2,
        env_kwargs='{"num_agents": 2, "episodes_per_match": 2}',
        pbt_mix_policies_in_one_env=request.param,
        policy_workers_per_policy=2 if request.param else 1,
    )
    return found


def test_all_rows_to_train_on_were_played_by_the_policy_from_the_beginning_of_the_episode(trajectories):
    for policy_id, rows in trajectories.items():
        valid = rows["valid"]
        assert rows["obs"].shape == (6, NUM_BATCHES * 4, 5)
        assert valid.shape == rows["value"].shape == (5, NUM_BATCHES * 4)
        assert valid.mean() > 0.3
        assert (rows["value"][valid] == (1 + policy_id) * (rows["obs"][:-1, :, STEP][valid] + 1)).all()


def test_every_policy_plays_every_environment_and_agent(trajectories):
    for rows in trajectories.values():
        obs = rows["obs"][:-1][rows["valid"]]
        seen = {tuple(who) for who in obs[:, [ENV_IDX, AGENT]].astype(int).tolist()}
        assert seen == set(itertools.product(range(8), range(2)))


def test_no_row_is_given_to_two_policies(trajectories):
    seen = []
    for rows in trajectories.values():
        obs = rows["obs"][:-1][rows["valid"]]
        seen += [tuple(row) for row in obs[:, [ENV_IDX, AGENT, EPISODE, STEP]].astype(int).tolist()]
    assert len(seen) == len(set(seen))


def test_actions_rewards_and_rows_belong_together(trajectories):
    for rows in trajectories.values():
        obs, valid = rows["obs"], rows["valid"]
        goes_on = valid & ~rows["terminated"]
        assert (obs[1:, :, ACTION][goes_on] == rows["discrete"][..., 0][goes_on]).all()
        assert (obs[1:, :, STEP][goes_on] == obs[:-1, :, STEP][goes_on] + 1).all()
        assert (rows["reward"][valid] == obs[:-1, :, STEP][valid] + 1).all()


def test_the_state_before_a_slot_is_that_of_its_policy(trajectories):
    for policy_id, rows in trajectories.items():
        begins_valid = rows["valid"][0]
        expected = (1 + policy_id) * rows["obs"][0, :, STEP][begins_valid]
        assert (rows["state"][begins_valid, 0] == expected).all()
