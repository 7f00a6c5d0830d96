"""Compiled programs: they compute what the module computes, with the weights that it has, for every batch."""

import importlib
import os
import stat
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from sf.system.native import kernels, library, programs
from sf.system.native.program_beside import ProgramBeside
from sf.system.native.programs import Program

pytestmark = pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler")


class Sum(nn.Module):
    """Of a product and another input, and the first of them twice."""

    def __init__(self, num_out=2):
        super().__init__()
        self.linear = nn.Linear(3, num_out)
        self.register_buffer("shift", torch.ones(num_out))

    def forward(self, named, other):
        out = self.linear(named["x"]) + self.shift
        return out + other, 2 * named["x"]


def inputs(num, num_out=2):
    return {"x": torch.randn(num, 3)}, torch.randn(num, num_out)


EXAMPLE = inputs(programs.BATCH)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A module and the file of its program, made in a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for folder in ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR"):
            patch.setenv(folder, "")  # put back at the end
        module = Sum().requires_grad_(False)
        path = programs.path_of(module, EXAMPLE, ["test"])
        assert not programs.is_there(path)
        left_behind = path.parent / "making-by-one-that-was-killed"
        left_behind.mkdir()

        def follow():
            folder = Path(os.environ["TMPDIR"])  # of the C++ compiler, which leaves its files behind when it is killed
            assert folder.parent == path.parent
            assert folder.match("making-*")
            return programs.followed(module, EXAMPLE)

        programs.make(follow, path)
        assert not left_behind.exists()
        assert not list(path.parent.glob("making-*"))
        return module, path


@pytest.mark.long
def test_it_computes_what_the_module_does_for_every_batch_from_2_on(made):
    module, path = made
    program = Program(path, module)
    for num in (2, 3, 8, 65):
        given = inputs(num)
        for found, expected in zip(program(*given), module(*given), strict=True):
            assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_it_sees_new_weights_where_the_module_has_them(made):
    module, path = made
    program = Program(path, module)
    given = inputs(4)
    before = program(*given)[0]
    module.linear.weight.mul_(2.0)
    module.shift.add_(1.0)
    assert torch.allclose(program(*given)[0], module(*given)[0], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(program(*given)[0], before)


@pytest.mark.long
def test_its_file_is_the_users_own_and_is_made_once(made):
    module, path = made
    assert programs.is_there(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    before = path.stat()
    programs.make(lambda: programs.followed(module, EXAMPLE), path)
    assert path.stat() == before


@pytest.mark.long
def test_a_file_that_others_can_write_is_not_there(made, tmp_path):
    _, path = made
    other = tmp_path / path.name
    other.write_bytes(path.read_bytes())
    other.chmod(0o666)
    assert not programs.is_there(other)


def test_a_file_that_was_cut_short_is_not_there(tmp_path):
    path = tmp_path / "program.so"
    path.write_bytes(b"\x7fELF and more")
    programs.put(path, path)
    assert programs.is_there(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not programs.is_there(path)


def test_other_shapes_words_code_or_machines_have_another_name(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def name(module=None, example=EXAMPLE, word="test"):
        return programs.path_of(module or Sum(), example, [word]).name

    names = [
        name(),
        name(Sum(4), inputs(programs.BATCH, 4)),
        name(word="other"),
        name(nn.Sequential(Sum())),
        name(example=({"x": torch.zeros(8, 3, dtype=torch.bfloat16)}, EXAMPLE[1])),
    ]
    assert name() == names[0]
    monkeypatch.setattr(library, "machine", lambda: "another")
    names.append(name())
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    own = tmp_path / "own_network.py"
    for code in ("1", "two"):
        own.write_text(f"import torch\nclass Own(torch.nn.Identity):\n    number = '{code}'\n")
        monkeypatch.delitem(sys.modules, "own_network", raising=False)
        module = importlib.import_module("own_network").Own()
        assert module.number == code
        names.append(programs.path_of(module, (), []).name)
    assert len(set(names)) == len(names)


@pytest.mark.long
def test_the_programs_that_were_used_last_are_kept(made, monkeypatch, tmp_path):
    module, path = made
    monkeypatch.setattr(programs, "_KEPT", 2)
    for age, name in enumerate(("a", "b", "c")):
        copy = tmp_path / f"program-{name}.so"
        copy.write_bytes(path.read_bytes())
        os.utime(copy, (1000 - age, 1000 - age))
    Program(tmp_path / "program-c.so", module)
    programs._remove_old_programs(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["program-a.so", "program-c.so"]


def test_a_file_that_cannot_be_loaded_is_removed_so_that_the_next_run_makes_it_anew(tmp_path):
    path, reasons = tmp_path / "program.so", []
    path.write_bytes(b"nothing")
    programs.put(path, path)
    assert programs.is_there(path)
    beside = ProgramBeside(path, lambda: None, lambda path: Program(path, Sum()), reasons.append, begins_after_s=60.0)
    assert beside.is_over
    (reason,) = reasons
    assert "program.so cannot be loaded" in reason
    assert not path.exists()
