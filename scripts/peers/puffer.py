"""PufferLib 3.0.0, on its own CartPole: thousands of copies in C, in one process, and a network with an LSTM of 128.

`train_with_puffer.py` runs in the peer's virtual environment and prints lines of JSON. PufferLib samples and trains in
turn, in one process, with float32 on a CPU.

Its sources build with a compiler alone once setup.py is told three things: not to download Box2D and a build for
browsers, which none of this needs; to build CartPole alone, of its fifty environments; and to leave CUDA out.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from peers import virtual_envs
from peers.options import Kind, Options
from peers.trainer import Peer, Result, reports_in_json, result_of
from process_session import run_bounded

PACKAGE = "pufferlib==3.0.0"
TITLE = "PufferLib 3.0.0"
PROGRAM = Path(__file__).with_name("train_with_puffer.py")

NAMES = {"CartPole-v1": "puffer_cartpole"}
"""Of environments that both have. Its CartPole ends after 200 steps, that of Gymnasium after 500."""

INDEX = urllib.request.Request(
    "https://pypi.org/simple/pufferlib/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
)
SHA256 = "7df3a3e3f5f894d78d2a1f5374097890aec01473183e748abefe4f3faa10eaa9"
"""Of its source distribution."""

NEEDS = (
    "numpy<2", "gym<=0.23", "gymnasium<=0.29.1", "pettingzoo<=1.24.1", "shimmy", "psutil", "nvidia-ml-py", "rich",
    "rich-argparse", "imageio", "pyro-ppl", "heavyball", "setuptools", "wheel", "Cython",
)  # fmt: skip
"""What it imports, and what it is built with."""

CHANGES = (
    ("    download_raylib('raylib-5.5_webassembly', '.zip')\n", "    pass\n"),
    ("    download_box2d('box2d-web')\n", "    pass\n"),
    ("    download_box2d(BOX2D_NAME)\n", "    pass\n"),
    ("'pufferlib/ocean/**/binding.c'", "'pufferlib/ocean/cartpole/binding.c'"),
    ('    if shutil.which("nvcc"):\n', "    if False:\n"),
)
"""Of its setup.py: what is there, and what takes its place."""


class PufferLib(Peer):
    """Its own CartPole, in the comparison of speed alone."""

    package = PACKAGE
    name = "pufferlib"
    title = TITLE
    shown_settings = ("rnn_name", "agents", "torch_threads", "minibatch_size", "bptt_horizon", "update_epochs")

    def refusal(self, env: str) -> str | None:
        return None if env in NAMES else f"PufferLib is run on its own {', '.join(NAMES)}, not on {env}"

    def install(self, kind: Kind) -> None:
        virtual_envs.install(self.folder, NEEDS)
        if f"pufferlib=={self.versions().get('pufferlib')}" == PACKAGE:
            return
        with tempfile.TemporaryDirectory(prefix="pufferlib_") as sources:
            _unpack(Path(sources))
            built = Path(sources) / PACKAGE.replace("==", "-")
            setup = built / "setup.py"
            setup.write_text(changed(setup.read_text()))
            pip = [str(self.python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", str(built)]
            if subprocess.run(pip, check=False).returncode != 0:
                raise ValueError(f"{TITLE} could not be built: see what pip says above")

    def measure_speed(self, options: Options, train_dir: Path, experiment: str) -> Result:
        folder = train_dir / experiment
        folder.mkdir()
        task = {"env": NAMES[options.env], "flags": flags(options), "settings": str(folder / "settings.json")}
        log_file = train_dir / f"{experiment}.log"
        ran = run_bounded([str(self.python), str(PROGRAM), json.dumps(task)], log_file, options.seconds)
        log = log_file.read_text()
        reports, _ = reports_in_json(log, frameskip=1)
        return result_of(TITLE, log, reports, [], None, ran)


def flags(options: Options) -> list[str]:
    """Rollout and batch size are those of this project, the number of copies of the environment is its own. One call in
    its own process steps all of them."""
    words = [f"--train.device={options.device}", f"--train.total-timesteps={10**10}"]
    words += ["--vec.backend=Serial", "--vec.num-envs=1"]
    if options.batch_size is not None:
        words.append(f"--train.minibatch-size={options.batch_size}")
    if options.rollout is not None:
        words.append(f"--train.bptt-horizon={options.rollout}")
    return [*words, *shlex.split(options.peer_flags)]


def _unpack(folder: Path) -> None:
    """Its source distribution. Raises ValueError where it is not to be had."""
    try:
        with urllib.request.urlopen(INDEX, timeout=60) as answer:
            files = json.load(answer)["files"]
        url = next(each["url"] for each in files if each["hashes"]["sha256"] == SHA256)
        with urllib.request.urlopen(url, timeout=600) as answer:
            archive = answer.read()
    except StopIteration:
        raise ValueError(f"PyPI has no sources of {TITLE} any more") from None
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"the sources of {TITLE} could not be downloaded from PyPI: {error!r}") from None
    if hashlib.sha256(archive).hexdigest() != SHA256:
        raise ValueError(f"the sources of {TITLE} came broken from PyPI: try again")
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def changed(setup: str) -> str:
    """Raises ValueError where it does not say what is to be changed."""
    for there, instead in CHANGES:
        if there not in setup:
            raise ValueError(f"setup.py of {TITLE} has no {there.strip()!r}: the changes are for another version")
        setup = setup.replace(there, instead)
    return setup
