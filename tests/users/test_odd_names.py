"""A run whose paths are no UTF-8, as in old file systems: all that it says and writes is there."""

import io
import json
import os

import pytest
from runs import flags_of_run

from sf.__main__ import main


def test_a_run_whose_names_are_not_utf_8_ends_as_any_other(tmp_path, monkeypatch):
    train_dir = tmp_path / os.fsdecode(b"b\xe9b\xe9")
    flags = flags_of_run(train_dir, "--experiment", os.fsdecode(b"caf\xe9"), "--train_for_env_steps", "640")
    monkeypatch.setattr("sys.argv", ["sf-train", *flags])
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="utf-8"))  # strict, as in most terminals
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    run_dir = train_dir / os.fsdecode(b"caf\xe9")
    assert json.loads((run_dir / "summary.json").read_bytes())["env_steps"] >= 640
    assert (run_dir / "metrics.jsonl").read_bytes().count(b"\n") >= 1
    assert list((run_dir / "tensorboard").iterdir())
    assert b"/b\xe9b\xe9/caf\xe9/run.log" in output.getvalue()
