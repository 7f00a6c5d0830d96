"""Policies that play agents of one kind each, through the real processes."""

import numpy as np
import pytest
import torch
from kinds_env import FLY, LENGTH, MOVE, Mixed, Movers
from not_training import updater_and_loader
from runs import DEVICE, QUEUES, train_here

from sf import envs
from sf.config import Config
from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.evaluation.play.contestants import find_contest, require_spaces
from sf.evaluation.play.policy import load_policy
from sf.evaluation.task import EvaluationTask, evaluate
from sf.league.record import Match, rows_of
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.run.startup.initial_weights import initial_checkpoints
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished

ROLES = '{"speaker": 0, "listener_*": 1}'
FIELDS = ("discrete", "continuous", "log_prob", "reward", "terminated", "valid")
SPACES = {"Movers": Movers()._spaces, "Mixed": Mixed()._spaces}
BY_ROLE = {env: (spaces["speaker"], spaces["listener_0"]) for env, spaces in SPACES.items()}


def config_of(tmp_path, env, **flags):
    return Config().replace(
        env=f"kinds_env:{env}",
        train_dir=str(tmp_path),
        num_policies=2,
        policy_of=ROLES,
        num_workers=2,
        num_envs_per_worker=4,
        rollout=10,
        batch_size=3 * 8 * 10 if "critic" in flags else 8 * 10,  # of one round, since a learner takes a single batch
        device=DEVICE,
        queues=QUEUES,
        **flags,
    )


def recording_learner(reports, args):
    updater, loader = updater_and_loader(reports, args)
    batch = loader.next()
    policy = updater._optimizer_step.evaluate(batch)[0]
    records = {name: getattr(batch, name).cpu().numpy() for name in FIELDS}
    records |= {f"obs_{key}": value.cpu().numpy() for key, value in batch.obs.items()}
    records["evaluated"] = policy.log_prob(batch.discrete, batch.continuous).detach().cpu().numpy()
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    np.savez(args.checkpoints / "batch.npz", **records)
    reports.send(LearnerFinished(0))


def recorded(tmp_path, env, **flags):
    """Returns the first batch of each policy."""
    config = config_of(tmp_path, env, **flags)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    Run(make_plan(config), run_dir, bodies={"learner": recording_learner}).run()
    found = []
    for policy_id in range(2):
        with np.load(run_dir.checkpoints_of(policy_id, 2) / "batch.npz") as batch:
            found.append(dict(batch))
    return found


