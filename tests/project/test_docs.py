"""What README and docs show works: commands parse, one of each kind trains, code runs, links and messages are real."""

import argparse
import ast
import dataclasses
import importlib
import importlib.util
import io
import json
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import types
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import make_flags_page
import maps
import pytest
import tyro
from pages import PAGES, ROOT, anchors, blocks, commands, inline_code, links, name_of
from peers.options import Options as PeersOptions
from untrained import untrained

import sf.api
from sf import make_config
from sf.config import Config
from sf.envs.libraries.packages import PACKAGES
from sf.run.planning import make_plan
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.bench.command import BenchFlags

TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
PROGRAMS = make_flags_page.entry_points()
COMMANDS = {" ".join(command): command for page in PAGES for command in commands(page)}


class Parsed(BaseException):
    """What a command was told, taken out of it before it does anything; no command catches it."""


def parsed(command, directory):
    """What the real parser of a command makes of its arguments. A wrong one ends with status 2, as for a user."""
    program, *arguments = command
    for path in re.findall(r"train_dir/[\w.-]+", " ".join(arguments)):
        stand_in(directory / path)

    def stopping_after(parser):
        def parse(*args, **kwargs):
            raise Parsed(parser(*args, **kwargs))

        return parse

    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()),  # of --help
        redirect_stderr(io.StringIO()) as stderr,
    ):
        patch.chdir(directory)
        patch.setattr(tyro, "cli", stopping_after(tyro.cli))
        patch.setattr(argparse.ArgumentParser, "parse_args", stopping_after(argparse.ArgumentParser.parse_args))
        try:
            if program in PROGRAMS:
                module, function = PROGRAMS[program].split(":")
                patch.setattr(sys, "argv", [program, *arguments])
                getattr(importlib.import_module(module), function)()
            else:
                patch.setattr(sys, "argv", arguments)
                runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        except Parsed as carrier:
            return carrier.args[0]
        except SystemExit as end:
            if end.code:
                raise AssertionError(stderr.getvalue()) from None
    return None


def stand_in(run):
    """A run directory with a checkpoint of a small network."""
    env = run.name if run.name == "CartPole-v1" else "toy_identity"
    saved = untrained(env)
    if not run.exists():
        RunDir(run).prepare(Config().replace(**saved.state["config"]))
        checkpoint.save(RunDir(run).checkpoints, saved, saved.state["env_steps"], keep=2)


@cache
def told_by_page(text):
    """What a command of the documentation is told."""
    with tempfile.TemporaryDirectory() as directory:
        return parsed(COMMANDS[text], Path(directory))


def of_programs():
    return [text for text, (program, *arguments) in COMMANDS.items() if is_program(program, arguments)]


def is_program(program, arguments):
    ours = ("scripts/", "docs/examples/")
    return program.startswith("sf-") or (program.startswith("python") and arguments[0].startswith(ours))


@pytest.mark.parametrize("text", of_programs())
def test_every_command_parses_and_every_run_could_start(text, tmp_path):
    program = COMMANDS[text][0]
    assert program == "python" or program in PROGRAMS, f"{program} is no command of pyproject.toml"
    told = told_by_page(text)
    told = told.config if isinstance(told, BenchFlags) else told
    if isinstance(told, Config) and not any(map(is_users_own, (told.run.env, *told.players.players))):
        maps.skip_without(told.run.env)
        if told.players.reference_ratings is not None:  # an earlier command of the page makes it
            pool = {"players": [{"name": name, "rating": {"mean": 0.0}} for name in told.players.players]}
            (tmp_path / "pool.json").write_text(json.dumps(pool))
            told = told.replace(reference_ratings=str(tmp_path / "pool.json"))
        if told.learner.demonstrations:  # as before
            told = told.replace(demonstrations=(), bc_steps=0, train_for_env_steps=told.run.train_for_env_steps or None)
        make_plan(told.replace(device="cpu"))  # a known environment, a network and numbers that fit


def is_users_own(env):
    """Of a module of the user's, or of a package that is not installed here."""
    module, colon, _ = env.partition(":")
    package = next((each.module for each in PACKAGES if re.fullmatch(each.ids, env)), None)
    needed = module if colon else package
    if env.startswith("pettingzoo:atari/"):
        needed = "multi_agent_ale_py"
    return needed is not None and importlib.util.find_spec(needed.partition(".")[0]) is None


