"""Files of tasks: those that come with the package, and what is said of those that are wrong."""

import json

import pytest

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.tasks.file import read_tasks, shipped_names, tasks_of
from sf.envs.tasks.references import Reference, known_reference


def test_the_files_of_the_package_name_environments_that_are_known():
    assert shipped_names() == ["atari_8", "doom_single", "metaworld_mt10"]
    for name in ("atari_8", "doom_single"):
        tasks = read_tasks(f"tasks:{name}").tasks
        assert {task.env for task in tasks} <= {*envs.env_ids()}
        assert {task.weight for task in tasks} == {1.0}
    assert len(read_tasks("tasks:doom_single").tasks) == 10
    assert all(task.reference is not None for task in read_tasks("tasks:atari_8").tasks)
    mt10 = read_tasks("tasks:metaworld_mt10")
    assert len(mt10.tasks) == 10
    assert json.loads(mt10.tasks[2].env_kwargs) == {"env_name": "pick-place-v3"}
    assert tasks_of("toy_bandit") is None


def test_a_file_says_name_weight_arguments_and_scores_of_each_task(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "preset: vector\ntasks:\n"
        "- ALE/Pong-v5\n"
        "- {env: toy_memory, name: hard, weight: 3, env_kwargs: {delay: 9}, random_score: 1, reference_score: 2.5}\n"
    )
    found = read_tasks(f"tasks:{path}")
    assert (found.preset, found.names) == ("vector", ("ALE_Pong-v5", "hard"))
    pong, memory = found.tasks
    assert pong.reference == known_reference("atari_pong") == known_reference("PongNoFrameskip-v4")
    assert (memory.weight, memory.env_kwargs, memory.reference[:2]) == (3.0, '{"delay": 9}', (1.0, 2.5))
    assert found.index("hard") == 1


def test_a_score_is_0_for_random_actions_and_1_for_the_reference():
    reference = Reference(-20.0, 10.0, "here")
    assert [reference.normalized(each) for each in (-20, 10, 25, -35)] == [0, 1, 1.5, -0.5]
    assert known_reference("toy_bandit") is None
    assert known_reference("atari_up_n_down") == known_reference("ALE/UpNDown-v5")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tasks: []", "has no list of tasks"),
        ("- toy_bandit", "must be a mapping with the keys tasks, preset"),
        ("tasks: [toy_bandit]\ntask: x", "has the key 'task'"),
        ("tasks: [{name: a}]", "task 1 has env None: name an environment"),
        ("tasks: [toy_bandit, {env: toy_memory, weight: 0}]", "task 2 .toy_memory. has weight 0"),
        ("tasks: [{env: toy_bandit, weight: .inf}]", "has weight inf"),
        ("tasks: [{env: toy_bandit, wieght: 1}]", "has the key 'wieght': the keys are env, name, weight"),
        ("tasks: [{env: toy_bandit, env_kwargs: [1]}]", "has env_kwargs .1.: write a mapping"),
        ("tasks: [{env: toy_bandit, name: ../a}]", "has name '../a': use letters"),
        ("tasks: [toy_bandit, toy_bandit]", "two tasks called 'toy_bandit': give one of them another `name`"),
        ("tasks: [{env: toy_bandit, random_score: 1}]", "give random_score and reference_score"),
        ("tasks: [{env: toy_bandit, random_score: 1, reference_score: 1}]", "two numbers that differ"),
        ("tasks: ['tasks:doom_single']", "is a file of tasks itself"),
        ("tasks: [toy_bandit]\npreset: evil.yaml", "has the preset 'evil.yaml', and there is none of that name"),
        ("tasks: [toy_bandit", "is not YAML"),
        ("tasks: [toy_bandit]\ntasks: [toy_memory]", "tasks is in line 1 and in line 2"),
    ],
)
def test_a_wrong_file_is_one_sentence(text, sentence, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read_tasks(f"tasks:{path}")


@pytest.mark.parametrize(
    ("tasks", "flags", "sentence"),
    [
        (["toy_bandit", "toy_bandti"], {}, "env 'toy_bandti' is not known: did you mean toy_bandit"),
        (["toy_bandit", "toy_match_rps"], {}, "toy_match_rps has 2 agents, and each task must have one"),
        (["toy_bandit", "toy_continuous"], {}, "task 'toy_bandit' has choices .* and task 'toy_continuous' continuous"),
        (
            ["toy_bandit", "toy_symbols"],
            {},
            "observation 'obs' of task 'toy_bandit' is float32 of shape .1,., and that",
        ),
        (
            ["toy_bandit", "doom_basic"],
            {},
            "a step of toy_bandit is 1 frames, and one of doom_basic 4: .*env_frameskip",
        ),
        (["toy_bandit"], {"env_kwargs": '{"a": 1}'}, "has env_kwargs for each task in its file"),
        (["toy_bandit"], {"task": "toy_memory"}, "the file has no such task: name one of toy_bandit"),
    ],
)
def test_what_cannot_be_united_is_one_sentence(tasks, flags, sentence, tmp_path):
    path = tmp_path / "tasks.yaml"
    path.write_text(json.dumps({"tasks": tasks}))
    with pytest.raises(UsageError, match=sentence):
        envs.describe(f"tasks:{path}", EnvOptions(**flags))


def test_evaluations_are_without_the_aids_of_each_task():
    options = EnvOptions(atari_episodic_life=True, doom_shaping=False)
    assert envs.as_evaluated("tasks:atari_8", options) == EnvOptions(doom_shaping=False)
    assert envs.as_evaluated("tasks:doom_single", options) == options


def test_a_file_that_is_not_there_names_those_that_are():
    with pytest.raises(UsageError, match=r"nowhere.yaml cannot be read .* or one of atari_8, doom_single"):
        envs.describe("tasks:nowhere.yaml", EnvOptions())
