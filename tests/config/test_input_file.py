"""What a user names and nobody can look for is one sentence."""

import errno
from pathlib import Path

import pytest

from sf.config import presets
from sf.config.input_file import is_file
from sf.storage.run_dir import RunDir
from sf.tools.report.runs import find

LONG = "x" * 300


@pytest.mark.parametrize(
    "look", [presets.load, lambda name: find([Path(name)]), lambda name: RunDir(Path(name)).saved_flags()]
)
def test_a_directory_that_may_not_be_entered_is_one_sentence(look, monkeypatch):
    def stat(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", stat)
    with pytest.raises(ValueError, match=r"hidden.* cannot be read \(Permission denied\): name another"):
        look("hidden/run")


def test_a_name_that_is_too_long_is_one_sentence():
    with pytest.raises(ValueError, match=f"{LONG}"):
        presets.load(LONG)
    with pytest.raises(ValueError, match=f"{LONG}"):
        find([Path(LONG)])


def test_what_is_there_is_found(tmp_path):
    (tmp_path / "file").touch()
    assert is_file(tmp_path / "file")
    assert not is_file(tmp_path / "none")
    assert not is_file(tmp_path)
