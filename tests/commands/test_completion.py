"""The shell completes flags and their values: what bash itself answers to the files."""

import subprocess
from importlib.metadata import EntryPoint

import pytest

from sf.commands import completion
from sf.commands.envs.names import find

TRAIN = EntryPoint("sf-train", "sf.__main__:main", "console_scripts")


@pytest.fixture(scope="module")
def bash_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "sf-train"
    script = completion.mend(completion.tyro_script(TRAIN, "bash"), find(None))
    path.write_text(script)
    return path


def completed(bash_file, *words):
    """What bash would offer for the last of `words`, which begin with the command."""
    answer = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        registered=$(complete -p "$1"); registered=${registered#*-F }
        ${registered%% *}
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    command = ["bash", "--norc", "-c", answer, "bash", str(bash_file), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.split("\n")[:-1]


def test_flags_of_every_component_are_completed(bash_file):
    assert completed(bash_file, "sf-train", "--num_wor") == ["--num_workers"]
    assert completed(bash_file, "sf-train", "--seed", "3", "--vtrace_") == ["--vtrace_rho", "--vtrace_c"]
    offered = completed(bash_file, "sf-train", "--")
    assert {"--env", "--batch_size", "--rnn_size", "--with_pbt", "--worker_timeout_s"} <= set(offered)
    assert all(flag.startswith("--") for flag in offered)  # no line of a help text among them


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--restart_behavior", ""], ["resume", "restart", "overwrite"]),
        (["--seed", "3", "--core", "g"], ["gru"]),
        (["--async_rl", ""], ["true", "false"]),
        (["--env", "doom_duel"], ["doom_duel", "doom_duel_bots"]),
    ],
)
def test_values_are_completed(bash_file, words, values):
    assert completed(bash_file, "sf-train", *words) == values


def test_behind_a_switch_that_needs_no_value_the_next_flag_is_completed(tmp_path):
    bench = EntryPoint("sf-bench", "sf.bench.command:main", "console_scripts")
    path = tmp_path / "sf-bench"
    path.write_text(completion.mend(completion.tyro_script(bench, "bash"), ["doom_basic"]))
    assert completed(path, "sf-bench", "--autotune", "--num_wor") == ["--num_workers"]


def test_a_script_without_the_table_stays_as_it_is():
    assert completion.mend("complete -F other sf-train\n", ["doom_basic"]) == "complete -F other sf-train\n"


def test_the_commands_of_the_package_are_found():
    assert "sf-train" in [command.name for command in completion.commands()]


def test_zsh_counts_words_from_1_and_tyro_from_0():
    script = completion.mend(completion.tyro_script(TRAIN, "zsh"), ["doom_basic"])
    assert '"${words[@]}" "$((CURRENT - 1))" <<' in script
    assert '"$CURRENT"' not in script
