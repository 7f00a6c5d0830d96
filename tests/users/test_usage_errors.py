"""What a command says in one sentence is a UsageError, where the user's own code might raise a ValueError, too."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("envs", "sf/model", "sf/rollout", "sf/policy", "sf/learner")
MODULES = ("sf/run/planning.py", "sf/system/processes/torch_runtime.py", "sf/storage/checkpoint.py")
MODULES += (
    "sf/evaluation/play/torch_policy.py",
    "sf/evaluation/play/episodes.py",
    "sf/evaluation/task.py",
    "sf/evaluation/evaluator.py",
)
ONLY_WE_CAN_BREAK = {("sf/model/inference.py", "__init__")}  # functions that the paths of a user do not reach


def paths():
    yield from (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    yield from (ROOT / module for module in MODULES)


def functions_that_raise(path, name):
    """Of those that raise an exception of this class, the names."""
    tree = ast.parse(path.read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Raise)
                    and isinstance(node.exc, ast.Call)
                    and ast.unparse(node.exc.func) == name
                ):
                    yield function.name


def test_what_runs_beside_the_users_own_code_raises_no_plain_value_error():
    found = {
        (str(path.relative_to(ROOT)), function)
        for path in paths()
        for function in functions_that_raise(path, "ValueError")
    }
    assert found <= ONLY_WE_CAN_BREAK