@pytest.mark.parametrize(("env", "flags"), [("Movers", {}), ("Mixed", {}), ("TwoKinds", {"critic": "state"})])
def test_each_learner_gets_what_agents_of_its_kind_see_and_do(tmp_path, env, flags):
    batches = recorded(tmp_path, env, **flags)
    for policy_id, batch in enumerate(batches):
        valid = batch["valid"]  # [T, B]; with a central critic the agents of the other policy are there, too
        assert valid.any()
        assert valid.all() == (not flags)
        keys = (("both", "ears"), ("both", "eyes"))[policy_id] if env == "Movers" else ("obs",)
        seen_keys = {key.removeprefix("obs_") for key in batch if key.startswith("obs_")}
        assert seen_keys - {*ADDED_FOR_CRITIC} == {*keys}
        number = batch[f"obs_{keys[0]}"][..., 0]
        for key in keys:
            seen = batch[f"obs_{key}"]
            assert (seen[:-1] == number[:-1, :, None])[valid].all()
        assert (set((number[:-1] // 10 % 10)[valid].tolist())) == ({1}, {2, 3})[policy_id]
        assert (number % 10 <= LENGTH).all()
        follows = np.where(batch["terminated"], number[:-1] + 100 - LENGTH + 1, number[:-1] + 1)
        assert (number[1:] == follows)[valid].all()
        assert (batch["reward"] == number[:-1] + 1)[valid].all()
        discrete, continuous = batch["discrete"][valid], batch["continuous"][valid]
        sizes = {"Movers": ((2,), (3, 4)), "Mixed": ((9,), ()), "TwoKinds": ((2,), (5,))}[env][policy_id]
        assert discrete.shape[1] == len(sizes)
        for head, size in zip(discrete.T, sizes, strict=True):
            assert len(set(head.tolist())) > 1
            assert set(head.tolist()) <= set(range(size))
        assert continuous.shape[1] == {"Movers": (1, 3), "Mixed": (0, 3), "TwoKinds": (0, 0)}[env][policy_id]
        assert (continuous.std(0) > 0).all()
        np.testing.assert_allclose(batch["log_prob"][valid], batch["evaluated"][valid], atol=0.05)
        if not continuous.shape[1]:  # a new policy is close to uniform among its own choices
            np.testing.assert_allclose(batch["log_prob"][valid].mean(), -np.log(sizes[0]), atol=0.3)


def test_a_run_by_roles_keeps_the_spaces_of_each_role_resumes_and_is_evaluated(tmp_path):
    flags = ["--num_policies", "2", "--policy_of", ROLES, "--core", "gru", "--batch_size", "48"]
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "800", env="kinds_env:Movers")
    assert summary["restarts"] == 0
    run = tmp_path / "kinds_env_Movers"
    policies = [load_policy(run, policy_id=policy_id, trust=True) for policy_id in range(2)]
    assert [(policy.obs_space, policy.action_space) for policy in policies] == [*BY_ROLE["Movers"]]
    for policy, action_space in zip(policies, (MOVE, FLY), strict=True):
        assert action_space.contains(policy.act(policy.obs_space.sample()))
    before = [policy.env_steps for policy in policies]

    more = str(summary["env_steps"] + 800)  # several policies end some time after the steps that were asked for
    train_here(tmp_path, *flags, "--train_for_env_steps", more, env="kinds_env:Movers")
    found = find_contest(run, (), "latest", None, is_trusted=True)
    assert all(saved.state["env_steps"] > steps for saved, steps in zip(found.players.values(), before, strict=True))
    spec = envs.describe("kinds_env:Movers", found.options)
    roles = found.roles(spec)
    task = EvaluationTask("kinds_env:Movers", found.options, found.players, 4, num_workers=1, roles=roles)
    episodes = evaluate(task).episodes  # the environment asserts that each action is of the agent's own space
    assert {(episode.agent_idx, episode.policy_idx) for episode in episodes} == {(0, 0), (1, 1), (2, 1)}
    swapped = dict(reversed(found.players.items()))
    for players, of_roles in ((swapped, roles), (found.players, ())):
        with pytest.raises(
            ValueError, match=r"^the (actions|observations) of kinds_env:Movers are .* was trained with"
        ):
            require_spaces(players, "kinds_env:Movers", spec, found.options, of_roles)

    config = found.config.replace(init_from=str(run), trust=True)
    begun = initial_checkpoints(make_plan(config), range(2))
    for policy_id, saved in enumerate(found.players.values()):
        assert begun[policy_id].weights.keys() == saved.weights.keys()
        assert all(torch.equal(begun[policy_id].weights[name], value) for name, value in saved.weights.items())
        assert begun[policy_id].state["obs_space"] == saved.state["obs_space"]
    other_way = config.replace(policy_of='{"speaker": 1, "listener_*": 0}')
    with pytest.raises(ValueError, match="observations"):
        initial_checkpoints(make_plan(other_way), [0])


def test_players_of_the_pool_have_the_spaces_of_their_role(tmp_path):
    flags = ["--num_policies", "2", "--policy_of", ROLES, "--batch_size", "48", "--past_share", "0.5"]
    flags += ["--snapshot_every_env_steps", "200", "--pbt_rollouts_per_draw", "0"]
    summary = train_here(tmp_path, *flags, "--train_for_env_steps", "2000", env="kinds_env:Movers")
    assert summary["restarts"] == 0  # the environment asserts that each action is of the agent's own space
    run = tmp_path / "kinds_env_Movers"
    past = [row.players for row in rows_of(run / "league.jsonl") if isinstance(row, Match) and row.probability]
    assert {name[:9] for players in past for name in players[:1]} == {"policy_00"}
    assert {name[:9] for players in past for name in players[1:]} == {"policy_01"}
    assert any(len(players[0]) > 9 for players in past)
    assert any(len(players[1]) > 9 for players in past)

    named = {name: str(next((run / "league").glob(f"{name}_*"))) for name in ("policy_00", "policy_01")}
    config = config_of(tmp_path, "Movers", past_share=0.5, players=tuple(named.values()), trust=True)
    config = config.replace(experiment="other")
    assert [*make_plan(config).pool_roles.named.values()] == [{0}, {1}]
    with pytest.raises(ValueError, match="the spaces of another role"):
        make_plan(config.replace(player_roles=("listener_*", "speaker")))


def test_choices_and_numbers_may_differ_between_policies_but_not_within_one(tmp_path):
    flags = ["--num_policies", "2", "--policy_of", ROLES, "--batch_size", "48", "--train_for_env_steps", "600"]
    summary = train_here(tmp_path, *flags, env="kinds_env:Mixed")
    assert summary["restarts"] == 0
    for policy_of in (None, '{"speaker": [0, 1], "listener_*": 1}'):
        config = config_of(tmp_path, "Mixed").replace(policy_of=policy_of)
        with pytest.raises(
            ValueError, match=r"^kinds_env:Mixed: agent 'speaker' has choices .*'listener_0'.*one policy"
        ):
            make_plan(config)


def test_policies_whose_critic_reads_the_others_have_the_spaces_of_all(tmp_path):
    for flags, is_whole in (({"critic": "all"}, True), ({"mixer": "sum", "share_reward": "all"}, True), ({}, False)):
        plan = make_plan(config_of(tmp_path, "Movers", **flags).replace(batch_size=240))
        assert len(plan.networks) == 2
        assert all((network.spec is plan.spec) == is_whole for network in plan.networks)
