"""What the README and the page of installation say first, in a new clone, as by somebody who just came.

One fresh shell installs, trains, watches and runs the example, shortened by flags. Cold commands are slow, so the
README's others are left to tests/users/test_commands.py and the rooms of the commands. What `make` has installed there
is then installed again, and removed, as the page of installation says. The new virtual environment sees this one's
packages, and pip asks no index: so what a line installs is this project, and that the packages that it needs besides
have the versions that it asks for.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pages import ROOT, SHELLS, blocks
from source import copy_source

README = ROOT / "README.md"
INSTALLATION = ROOT / "docs" / "installation.md"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # 0: do not
SMALL = (
    "--num_workers 1 --num_envs_per_worker 2 --rollout 8 --batch_size 16 --learner_threads 1 --device cpu "
    "--encoder_conv_mlp_layers 16 --rnn_size 16 --summaries_every_sec 0.05 --num_batches_per_epoch 1 --num_epochs 1"
)
SHORTER = {  # flags by program
    "sf-train": f"{SMALL} --train_for_env_steps 1024",
    "sf-eval": "--episodes 2",
    "sf-enjoy": "--episodes 1 --max_seconds 1",
}
# python -m venv FOLDER, where what is installed here is seen; Python 3.11 brings a setuptools that is too old.
MAKES_VENV = f"""#!/bin/sh
set -e
{sys.executable} "$@"
"$3/bin/python" -m pip uninstall --quiet --yes setuptools
cd "$3/lib"/python*/site-packages
echo {sysconfig.get_path("purelib")} > here.pth
"""


# What runs this test.
LEFT_OUT = re.compile(r"^make test.*\n", re.MULTILINE)


def shortened(block: str) -> str:
    block = LEFT_OUT.sub("", block)
    return re.sub(r"(sf-\w+)( [^#)\n]*)", lambda command: f"{command[0]} {SHORTER.get(command[1], '')} ", block)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Has the clone, and a home that is empty."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "home").mkdir()
    (folder / "sf-appo").mkdir()
    copy_source(folder / "sf-appo")
    makes_venv = folder / "makes_venv"
    makes_venv.write_text(MAKES_VENV)
    makes_venv.chmod(0o755)
    return folder


def run(folder: Path, script: str, answer: str = "", cwd: str = ".") -> str:
    """By a bash that knows nothing of the virtual environment of the tests."""
    path = [place for place in os.environ["PATH"].split(":") if not Path(place).is_relative_to(sys.prefix)]
    environ = {"PATH": ":".join(path), "HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    environ |= {"PYTHON": str(folder / "makes_venv"), "TRAIN_FLAGS": SHORTER["sf-train"], **OFFLINE}
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-euxc", script], cwd=folder / cwd, capture_output=True, text=True,
        env=environ, input=answer, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def said_by_readme(folder):
    (example,) = blocks(README, "python")
    installation, first_commands, *_ = blocks(README, "bash")
    (folder / "sf-appo" / "example.py").write_text(example.replace("100_000", "640"))
    script = shortened(f"{installation}\n{first_commands}")
    before, activation, after = script.partition("source .venv/bin/activate")
    not_yet = "! command -v sf-train\n"  # so what follows finds it by the activation alone
    return run(folder, f"{before}{not_yet}{activation}{after}\npython example.py\nmake train\n")


@pytest.mark.long
@pytest.mark.timeout(1800)  # on a machine with other work
def test_the_first_blocks_of_the_readme_run_in_a_fresh_shell_and_make_train_again(folder, said_by_readme):
    clone = folder / "sf-appo"
    made = {str(path.relative_to(clone)) for path in clone.iterdir()}
    assert {"zoo.mp4", "health.mp4", "train_dir"} <= made
    assert (clone / "train_dir" / "CartPole-v1" / "summary.json").exists()
    assert said_by_readme.count("score:  sf-eval train_dir/doom_basic") == 2


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("said_by_readme")
def test_the_lines_of_the_page_of_installation_install_the_program_and_remove_it(folder):
    text = "\n".join(blocks(INSTALLATION, *SHELLS)).replace("\\\n", " ")
    makes_venv, *lines = (line for line in text.splitlines() if re.match(r"(python3?|pip|rm)\b", line))
    assert makes_venv == "python3 -m venv .venv && . .venv/bin/activate"
    venv = folder / "sf-appo" / ".venv"
    for line in (line.partition("  #")[0] for line in lines):
        is_build = "python -m build" in line
        flags = " --no-isolation" if is_build else ""  # else it asks the index for setuptools
        said = run(folder, f"source .venv/bin/activate\n{line}{flags}", "y\n", cwd="sf-appo")
        assert "does not provide the extra" not in said
        if line.startswith("pip install") and not is_build:
            found = "source sf-appo/.venv/bin/activate\npython -c 'import sf; print(sf.__file__)' 2> /dev/null"
            where = [word for word in run(folder, found).split() if word.endswith("sf/__init__.py")]
            assert where
            assert all(Path(path).is_relative_to(venv) for path in where), line
            assert (venv / "bin" / "sf-train").exists()
    assert not (venv / "bin" / "sf-train").exists()
