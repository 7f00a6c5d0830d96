"""Policies on the Hub: what is uploaded can be played, what is read runs nothing, and refusals are sentences."""

import importlib
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants
from stand_in_hub import Repository, serving
from untrained import untrained

from sf import load_policy
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.zoo import folder, hub
from sf.storage.zoo.places import located

REPO = "ann/identity"
ADDRESS = f"hf:{REPO}"


@pytest.fixture
def a_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_ann")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    with serving() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.endpoint)
        template = served.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield served


@pytest.fixture(scope="module")
def policy():
    return folder.without_training_state(untrained("toy_identity"))


def files(policy):
    return folder.contents(policy, "---\nlibrary_name: sf-appo\n---\n")


def changed(policy, **flags):
    return Checkpoint(policy.tensors, {**policy.state, "config": {**policy.state["config"], **flags}})


def test_a_policy_that_was_uploaded_can_be_played_by_its_address_and_an_earlier_one_by_its_revision(a_hub, policy):
    hub.require_upload(REPO, private=False)
    first = hub.upload(REPO, files(policy), private=False, message="first")
    assert not a_hub.repositories[REPO].private
    assert set(a_hub.repositories[REPO].latest[2]) == {".gitattributes", *files(policy)}
    assert first == f"{ADDRESS}@{a_hub.repositories[REPO].latest[0]}"
    hub.require_upload(REPO, private=False)
    later = Checkpoint(policy.tensors, {**policy.state, "env_steps": 99})
    second = hub.upload(REPO, files(later), private=False, message="second")
    addresses = (first, second, ADDRESS, f"{ADDRESS}@main")
    assert [load_policy(address).env_steps for address in addresses] == [1234, 99, 99, 99]
    with pytest.raises(ValueError, match="ann/identity exists and is public"):
        hub.require_upload(REPO, private=True)


def test_the_command_uploads_a_policy_whose_card_names_its_address(a_hub, monkeypatch, capsys):
    Path("mine.safetensors").write_bytes(checkpoint.encode(untrained("toy_identity")))
    words = ["mine.safetensors", "--hub", REPO, "--private", "--precision", "bfloat16", "--episodes", "2"]
    monkeypatch.setattr(sys, "argv", ["sf-export", *words])
    importlib.import_module("sf.tools.commands.export").main()
    repository = a_hub.repositories[REPO]
    assert repository.private
    assert f"hub:    {ADDRESS}@{repository.latest[0]}" in capsys.readouterr().out
    assert f"sf-enjoy {ADDRESS} " in repository.latest[2][folder.CARD].decode()
    assert load_policy(ADDRESS).env_steps == 1234


def test_only_the_weights_are_read_under_their_fixed_name(a_hub, policy):
    hub.upload(REPO, {**files(policy), "planted.py": b"raise SystemExit('it ran')"}, private=False, message="first")
    a_hub.requests.clear()
    path = located(ADDRESS)
    assert {request for _, request in a_hub.requests if "resolve" in request} == {
        f"/{REPO}/resolve/main/{folder.WEIGHTS}"
    }
    assert path.name == folder.WEIGHTS
    assert path.is_relative_to(Path.cwd() / "cache")
    assert [each.name for each in path.parent.iterdir()] == [folder.WEIGHTS]


@pytest.mark.parametrize("flags", [{"env": "planted:Env"}, {"encoder": "planted:Net"}])
def test_code_that_a_policy_of_the_hub_names_is_not_run(a_hub, policy, flags, monkeypatch, capsys):
    Path("planted.py").write_text("open('marker', 'w').close()\nclass Env: pass\nclass Net: pass\n")
    monkeypatch.setattr("sys.path", [str(Path.cwd()), *sys.path])
    hub.upload(REPO, files(changed(policy, **flags)), private=False, message="first")
    with pytest.raises(ValueError, match="trust=True"):
        load_policy(ADDRESS)
    monkeypatch.setattr(sys, "argv", ["sf-enjoy", ADDRESS, "--video", "out.gif"])
    with pytest.raises(SystemExit) as end:
        importlib.import_module("sf.tools.commands.enjoy").main()
    assert end.value.code == 2
    assert "--trust true" in capsys.readouterr().err
    assert not Path("marker").exists()


@pytest.mark.parametrize(
    "address", ["hf:", "hf:ann", "hf:ann/a/b", "hf:../../etc", "hf:ann/..", "hf:ann/a@", "hf:ann/a@../b"]
)
def test_an_address_is_a_user_a_name_and_a_revision(a_hub, address):
    with pytest.raises(ValueError, match="write hf:USER/NAME"):
        located(address)
    assert a_hub.requests == []


def test_what_is_not_on_the_hub_is_named(a_hub, policy, monkeypatch):
    with pytest.raises(ValueError, match="hf:ann/nothing is not on the Hub"):
        located("hf:ann/nothing")
    hub.upload(REPO, files(policy), private=False, message="first")
    with pytest.raises(ValueError, match="hf:ann/identity@v2 has no such revision"):
        located(f"{ADDRESS}@v2")
    for name, content in (
        ("pytorch_model.bin", b""),
        (folder.WEIGHTS, b'cbuiltins\nexec\n(S\'open("marker", "w")\'\ntR.'),
    ):
        a_hub.repositories["ann/bert"] = Repository()
        a_hub.repositories["ann/bert"].commit("first", {name: content})
        with pytest.raises(ValueError, match=r"no policy\.safetensors|checksum"):
            load_policy("hf:ann/bert")
    assert not Path("marker").exists()
    monkeypatch.setattr("sf.system.machine.extras.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="huggingface_hub: pip install"):
        located(ADDRESS)


@pytest.mark.long  # huggingface_hub tries again for 20 seconds
def test_without_network_an_address_that_was_read_before_still_plays(a_hub, policy, monkeypatch):
    hub.upload(REPO, files(policy), private=False, message="first")
    before = located(ADDRESS)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the port of a service that nobody runs
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}")
    assert located(ADDRESS) == before
    with pytest.raises(ValueError, match=r"hf:ann/other.* the Hub does not answer"):
        located("hf:ann/other")
    with pytest.raises(ValueError, match=r"^ann/identity: the Hub cannot be used \("):
        hub.require_upload(REPO, private=False)


@pytest.mark.parametrize(
    ("repo", "token", "said"),
    [
        ("identity", "hf_of_ann", "hub is 'identity'"),
        ("ann/../x", "hf_of_ann", "write USER/NAME"),
        (REPO, "", "HF_TOKEN"),
        (REPO, "hf_of_nobody", "does not accept your token"),
        ("bob/identity", "hf_of_ann", "hub is bob/identity"),
        ("ann/bert", "hf_of_ann", "ann/bert exists"),
    ],
)
def test_what_cannot_be_uploaded_is_said_before_the_work(a_hub, repo, token, said, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", token)
    a_hub.repositories["ann/bert"] = Repository()
    a_hub.repositories["ann/bert"].commit("first", {"README.md": b"", "pytorch_model.bin": b""})
    with pytest.raises(ValueError, match=said):
        hub.require_upload(repo, private=False)
