"""The policies that come with the package: each loads, is small, says how it came to be, and plays as its card says."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from sf import envs, load_policy
from sf.config import Config
from sf.evaluation.play.contestants import find_policies
from sf.storage import checkpoint
from sf.storage.zoo import places
from sf.storage.zoo.folder import CARD, CONFIG, WEIGHTS
from sf.tools.commands import evaluate

LARGEST = 3_000_000  # bytes
ROOT = Path(__file__).parents[3]


def front_matter(name):
    return yaml.safe_load((places.IN_THE_BOX / name / CARD).read_text().split("---\n")[1])


def metrics(name):
    """The metrics of the card by name."""
    [result] = front_matter(name)["model-index"][0]["results"]
    return {metric["type"]: metric["value"] for metric in result["metrics"]}


def score(name):
    """The mean return of the card, and its deviation."""
    return tuple(map(float, metrics(name)["mean_reward"].split(" +/- ")))


def skip_without_its_package(name):
    config = Config().replace(**yaml.safe_load((places.IN_THE_BOX / name / CONFIG).read_text()))
    try:
        envs.describe(config.run.env, config.environment)
    except ValueError as error:
        if "install" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", places.names())
def test_a_policy_of_the_zoo_loads_without_trust_is_small_and_says_how_it_came_to_be(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    saved = checkpoint.load(places.IN_THE_BOX / name / WEIGHTS)
    policy = load_policy(f"zoo/{name}")
    assert policy.env_id == saved.state["config"]["env"]
    assert policy.action_space.contains(policy.act(policy.obs_space.sample()))
    assert list(find_policies(Path("zoo", name), (), "latest", None)) == [f"zoo/{name}"]
    folder = places.IN_THE_BOX / name
    assert {path.name for path in folder.iterdir()} == {CARD, CONFIG, WEIGHTS}
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    card = (folder / CARD).read_text()
    assert front_matter(name)["license"] == "mit"
    assert re.search(r"^(sf-train|python -m sf) .*--env \S+", card, re.MULTILINE)
    assert re.search(r"^\| commit \| `[0-9a-f]{40}` \|$", card, re.MULTILINE)
    assert re.search(r"^\| episodes \| 10\d, ", card, re.MULTILINE)
    assert f"sf-enjoy zoo/{name}" in card
    assert np.isfinite(score(name)).all()
    assert any(f"zoo/{name}" in word for word in (ROOT / "docs/enjoy.md").read_text().split())


@pytest.mark.long
@pytest.mark.parametrize("name", places.names())
def test_a_policy_of_the_zoo_reaches_its_score(name, tmp_path, monkeypatch):
    skip_without_its_package(name)
    won = metrics(name).get("win_rate_against_random")
    words = ["--episodes", "8"] if won is None else ["--episodes", "20", "--against", "random"]
    out = tmp_path / "score.json"
    monkeypatch.setattr(sys, "argv", ["sf-eval", f"zoo/{name}", *words, "--json", str(out)])
    evaluate.main()
    result = json.loads(out.read_text())
    if won is not None:
        assert result["win_rate"] >= 0.7 * won  # half the matches are won by random moves
    else:
        mean, std = score(name)
        assert result["policies"][0]["statistics"]["return"]["mean"] >= mean - max(std, 0.3 * abs(mean))


def test_a_wrong_name_lists_those_that_exist():
    known = ", ".join(places.names())
    for name in ("zoo", "zoo/", "zoo/../../envs", "zoo/CartPole-v1/README.md", "zoo/nothing"):
        with pytest.raises(ValueError, match=rf"^{name.rstrip('/')} is not in the zoo, which has {known}"):
            places.located(name)
    with pytest.raises(ValueError, match=rf"which has {known}: did you mean zoo/CartPole-v1\?$"):
        places.located("zoo/cartpole-v1")


def test_a_folder_of_the_users_own_comes_before_the_zoo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("zoo/CartPole-v1").mkdir(parents=True)
    assert places.located("zoo/CartPole-v1") == Path("zoo/CartPole-v1")
    assert places.located("zoo/CartPole-v1/") == Path("zoo/CartPole-v1")
    Path("zoo/CartPole-v1", WEIGHTS).write_bytes(b"")
    assert places.located("zoo/CartPole-v1") == Path("zoo/CartPole-v1", WEIGHTS)


def test_what_a_person_names_is_a_policy_or_an_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train_dir" / "mine").mkdir(parents=True)
    (tmp_path / "train_dir" / "mine" / "config.yaml").write_text("env: toy_identity\n")
    (tmp_path / "CartPole-v1").mkdir()
    for name in ("zoo/connect_four", "zoo/typo", "hf:me/mine", "train_dir/mine", "train_dir/typo"):
        assert places.is_policy(name), name
    for name in ("CartPole-v1", "ALE/Pong-v5", "pettingzoo:classic/rps_v2", "doom:a/my.cfg"):
        assert not places.is_policy(name), name
