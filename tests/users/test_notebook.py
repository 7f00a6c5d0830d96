"""Training in the kernel of a notebook: a class in a cell, an interrupt, a cell that runs twice, one display."""

import asyncio
import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.long

CLASS = """
import gymnasium as gym
import numpy as np
import sf

class Walk(gym.Env):
    observation_space = gym.spaces.Box(-10.0, 10.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = 0.0
        return np.array([self.position], np.float32), {}

    def step(self, action):
        self.position += 2.0 * action - 1.0
        return np.array([self.position], np.float32), self.position, abs(self.position) > 3, False, {}

flags = dict(
    num_workers=1, num_envs_per_worker=2, batch_size=64, rollout=8, device="cpu", encoder_mlp_layers=[8],
    summaries_every_sec=0.2, learner_threads=1, num_batches_per_epoch=1, num_epochs=1,
)
"""
TRAINS = "sf.train(env=Walk, train_for_env_steps=640, **flags)['stopped_by']"
ENDLESS = "sf.train(env=Walk, experiment='endless', train_for_seconds=600, **flags)['stopped_by']"
SHOWS = "sf.load_policy('train_dir/python_Walk')"
INTERRUPTED = 3  # position of its cell


class Client(NotebookClient):
    """Interrupts the kernel, as its button does, when its display changes and the endless run has a step to save.

    The display changes before that, too, while the children start.
    """

    metrics: Path  # of the endless run
    is_interrupted = False

    def process_message(self, msg, cell, cell_index):
        changes = cell_index == INTERRUPTED and msg["msg_type"] == "update_display_data"
        if changes and not self.is_interrupted and self.has_steps:
            self.is_interrupted = True
            self.interrupt = asyncio.ensure_future(self.km.interrupt_kernel())
        return super().process_message(msg, cell, cell_index)

    @property
    def has_steps(self):
        lines = self.metrics.read_text().splitlines(keepends=True) if self.metrics.exists() else []
        return any(json.loads(line)["env_steps"] > 0 for line in lines if line.endswith("\n"))


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The outputs of each cell."""
    directory = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(name, str(directory / name))
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in (CLASS, TRAINS, TRAINS, ENDLESS, SHOWS)]
        )
        resources = {"metadata": {"path": str(directory)}}
        client = Client(notebook, timeout=300, kernel_name="python3", resources=resources)
        client.metrics = directory / "train_dir" / "endless" / "metrics.jsonl"
        client.execute()
    return [cell.outputs for cell in notebook.cells]


def of(outputs, kind):
    return [output for output in outputs if output.output_type == kind]


def value(outputs):
    [result] = of(outputs, "execute_result")
    return result.data["text/plain"]


def test_a_class_of_a_cell_is_trained_on_and_its_policy_says_what_it_is(cells):
    *_, trained, _, _, shown = cells
    assert of(trained, "execute_result") == []  # None
    assert value(shown).startswith("TorchPolicy('train_dir/python_Walk/checkpoints/checkpoint_")
    assert "env_id='python:Walk', env_steps=640, obs_space=Box(-10.0, 10.0, (1,), float32)" in value(shown)


@pytest.mark.parametrize("position", [1, INTERRUPTED])
def test_a_run_has_one_display_that_shows_its_latest_record(cells, position):
    [display] = of(cells[position], "display_data")
    assert display.data["text/plain"].count("python:Walk in train_dir/") == 1
    assert "<pre" in display.data["text/html"]
    assert of(cells[position], "stream") == []


def test_a_cell_that_runs_again_says_which_argument_trains_on(cells):
    [said] = of(cells[2], "stream")
    assert "train_for_env_steps" in said.text


def test_an_interrupt_ends_the_run_and_the_cell_goes_on(cells):
    assert value(cells[INTERRUPTED]) == "'SIGINT'"
    [display] = of(cells[INTERRUPTED], "display_data")
    assert "SIGINT: the run saves and ends" in display.data["text/plain"]
