"""The blocks of the README, run in their order by one fresh shell in a new clone, as by somebody who just came.

The commands are shortened by flags. The new virtual environment sees this one's packages, and pip asks no index.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import maps
import pytest
from pages import ROOT, blocks
from source import copy_source
from test_installation import OFFLINE

README = ROOT / "README.md"
SMALL = (
    "--num_workers 1 --num_envs_per_worker 2 --rollout 8 --batch_size 16 --learner_threads 1 --device cpu "
    "--encoder_conv_mlp_layers 16 --rnn_size 16 --summaries_every_sec 0.05"
)
SHORTER = {  # flags by program
    "sf-train": f"{SMALL} --train_for_env_steps 1024",
    "sf-bench": "--budget_s 1 --seconds 1",
    "sf-sweep": "--dry_run true",
    "sf-tune": "--dry_run true",
    "sf-eval": "--episodes 2",
    "sf-league": "--matches 2 --num_workers 1",
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


# What needs a person, which tests/users/test_commands.py plays, and what runs this test.
LEFT_OUT = re.compile(r"^(sf-play|make test).*\n", re.MULTILINE)


def shortened(block: str) -> str:
    block = LEFT_OUT.sub("", block)
    return re.sub(r"(sf-\w+)( [^#)\n]*)", lambda command: f"{command[0]} {SHORTER.get(command[1], '')} ", block)


def run(folder: Path, script: str) -> subprocess.CompletedProcess:
    """By a bash that knows nothing of the virtual environment of the tests."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    makes_venv = folder / "makes_venv"
    makes_venv.write_text(MAKES_VENV)
    makes_venv.chmod(0o755)
    path = [place for place in os.environ["PATH"].split(":") if not Path(place).is_relative_to(sys.prefix)]
    environ = {"PATH": ":".join(path), "HOME": str(home), "OMP_NUM_THREADS": "1", "PYTHON": str(makes_venv)}
    return subprocess.run(
        ["bash", "--norc", "--noprofile", "-euxc", script], cwd=folder, capture_output=True, text=True, check=False,
        env=environ | {"TRAIN_FLAGS": SHORTER["sf-train"]} | OFFLINE, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_command_is_shortened_where_it_stands():
    assert shortened("(cd x && sf-eval RUN)  # then\n") == "(cd x && sf-eval RUN --episodes 2 )  # then\n"


@pytest.mark.long
@pytest.mark.timeout(1800)  # on a machine with other work
def test_the_blocks_of_the_readme_run_in_order_in_a_fresh_shell(tmp_path):
    maps.skip_without("doom_battle")
    clone = tmp_path / "sf-appo"
    clone.mkdir()
    copy_source(clone)
    (example,) = blocks(README, "python")
    (clone / "example.py").write_text(example.replace("100_000", "640"))
    script = "\n".join(map(shortened, blocks(README, "bash")))
    before, activation, after = script.partition("source .venv/bin/activate")
    not_yet = "! command -v sf-train\n"  # so what follows finds it by the activation alone
    done = run(tmp_path, f"{before}{not_yet}{activation}{after}\npython example.py\n")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    made = {str(path.relative_to(clone)) for path in clone.iterdir()}
    assert {"zoo.mp4", "health.mp4", "curves.png", "policy.onnx", "train_dir"} <= made
    assert (clone / "train_dir" / "CartPole-v1" / "summary.json").exists()
