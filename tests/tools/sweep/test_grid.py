import pytest

from sf.tools.commands import cli
from sf.tools.sweep.grid import read_sweep

SEEDS = ["all", "[1,1]", "[0,4294967296]", "true", "0", "-1", "'3'", "1.0e+9", "[]", "[0,true]", "[-1]", "{a:1}"]


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
    assert [run.seed for run in sweep(tmp_path, "flags: {env: a}\nseeds: 3\n")] == [0, 1, 2]


def test_arguments_are_as_on_a_command_line(tmp_path):
    (run,) = sweep(
        tmp_path, "flags: {env: a, async_rl: false}\ngrid: {learning_rate: [1e-4], encoder_mlp_layers: [[64, 32]]}\n"
    )
    words = "--env a --async_rl false --learning_rate 0.0001 --encoder_mlp_layers 64 32 --seed 0 --train_dir d"
    name = "learning_rate=1e-4_encoder_mlp_layers=64x32_seed=0"
    assert run.arguments("d") == [*words.split(), "--experiment", name]
    text = "{env: toy_faulty, env_kwargs: {faults: [raise]}, train_for_env_steps: 1e6, learning_rate: 3e-4}"
    (run,) = sweep(tmp_path, f"flags: {text}\n")
    config = cli.parse(run.arguments("d"))
    assert (config.run.train_for_env_steps, config.learner.learning_rate) == (1_000_000, 3e-4)
    assert config.environment.kwargs == {"faults": ["raise"]}


def test_a_long_value_has_a_name_that_file_systems_take(tmp_path):
    values = ["x" * 3000 + end for end in "ab"] + ["ä" * 300]
    runs = sweep(tmp_path, f"flags: {{env: a}}\ngrid: {{encoder: {values}}}\nseeds: 2\n")
    names = [run.name for run in runs]
    assert len(set(names)) == 6
    assert max(len(name.encode()) for name in names) <= 200
    assert names[0].startswith("encoder=xxx")
    assert names[0].endswith("_seed=0")
    for name in names:
        (tmp_path / f".{name}.lock").touch()
    (run,) = sweep(
        tmp_path, 'grid: {env: [ALE/Pong-v5], encoder: ["a\\e[2J\\n\\0\\ud800"], env_kwargs: [{map: a/b}]}\n'
    )
    assert run.name == "env=ALE-Pong-v5_encoder=a-[2J---_env_kwargs={-map----a-b-}_seed=0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "mapping with the keys flags, grid, seeds"),
        ("flags: {env: a}\nparams: {}", "and no other"),
        ("flags: [env]", "flags must be a mapping"),
        ("flags: {gamma: 0.9}", "name an environment"),
        ("grid: {env: [a, 3]}", "name an environment"),
        ("flags: {env: a, seed: 1}", "list the seeds under seeds"),
        ("flags: {env: a}\ngrid: {train_dir: [x]}", "train_dir is chosen by the command itself"),
        ("flags: {env: a}\ngrid: {gamma: 0.9}", "gamma under grid is 0.9"),
        ("flags: {env: a}\ngrid: {gamma: []}", "it must be a list"),
        ("flags: {env: a}\ngrid: [gamma]", "grid must be a mapping"),
        ("flags: {env: a, 1: 2}", "flags must be a mapping of flag names"),
        ("flags: {env: a, gamma: 0.9}\ngrid: {gamma: [0.8]}", "leave it out of one"),
        ("flags: {env: a}\ngrid: {gamma: [0.9, 0.9]}", "gamma=0.9_seed=0"),
        ("flags: {env: a}\ngrid: {doom_map: [a/b, a-b]}", "share the directory doom_map=a-b_seed=0"),
        *((f"flags: {{env: a}}\nseeds: {seeds}", "seeds is") for seeds in SEEDS),
        ("", "mapping with the keys"),
        ("[[3", "is not YAML"),
        (f"{600 * '['}{600 * ']'}", "is not YAML"),
        (
            f"flags: {{env: a}}\ngrid: {{{', '.join(f'x{n}: [0,1,2,3,4,5,6,7,8,9]' for n in range(9))}}}",
            "1,000,000,000",
        ),
        ("flags: {env: a, core: rnn}", "core is 'rnn'"),
        ("flags: {env: a}\ngrid: {gamma: [0.9, null]}", "gamma is None"),
        ("flags: {env: a, gama: 1}", "did you mean gamma"),
    ],
)
def test_what_is_not_a_sweep_is_said(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as error:
        sweep(tmp_path, text)
    assert "sweep.yaml" in str(error.value)