OF_LENGTH_AND_PLACE = {"train_for_env_steps", "num_learners", "num_workers", "num_envs_per_worker"}


def test_no_command_of_a_page_goes_on_with_an_earlier_run_of_it_under_other_settings():
    for page in (page for page in PAGES if "benchmarks" not in page.parts):
        earlier = {}
        for text in (text for text in map(" ".join, commands(page)) if text.startswith("sf-train ")):
            if not isinstance(config := told_by_page(text), Config):
                continue
            flags = config.flat()
            before = earlier.setdefault(config.run.experiment_name, flags)
            assert {flag for flag in flags if flags[flag] != before[flag]} <= OF_LENGTH_AND_PLACE, text


def test_every_target_of_make_exists():
    for command in (command for command in COMMANDS.values() if command[0] == "make"):
        subprocess.run([*command, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_every_extra_that_pip_is_told_to_install_exists_and_is_quoted():
    extras = make_flags_page.project()["optional-dependencies"]
    text = "\n".join([*(page.read_text() for page in PAGES), *sentences_of_the_source()])
    told = re.findall(r"'(?:\.|[\w/.-]+\.whl)\[([\w,]+)\]'", text)
    assert {name for names in told for name in names.split(",")} <= set(extras)
    assert not re.search(r"pip install (?:-e )?\.\[", text), "a shell may read the brackets"
    assert not re.search(r"pip install '?sf-appo", text), "it is not on PyPI"


NEEDS_MORE = re.compile(r"\btrain\(|\"[\w/]+\.\w+\"")  # much time, or a file
PYTHON_BLOCKS = [(name_of(page), block) for page in PAGES for block in blocks(page, "python", "py")]


@pytest.mark.parametrize(("page", "block"), PYTHON_BLOCKS)
def test_python_in_the_pages_is_whole_and_runs_where_it_needs_nothing_else(page, block, tmp_path, monkeypatch):
    code = compile(block, page, "exec")
    ruff = [shutil.which("ruff", path=Path(sys.executable).parent), "check", "--isolated", "--no-cache", "-q", "-"]
    undefined = subprocess.run([*ruff, "--select", "F821"], input=block, text=True, capture_output=True, check=False)
    if undefined.returncode == 0 and not NEEDS_MORE.search(block):
        for path in re.findall(r"train_dir/[\w.-]+", block):
            stand_in(tmp_path / path)
        monkeypatch.chdir(tmp_path)
        exec(code, {"__name__": "example"})


class FirstTrial:
    """As much of Optuna as the page about Python asks for: a search of one trial."""

    number = 0

    def suggest_float(self, name, low, high, log):
        return low

    def suggest_int(self, name, low, high):
        return low

    def optimize(self, objective, n_trials):
        self.best_params, self.best_value = {}, objective(self)


@pytest.fixture(scope="module")
def page_about_python(tmp_path_factory):
    """What its blocks, run in their order, ask for, and what the first run, a real one, returns."""
    told, summaries = [], []

    def train_a_little(config=None, /, **flags):
        """The first run is real and short, the others could start."""
        config = config or make_config(**flags)
        make_plan(config)
        told.append(config.run.experiment_name)
        if not summaries:
            small = config.replace(num_workers=1, batch_size=64, rollout=8, num_batches_per_epoch=1, num_epochs=1)
            summaries.append(sf.api.train(small.replace(train_for_env_steps=2_000)))
        return summaries[0]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        patch.chdir(tmp_path_factory.mktemp("page"))
        patch.setattr(sf, "train", train_a_little, raising=False)
        patch.setattr(sf, "main", lambda **flags: told.append(make_config(**flags).run.env), raising=False)
        patch.setitem(sys.modules, "optuna", types.SimpleNamespace(create_study=lambda **_: FirstTrial()))
        for block in blocks(ROOT / "docs" / "python.md", "python"):
            exec(compile(block, "python.md", "exec"), {"__name__": "__main__"})
        yield told, summaries[0]


def test_the_page_about_python_runs_from_its_first_block_to_its_last(page_about_python):
    told, summary = page_about_python
    assert told == ["CartPole-v1", "python_Walk", "cartpole_0", "cartpole_1", "CartPole-v1", "trial_0"]
    table = (ROOT / "docs" / "python.md").read_text().split("| key | what |")[1].split("\n\n")[0]
    keys = {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    assert {"run_dir", "stopped_by"} <= keys <= set(summary)


def test_a_run_reports_what_troubleshooting_asks_for(page_about_python):
    _, summary = page_about_python
    names = [code for code in inline_code(TROUBLESHOOTING) if re.fullmatch(r"(train|rollout|policy|learner)/\w+", code)]
    assert names
    assert {*names} <= {*summary}
    record = json.loads(RunDir(Path(summary["run_dir"])).metrics.read_text().splitlines()[-1])
    of_records_alone = {re.sub("^cores/.*", "cores/...", name) for name in set(record) - set(summary)}
    assert of_records_alone == {"sampled_env_frames_per_second", "cores/..."}  # as watching.md says
    assert {"steady_env_frames_per_second", "stopped_by"} <= set(summary) - set(record)


def test_code_that_a_page_takes_from_an_example_is_in_it():
    quoted = {}
    for _, block in PYTHON_BLOCKS:
        name, _, code = block.removeprefix("# ").partition("\n")
        if name.startswith("own_") or name == "tiny_appo.py":
            quoted[name] = {line.strip() for line in code.splitlines()}
            assert quoted[name] <= {
                line.strip() for line in (ROOT / "docs" / "examples" / name).read_text().splitlines()
            }
    assert set(quoted) == {"own_metrics.py", "own_reward_shaping.py", "own_encoder.py", "own_model.py", "tiny_appo.py"}


def test_files_that_a_page_shows_are_among_the_examples():
    for page, example in (("sweeps.md", "sweep.yaml"), ("tuning.md", "tune.yaml")):
        first, *_ = blocks(ROOT / "docs" / page, "yaml")
        assert first == (ROOT / "docs" / "examples" / example).read_text()


def test_links_lead_to_files_and_headings_that_exist():
    of_pages = [(page, link) for page in PAGES for link in links(page) if not re.match(r"\w+:", link)]
    for page, link in of_pages:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link}"
        assert not anchor or anchor in anchors(target), f"{name_of(page)}: {link}"


def test_flags_that_the_text_names_exist():
    known = {"help", "tyro", *re.findall(r"`--(\w+)`", make_flags_page.page())}  # --tyro-print-completion
    known |= {field.name for field in dataclasses.fields(PeersOptions)}  # of scripts/bench_peers.py
    of_other_programs = {ROOT / "docs" / "docker.md", ROOT / "docs" / "recipes" / "slurm.md"}
    for page in (page for page in PAGES if "benchmarks" not in page.parts and page not in of_other_programs):
        for code in inline_code(page):
            named = re.findall(r"--(\w+)", code) if code.startswith(("--", "sf-")) else []
            assert set(named) <= known, f"{name_of(page)}: {code}"


def test_flags_that_are_the_same_as_in_sample_factory_exist():
    text = (ROOT / "docs" / "from_sample_factory.md").read_text()
    headings = "The same name, the same meaning:|Different, or not there:|## Watching and evaluating"
    _, same, different, _ = re.split(headings, text)
    names = re.findall(r"`(\w+)`", same)
    assert len(names) > 50
    assert set(names) <= set(Config().flat())
    replacements = {flag for row in different.splitlines() for flag in re.findall(r"`--(\w+)", row)}
    assert replacements - {"checkpoint"} <= set(Config().flat())


def test_the_page_of_flags_is_what_the_script_makes_of_the_dataclasses():
    assert make_flags_page.PAGE.read_text() == make_flags_page.page(), "run scripts/documentation/make_flags_page.py"


@cache
def sentences_of_the_source():
    """Every text in it, with "..." for what is filled in."""
    return [*_texts_of_the_source()]


def _texts_of_the_source():
    for package in ("sf", "envs"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    yield "".join(v.value if isinstance(v, ast.Constant) else "..." for v in node.values)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_messages_quoted_in_troubleshooting_are_those_of_the_source():
    quoted = blocks(TROUBLESHOOTING, "text")
    assert len(quoted) > 10
    sentences = [" ".join(sentence.split()) for sentence in sentences_of_the_source()]
    for message in quoted:
        text = " ".join(message.split())
        assert any(text in sentence for sentence in sentences), text
