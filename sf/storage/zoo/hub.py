"""Policies on the Hugging Face Hub: `hf:USER/NAME` to read one, `sf-export --hub USER/NAME` to write one.

One file is read, under a fixed name, and huggingface_hub says where it is put: nothing on the Hub names a path here.
What the Hub, the network or the token refuse is one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sf.envs.errors import UsageError
from sf.storage.zoo import WEIGHTS
from sf.system.machine import extras

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_PREFIX = "hf:"
_REPO = r"\w[\w.-]*/\w[\w.-]*"
_REVISION = r"\w[\w./-]*"
_LOG_IN = "run `hf auth login`, or set HF_TOKEN"
_OF_THE_HUB = {".gitattributes"}  # which it puts into every repository


def is_address(named: str) -> bool:
    return named.startswith(_PREFIX)


def download(address: str) -> Path:
    """Fetches hf:USER/NAME or hf:USER/NAME@REVISION into the cache of huggingface_hub. Raises UsageError for another
    address, and ValueError where the file cannot be had."""
    match = re.fullmatch(rf"{_PREFIX}({_REPO})(?:@({_REVISION}))?", address, re.ASCII)
    if match is None:
        raise UsageError(f"{address} is not an address on the Hub: write hf:USER/NAME or hf:USER/NAME@REVISION")
    repo, revision = match.groups()
    api = _api(address)
    with _refusals(address):
        return Path(api.hf_hub_download(repo, WEIGHTS, revision=revision))


def require_upload(repo: str, private: bool) -> None:
    """Raises ValueError before the work if the user could not upload a policy to `repo`, which is USER/NAME."""
    if re.fullmatch(_REPO, repo, re.ASCII) is None:
        raise UsageError(f"hub is {repo!r}: write USER/NAME")
    api = _api("--hub")
    from huggingface_hub import get_token  # noqa: PLC0415  an extra
    from huggingface_hub.errors import RepositoryNotFoundError  # noqa: PLC0415

    if get_token() is None:
        raise UsageError(f"--hub needs a token that may write: {_LOG_IN}")
    with _refusals(repo):
        account = api.whoami()
        owners = [account["name"], *(each["name"] for each in account.get("orgs", []))]
        if repo.partition("/")[0] not in owners:
            raise UsageError(f"hub is {repo}, but your token belongs to {owners[0]}: use {' or '.join(owners)}")
        try:
            found = api.model_info(repo)
        except RepositoryNotFoundError:
            return
    files = {each.rfilename for each in found.siblings or []} - _OF_THE_HUB
    if files and WEIGHTS not in files:
        raise UsageError(f"{repo} exists and is not a policy of this package: name another --hub")
    if private and not found.private:
        raise UsageError(f"{repo} exists and is public: make it private in its settings, or leave out --private")


def upload(repo: str, files: Mapping[str, bytes], private: bool, message: str) -> str:
    """Make `files` one commit of the repository, which is made where it is missing. Returns the address of the commit.

    An earlier policy there stays, as an earlier revision. Raises ValueError where the Hub refuses.
    """
    api = _api("--hub")
    from huggingface_hub import CommitOperationAdd  # noqa: PLC0415  an extra

    with _refusals(repo):
        api.create_repo(repo, private=private or None, exist_ok=True)
        added = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=data) for name, data in files.items()]
        commit = api.create_commit(repo, added, commit_message=message)
    return f"{_PREFIX}{repo}@{commit.oid}"


def _api(purpose: str) -> HfApi:
    extras.require("hub", "huggingface_hub", purpose=purpose)
    from huggingface_hub import HfApi  # noqa: PLC0415  an extra

    return HfApi(library_name="sf-appo")


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Turns what huggingface_hub raises into a sentence."""
    from huggingface_hub import errors  # noqa: PLC0415  an extra

    try:
        yield
    except UsageError:
        raise
    except errors.RepositoryNotFoundError:
        raise UsageError(f"{what} is not on the Hub, or private: check the name; for a private one {_LOG_IN}") from None
    except errors.RevisionNotFoundError:
        raise UsageError(f"{what} has no such revision: name a branch, a tag or a commit of it") from None
    except errors.LocalEntryNotFoundError:
        raise UsageError(f"{what} is not in the local cache, and the Hub does not answer: try again later") from None
    except errors.EntryNotFoundError:
        raise UsageError(f"{what} is not a policy of this package: it has no {WEIGHTS}") from None
    except errors.HfHubHTTPError as error:
        raise UsageError(_refusal(what, error.response.status_code, error.server_message or "")) from None
    except Exception as error:  # the libraries for HTTP, of which versions take different ones, and a full disk
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{what}: the Hub cannot be used ({reason})") from None


def _refusal(what: str, status: int, said: str) -> str:
    if status == 401:
        return f"{what}: the Hub does not accept your token: {_LOG_IN}"
    if status == 403:
        return f"{what}: your token may not do this: take one that may write there"
    return f"{what}: the Hub answered {status}{f' ({said})' if said else ''}"
