"""What is loaded is what was saved, to the byte, or it is not loaded; and a save that fails costs nothing."""

import errno
import itertools
import math
import os
import random
import shutil
import signal
from contextlib import nullcontext
from pathlib import Path

import pytest
import safetensors.torch
import torch
from full_disk import full_disk

from sf.model.normalizers import SymlogReturns
from sf.storage import best_checkpoint, checkpoint, checkpoint_names
from sf.storage.checkpoint import Checkpoint

KEEP = 10


def example(env_steps=640, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "model/weight": torch.randn(5, 7, generator=generator),
        "model/half": torch.randn(3, generator=generator).bfloat16(),
        "optimizer/step": torch.tensor(3),
        "digest": torch.tensor([True, False]),
        "none": torch.empty(0, 4),
    }
    return Checkpoint(tensors, {"env_steps": env_steps, "note": '{"digest":"00"}', "rate": 0.1, "none": None})


def save(directory, env_steps=640, keep=KEEP, seed=0):
    return checkpoint.save(directory, example(env_steps, seed), env_steps, keep)


def test_a_symlog_critic_from_before_its_scale_was_measured_keeps_a_scale_of_1():
    state = {"config": {"value_scale": "symlog"}}
    loaded = checkpoint.decode(checkpoint.encode(Checkpoint({"model/weight": torch.ones(1)}, state)))
    critic, returns = SymlogReturns(), torch.tensor([[1e-3, 1.0, 1e3]])
    prefix = "model/value_norm."
    critic.load_state_dict({k.removeprefix(prefix): x for k, x in loaded.tensors.items() if k.startswith(prefix)})
    critic.update(1e4 * returns, torch.ones(1, 3, dtype=torch.bool), torch.nn.Linear(1, 1))
    torch.testing.assert_close(critic.normalize(returns), returns.log1p())


def spoil(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def names(directory):
    return sorted(p.name for p in directory.iterdir())


def fail_with(number):
    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    return fail


def test_what_is_loaded_is_what_was_saved(tmp_path):
    path = save(tmp_path)
    loaded, saved = checkpoint.load(path), example()
    assert loaded.state == saved.state
    assert loaded.tensors.keys() == saved.tensors.keys()
    for name, tensor in saved.tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert loaded.tensors[name].shape == tensor.shape
        assert torch.equal(loaded.tensors[name], tensor)
    assert checkpoint_names.env_steps(path) == 640
    # Any reader of the format can open it.
    assert torch.equal(safetensors.torch.load_file(path)["model/weight"], saved.tensors["model/weight"])
    # A fingerprint is that of the tensors alone.
    assert checkpoint.fingerprint(checkpoint.load(save(tmp_path, env_steps=1))) == checkpoint.fingerprint(saved)
    others = [example(seed=1), Checkpoint({**saved.tensors, "more": torch.ones(1)}, {})]
    assert checkpoint.fingerprint(saved) not in [checkpoint.fingerprint(other) for other in others]


def test_a_weight_under_two_names_is_saved_under_both(tmp_path):
    weight, empty = torch.randn(5, 7), torch.empty(0, 4)
    tensors = {"model/a": weight, "model/b": weight, "model/row": weight[1], "model/none": empty, "model/no": empty}
    saved = Checkpoint(tensors, {"env_steps": 640})
    loaded = checkpoint.load(checkpoint.save(tmp_path, saved, 640, KEEP))
    assert loaded.tensors.keys() == tensors.keys()
    assert all(torch.equal(loaded.tensors[name], tensor) for name, tensor in tensors.items())
    assert checkpoint.fingerprint(saved) == checkpoint.fingerprint(loaded)


def test_a_flipped_bit_a_missing_end_and_a_byte_too_many_are_noticed(tmp_path):
    path = save(tmp_path)
    whole, rng = path.read_bytes(), random.Random(0)

    def flipped(position):
        data = bytearray(whole)
        data[position] ^= 1 << rng.randrange(8)
        return data

    header_end = 8 + int.from_bytes(whole[:8], "little")
    positions = {*range(0, header_end, 2), *range(header_end, len(whole), 17), len(whole) - 1}
    damaged = [*map(flipped, positions), *(whole[:length] for length in sorted(positions)), whole + b"\0"]
    for data in (*damaged, bytes(len(whole))):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="checksum"):
            checkpoint.load(path)
    safetensors.torch.save_file({"model/x": torch.zeros(3)}, path, {"state": "{}"})  # without a checksum
    with pytest.raises(ValueError, match="checksum"):
        checkpoint.load(path)


