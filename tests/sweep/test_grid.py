import pytest

from sf import cli
from sf.sweep.grid import read_sweep


def sweep(tmp_path, text):
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return read_sweep(path)


def test_every_combination_has_every_seed(tmp_path):
    runs = sweep(tmp_path, "flags: {env: a}\ngrid: {rollout: [1, 2], async_rl: [true, false]}\nseeds: [5, 6, 7]\n")
    assert len(runs) == 12
    assert [(dict(run.point), run.seed) for run in runs[:4]] == [
        ({"rollout": 1, "async_rl": True}, 5),
        ({"rollout": 1, "async_rl": True}, 6),
        ({"rollout": 1, "async_rl": True}, 7),
        ({"rollout": 1, "async_rl": False}, 5),
    ]
    assert len({run.name for run in runs}) == 12


def test_a_number_of_seeds_counts_from_zero(tmp_path):
    assert [run.seed for run in sweep(tmp_path, "flags: {env: a}\nseeds: 3\n")] == [0, 1, 2]


def test_arguments_are_as_on_a_command_line(tmp_path):
    (run,) = sweep(
        tmp_path, "flags: {env: a, async_rl: false}\ngrid: {learning_rate: [1e-4], encoder_mlp_layers: [[64, 32]]}\n"
    )
    words = "--env a --async_rl false --learning_rate 0.0001 --encoder_mlp_layers 64 32 --seed 0 --train_dir d"
    name = "learning_rate=1e-4_encoder_mlp_layers=64x32_seed=0"
    assert run.arguments("d") == [*words.split(), "--experiment", name]


def test_numbers_that_yaml_reads_as_text_are_numbers(tmp_path):
    (run,) = sweep(tmp_path, "flags: {env: toy_bandit, train_for_env_steps: 1e6, learning_rate: 3e-4}\n")
    config = cli.parse(run.arguments("d"))
    assert (config.run.train_for_env_steps, config.learner.learning_rate) == (1_000_000, 3e-4)


def test_options_of_the_environment_may_be_a_mapping(tmp_path):
    (run,) = sweep(tmp_path, "flags: {env: toy_faulty, env_kwargs: {faults: [raise], probability: 0.5}}\n")
    config = cli.parse(run.arguments("d"))
    assert config.environment.kwargs == {"faults": ["raise"], "probability": 0.5}
    (run,) = sweep(tmp_path, "flags: {env: a}\ngrid: {env_kwargs: [{map: a/b}]}\n")
    assert run.name == "env_kwargs={-map----a-b-}_seed=0"


def test_a_name_of_a_directory_has_no_slash(tmp_path):
    (run,) = sweep(tmp_path, "grid: {env: [ALE/Pong-v5]}\n")
    assert run.name == "env=ALE-Pong-v5_seed=0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "mapping with the keys flags, grid, seeds"),
        ("flags: {env: a}\nparams: {}", "and no other"),
        ("flags: [env]", "flags must be a mapping"),
        ("flags: {gamma: 0.9}", "name an environment"),
        ("flags: {env: a, seed: 1}", "list the seeds under seeds"),
        ("flags: {env: a}\ngrid: {train_dir: [x]}", "train_dir is chosen by the sweep itself"),
        ("flags: {env: a}\ngrid: {gamma: 0.9}", "gamma under grid is 0.9: it must be a list"),
        ("flags: {env: a}\nseeds: all", "seeds is 'all'"),
        ("flags: {env: a}\nseeds: [1, 1]", "each seed, once"),
        ("flags: {env: a", "is not YAML"),
        ("flags: {env: a, core: rnn}", "sweep.yaml: core is 'rnn': it must be none, gru or lstm"),
        ("flags: {env: a}\ngrid: {gamma: [0.9, null]}", "sweep.yaml: gamma is None: it must be a finite number"),
        ("flags: {env: a, gama: 1}", "sweep.yaml: unknown setting gama: did you mean gamma?"),
    ],
)
def test_what_is_not_a_sweep_is_said(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        sweep(tmp_path, text)
