"""The programs of a run are there before it is measured, and are those that the run takes."""

import pytest

from sf.config import Config
from sf.learner.compiled.compiled_step import CompiledStep
from sf.model.compiled_acting import CompiledActing
from sf.run.planning import make_plan
from sf.system.native import kernels, library, programs
from sf.tools.bench import programs as bench_programs
from sf.tools.bench.layers import LAYERS
from sf.tools.bench.programs import make_programs

with_compiler = pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def taken(monkeypatch):
    """Of programs with nothing in them: the kinds of those that were taken."""
    kinds = []
    monkeypatch.setattr(kernels, "why_not", lambda: None)

    def make(_, path):
        beside = path.with_suffix(".made")
        beside.touch()
        library.put(beside, path)

    monkeypatch.setattr(programs, "make", make)
    for kind in (CompiledActing, CompiledStep):
        monkeypatch.setattr(kind, "_take", lambda self, _: kinds.append(type(self)))
    return kinds


def plan_of(tmp_path, **flags):
    return make_plan(Config().replace(env="toy_bandit", device="cpu", train_dir=str(tmp_path), **flags))


STEPS = {"shuffle_steps": True, "num_batches_per_epoch": 2}


@pytest.mark.parametrize(
    ("flags", "kinds"),
    [
        (STEPS, {CompiledActing, CompiledStep}),
        ({}, {CompiledActing}),
        (STEPS | {"core": "gru"}, {CompiledActing}),
        (STEPS | {"compile": False}, set()),
        (STEPS | {"async_rl": False}, set()),
    ],
)
def test_those_of_the_run_are_made_where_they_are_not_there(flags, kinds, taken, tmp_path, said):
    plan = plan_of(tmp_path, **flags)
    make_programs(plan)
    assert set(taken) == kinds
    assert len(said) == bool(kinds)
    said.clear()
    make_programs(plan)
    assert not said


def test_one_that_cannot_be_made_is_said(taken, monkeypatch, tmp_path, said):
    def fail(*_):
        raise RuntimeError("no room")

    monkeypatch.setattr(programs, "make", fail)
    make_programs(plan_of(tmp_path))
    assert "the policy's step is not compiled (RuntimeError: no room)" in said[-1]


def test_an_interrupt_ends_the_makers(taken, monkeypatch, tmp_path):
    closed = []

    def interrupt(_):
        raise KeyboardInterrupt

    def close(acting):
        closed.append(acting)

    monkeypatch.setattr(bench_programs.time, "sleep", interrupt)
    monkeypatch.setattr(CompiledActing, "close", close)
    with pytest.raises(KeyboardInterrupt):
        make_programs(plan_of(tmp_path))
    assert len(closed) == 1


@with_compiler
@pytest.mark.long
def test_those_that_are_made_are_those_that_a_measured_run_takes(taken, tmp_path):
    plan = plan_of(tmp_path, **STEPS)
    make_programs(plan)
    paths = list((tmp_path / "cache").rglob("program-*.so"))
    assert len(paths) == 2
    LAYERS["training"](plan, 0.5)  # its processes find that there is nothing in them
    log = (tmp_path / "bench" / "run.log").read_text()
    for path in paths:
        assert f"{path.name} cannot be loaded" in log
        assert not path.exists()
