"""Where the policy is that a user names: a path, `zoo/NAME`, or `hf:USER/NAME`."""

from __future__ import annotations

import difflib
from pathlib import Path

from sf.config.input_file import is_file
from sf.envs.errors import UsageError
from sf.storage.run_dir import RunDir
from sf.storage.zoo import WEIGHTS, hub

IN_THE_BOX = Path(__file__).parent / "policies"
_ZOO = "zoo"


def located(named: str | Path) -> Path:
    """The path of what a user names: the weights of a policy's folder, else the path as it is.

    A path that exists comes before the policy in the box of the same name. Raises ValueError for a name that the zoo
    does not have, and where the Hub does not give the policy.
    """
    if hub.is_address(str(named)):
        return hub.download(str(named))
    path = Path(named)
    if path.parts[:1] == (_ZOO,) and not path.exists():
        path = _in_the_box(path)
    return path / WEIGHTS if is_file(path / WEIGHTS) else path


def is_policy(named: str) -> bool:
    """Returns whether a user means a run or a policy by this, and no environment."""
    path = Path(named)
    if hub.is_address(named) or path.parts[:1] == (_ZOO,):
        return True
    is_in_folder = len(path.parts) > 1 and path.parent.is_dir() and ":" not in named
    return path.is_file() or is_in_folder or (path / WEIGHTS).is_file() or RunDir(path).config.is_file()


def names() -> list[str]:
    """Returns the names of the policies in the box."""
    return sorted(path.parent.name for path in IN_THE_BOX.glob(f"*/{WEIGHTS}"))


def _in_the_box(named: Path) -> Path:
    name = "/".join(named.parts[1:])
    if name in names():
        return IN_THE_BOX / name
    near = difflib.get_close_matches(name, names(), n=1)
    hint = f": did you mean {_ZOO}/{near[0]}?" if near else ""
    raise UsageError(f"{named} is not in the zoo, which has {', '.join(names())}{hint}")
