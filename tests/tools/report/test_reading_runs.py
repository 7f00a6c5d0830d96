"""Runs are read as they lie on disk, finished or not."""

from pathlib import Path

import pytest
import yaml
from written_runs import record, write_run

from sf.config.older import BEFORE_THE_FLAG
from sf.storage.run_dir import RunDir
from sf.storage.run_records import settled, settled_means
from sf.tools.report.runs import find, load, load_all


def test_a_run_that_is_older_than_a_flag_is_what_it_was_before_it(tmp_path):
    path = write_run(tmp_path / "a")
    saved = yaml.safe_load((path / "config.yaml").read_text())
    (path / "config.yaml").write_text(yaml.safe_dump({k: v for k, v in saved.items() if k not in BEFORE_THE_FLAG}))
    assert load(path).flags.items() >= BEFORE_THE_FLAG.items()


def test_a_star_in_a_pattern_stands_for_anything_but_a_slash(tmp_path):
    assert load(write_run(tmp_path / "b", returns=[None, None])).matching("mean_*") == ["mean_episode_steps"]
    names = [
        f"policy_0{idx}/{rest}" for idx in (0, 1) for rest in ("kills", "stats/kills", "eval/kills", "eval/stats/k[0]")
    ]
    run = load(write_run(tmp_path / "a", records=[record(1, 1.0, **dict.fromkeys(names, 1.0))]))
    assert run.matching("policy_*/kills") == ["policy_00/kills", "policy_01/kills"]
    assert run.matching("policy_*/*/kills") == [name for name in names if name.endswith(("s/kills", "l/kills"))]
    assert run.matching("policy_00/eval/stats/k[0]") == ["policy_00/eval/stats/k[0]"]  # a name is no pattern


def test_a_folder_stands_for_every_run_inside_but_those_moved_aside(tmp_path):
    for name in ("b", "a", "sweep/c", "a.old1", "b.overwritten1"):
        write_run(tmp_path / name)
    assert find([tmp_path]) == [tmp_path / "a", tmp_path / "b", tmp_path / "sweep/c"]
    assert find([tmp_path / "a.old1", tmp_path / "a", tmp_path / "a"]) == [tmp_path / "a.old1", tmp_path / "a"]


def test_a_run_of_several_ranks_is_one_run(tmp_path):
    write_run(tmp_path / "a")
    rank = RunDir(tmp_path / "a").of_rank(1).path
    write_run(rank)
    assert find([tmp_path]) == [tmp_path / "a"]
    assert find([rank]) == [rank]


def test_a_run_that_is_named_twice_is_there_once(tmp_path, monkeypatch):
    write_run(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert find([Path("a"), Path("./a/../a"), tmp_path / "a", Path("link"), Path()]) == [Path("a")]


def test_what_is_no_run_is_left_out_beside_others_unless_it_does_not_exist(tmp_path):
    write_run(tmp_path / "a")
    (write_run(tmp_path / "fresh") / "metrics.jsonl").unlink()  # its first record is yet to come
    (tmp_path / "curves.png").write_bytes(b"")
    said = []
    assert find(sorted(tmp_path.iterdir()), said.append) == [tmp_path / "a"]
    assert [line.split(" is not a run")[0] for line in said] == [
        f"left out: {tmp_path / name}" for name in ("curves.png", "fresh")
    ]
    with pytest.raises(ValueError, match="missing is not a run and has no run"):
        find([tmp_path / "a", tmp_path / "missing"])


def test_a_run_that_cannot_be_read_is_left_out_and_refused_where_no_other_is_named(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "empty", returns=[])
    (write_run(tmp_path / "broken") / "config.yaml").write_text("{")
    said = []
    assert [run.name for run in load_all([tmp_path], said.append)] == ["a"]
    assert [line.split(" ")[:2] for line in said] == [["left", "out:"]] * 2
    assert "is not YAML" in said[0]
    assert "has no record yet" in said[1]
    for name in ("empty", "broken"):
        assert [run.name for run in load_all([tmp_path / "a", tmp_path / name], said.append)] == ["a"]
        assert name in said[-1]
        with pytest.raises(ValueError, match=name):
            load_all([tmp_path / name], said.append)
    (tmp_path / "a" / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="none of these runs"):
        load_all([tmp_path], said.append)


def means(level, num_episodes, prefix=""):
    return {f"{prefix}mean_return": level, f"{prefix}stats/kills": level, f"{prefix}episodes_in_mean": num_episodes}


def test_means_over_too_few_episodes_are_left_out(tmp_path):
    of_steps = [means(99.0, 1), means(1.0, 5), means(2.0, 10), means(99.0, 4)]  # the last after a resume
    records = [{**record(step, 0.0), **own} for step, own in enumerate(of_steps, 1)]
    run = load(write_run(tmp_path / "a", records=records, stats_avg=10))
    assert [record.get("mean_return") for record in run.records] == [None, 1.0, 2.0, None]
    assert [record.get("stats/kills") for record in run.records] == [None, 1.0, 2.0, None]
    assert [record["env_steps"] for record in run.records] == [1000, 2000, 3000, 4000]
    assert settled(run.records, run.flags) == run.records
    assert settled_means(run.records, run.flags) == {"mean_episode_steps": 100.0, "std_return": 1.0, **means(2.0, 10)}


def test_means_over_few_episodes_are_kept_where_there_are_no_others():
    flags = {"stats_avg": 10, "num_policies": 1}
    records = [means(1.0, 1), means(2.0, 4)]
    assert settled(records, flags) == records
    assert settled([{"mean_return": 1.0}, *records], flags)[0] == {"mean_return": 1.0}  # of a version that did not say


def test_a_start_with_a_shorter_mean_is_judged_by_its_own():
    """`--stats_avg` was 10 at first, and is 100 today."""
    counts = [(10, 3), (10, 5), (10, 10), (10, 10), (100, 10), (100, 50), (100, 100)]
    of_two = [
        {"stats_avg": avg, **means(1.0, 2 * in_mean), **means(1.0, in_mean, "policy_00/")} for avg, in_mean in counts
    ]
    found = settled(of_two, {"stats_avg": 100, "num_policies": 2})
    for name in ("mean_return", "policy_00/mean_return"):
        assert [record.get(name) for record in found] == [None, 1.0, 1.0, 1.0, None, 1.0, 1.0]


def test_each_policy_has_episodes_of_its_own():
    flags = {"stats_avg": 10, "num_policies": 2}
    both = {**means(1.0, 9), **means(2.0, 4, "policy_00/"), **means(3.0, 5, "policy_01/")}
    later = {**means(1.0, 10), **means(2.0, 5, "policy_00/"), **means(3.0, 5, "policy_01/")}
    assert settled([both, later], flags) == [means(3.0, 5, "policy_01/"), later]