def test_without_a_checkpoint_there_is_none_to_go_on_from(tmp_path):
    assert checkpoint.latest(tmp_path) is None
    assert checkpoint.latest(tmp_path / "missing") is None
    (tmp_path / "checkpoint_best.safetensors").write_bytes(b"of the user")
    assert checkpoint.latest(tmp_path) is None


@pytest.mark.parametrize("are_whole", itertools.product([True, False], repeat=3))
def test_the_newest_whole_one_is_taken_and_each_newer_one_is_named(tmp_path, are_whole, said):
    paths = [save(tmp_path, env_steps=640 * (i + 1)) for i in range(len(are_whole))]
    for path, is_whole in zip(paths, are_whole, strict=True):
        if not is_whole:
            spoil(path)
    contents = {path.name: path.read_bytes() for path in paths}
    if any(are_whole):
        newest = max(i for i, is_whole in enumerate(are_whole) if is_whole)
        skipped = [path.name for path in reversed(paths[newest + 1 :])]
        for _ in range(2):  # the second start has nothing more to say
            assert checkpoint.latest(tmp_path) == paths[newest]
        assert len(said) == len(skipped)
        for sentence, name in zip(said, skipped, strict=True):
            assert name in sentence
            assert f"{paths[newest].name} is taken instead" in sentence
    else:
        skipped = []
        for _ in range(2):  # the second start does not begin anew either
            with pytest.raises(ValueError, match="restart_behavior restart"):
                checkpoint.latest(tmp_path)
        assert said == []
    expected = {name + ".corrupt" * (name in skipped): data for name, data in contents.items()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected


@pytest.mark.parametrize("call", ["pathlib.Path.read_bytes", "pathlib.Path.stat"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_a_file_that_cannot_be_read_now_is_not_skipped(tmp_path, monkeypatch, call, number, said):
    _, newer = save(tmp_path), save(tmp_path, 1280)
    spoil(save(tmp_path, 1920))
    before = names(tmp_path)
    name = call.rpartition(".")[2]
    real = getattr(Path, name)

    def fail(path, **kwargs):
        return fail_with(number)() if path == newer else real(path, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with pytest.raises(ValueError, match=os.strerror(number)):
            checkpoint.latest(tmp_path)
    assert (names(tmp_path), said) == (before, [])
    assert checkpoint.latest(tmp_path) == newer


def test_a_link_to_a_file_that_is_gone_and_a_folder_are_skipped(tmp_path, said):
    older = save(tmp_path)
    (tmp_path / "checkpoint_000002_000000001280.safetensors").symlink_to("gone")
    (tmp_path / "checkpoint_000003_000000001920.safetensors").mkdir()
    assert checkpoint.latest(tmp_path) == older
    assert len(said) == 2


def test_what_is_not_whole_or_cannot_be_removed_does_not_count_among_those_that_are_kept(tmp_path):
    oldest, older, newest = (save(tmp_path, 640 * i) for i in (1, 2, 3))
    spoil(newest)
    assert checkpoint.latest(tmp_path) == older
    saved = save(tmp_path, 1920, keep=2)
    assert names(tmp_path) == sorted([older.name, newest.name + ".corrupt", saved.name])
    assert saved.name != newest.name
    oldest.mkdir()  # no file that `unlink` takes
    newer = save(tmp_path, 2560, keep=2)
    assert names(tmp_path) == [oldest.name, newest.name + ".corrupt", saved.name, newer.name]


def test_after_a_return_to_fewer_env_steps_the_newest_in_time_is_the_latest(tmp_path):
    save(tmp_path, 6400, keep=2)
    before, after = save(tmp_path, 12800, keep=2), save(tmp_path, 7000, keep=2)
    assert checkpoint.latest(tmp_path) == after
    assert checkpoint_names.env_steps(after) == 7000
    assert names(tmp_path) == sorted([before.name, after.name])
    again = save(tmp_path, 7000, keep=2, seed=2)
    assert again != after
    assert checkpoint.latest(tmp_path) == again


def test_names_stay_in_order_when_their_number_gets_longer(tmp_path):
    path = save(tmp_path)
    path.rename(tmp_path / "checkpoint_999999_000000000640.safetensors")
    after = save(tmp_path)
    assert after.name.startswith("checkpoint_1000000_")
    assert checkpoint.latest(tmp_path) == after


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.open", "pathlib.Path.mkdir", None])
def test_a_save_that_fails_leaves_the_earlier_ones_and_can_be_tried_again(tmp_path, monkeypatch, call):
    """call: that fails. None: the disk is full in the middle of the file."""
    directory = tmp_path / "run" / "checkpoints"
    save(directory)
    before = {p: p.read_bytes() for p in directory.iterdir()}
    with monkeypatch.context() as patch, nullcontext() if call else full_disk(100):
        if call:
            patch.setattr(call, fail_with(errno.ENOSPC))
        with pytest.raises(OSError):
            save(directory, 1280, keep=1)
    assert {p: p.read_bytes() for p in directory.iterdir()} == before
    saved = save(directory, 1280, keep=1)
    assert checkpoint.latest(directory) == saved
    assert names(directory) == [saved.name]
    shutil.rmtree(tmp_path / "run")
    assert checkpoint.latest(directory) is None
    assert save(directory).exists()  # the folder is made again


def test_a_process_that_is_killed_while_it_saves_leaves_the_earlier_one(tmp_path, monkeypatch):
    earlier = save(tmp_path)
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(os, "fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        save(tmp_path, 1280)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    assert checkpoint.latest(tmp_path) == earlier
    saved = save(tmp_path, 1280)
    assert names(tmp_path) == sorted([earlier.name, saved.name])  # what it left is gone


def test_a_best_checkpoint_that_cannot_be_read_now_is_not_lost_to_a_worse_one(tmp_path, monkeypatch, said):
    best = best_checkpoint.save_best(tmp_path, example(640), 10.0)
    (tmp_path / f".{best.name}.123.tmp").touch()  # by a save that was killed
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail_with(errno.EACCES))
        assert best_checkpoint.best_score(tmp_path) == -math.inf
        with pytest.raises(ValueError, match=f"that can be read .*{os.strerror(errno.EACCES)}"):
            best_checkpoint.load_best(tmp_path)
        best_checkpoint.save_best(tmp_path, example(1280), 1.0)
    assert best_checkpoint.load_best(tmp_path)[0] == best
    best_checkpoint.save_best(tmp_path, example(1920), 2.0)  # the second worst goes
    assert names(tmp_path) == [best.name, "best_000000001920.safetensors"]
    better = best_checkpoint.save_best(tmp_path, example(2560), 11.0)
    assert (names(tmp_path), said) == ([better.name], [])


@pytest.mark.parametrize("damage", [spoil, lambda path: checkpoint.write(path, example())])
def test_a_best_checkpoint_that_is_damaged_is_renamed_by_the_next(tmp_path, damage, said):
    damaged = best_checkpoint.save_best(tmp_path, example(640), 10.0)
    damage(damaged)
    best = best_checkpoint.save_best(tmp_path, example(1280), 1.0)
    assert names(tmp_path) == [damaged.name + ".corrupt", best.name]
    (sentence,) = said
    assert f"renamed to {damaged.name}.corrupt" in sentence
    assert best_checkpoint.load_best(tmp_path)[0] == best


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.touch()
    for refused in (checkpoint.latest, checkpoint.load_latest, best_checkpoint.load_best):
        with pytest.raises(ValueError, match="checkpoints is a file"):
            refused(folder)
