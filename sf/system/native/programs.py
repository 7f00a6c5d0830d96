"""Whole modules as compiled programs: one call into C++ instead of hundreds of operations called from Python.

AOTInductor of PyTorch (torch.export, then torch._inductor) makes them for any batch size, which takes half a minute of
a core, and they are kept where the loops are, by what they were made from. Weights are inputs of a program: it reads
them where the module has them, or packs them anew when they have changed (`sf.system.native.packing`), so it needs no
word of new ones.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sf.system.native import library, packing
from sf.system.native.library import CompilerError, put
from sf.system.native.packing import PackedProducts, PackedWeights
from sf.system.portable import fcntl

_MAKING = "making-"  # begins the names of folders
_KEPT = 32  # programs, of some megabytes each
BATCH = 8  # of the example that is followed: any but 0 and 1, which torch.export takes to be special


class Program:
    """A compiled module, on the CPU. Its inputs are those of the module, with a batch of at least 2."""

    def __init__(self, path: Path, module: nn.Module) -> None:
        """Raises CompilerError where the file cannot be used."""
        self._runner = load(path)
        self._weights = list(weights_of(module).values())
        try:
            self._packed = PackedWeights(self._runner, self._weights)
        except (AttributeError, RuntimeError) as error:
            raise CompilerError(f"{path} cannot be used: {error}") from None

    def __call__(self, *inputs: Any) -> tuple[Tensor, ...]:
        self._packed.refresh()
        return tuple(self._runner.run([*self._weights, *pytree.tree_leaves(inputs)]))


def load(path: Path) -> Any:
    """Its `run` takes a list of tensors, and gives one. Raises CompilerError where the file cannot be used."""
    try:
        # Loaded from where it lies; PyTorch's own loader would unpack a copy and leave it behind when killed.
        os.utime(path)  # it is of use still
        return torch._C._aoti.AOTIModelContainerRunnerCpu(str(path), 1)
    except (AttributeError, OSError, RuntimeError) as error:
        raise CompilerError(f"{path} cannot be loaded: {error}") from None


def path_of(module: nn.Module, example: Sequence[Any], made_from: Iterable[str]) -> Path:
    """Where the program for a module with such inputs lies, if it is there. Raises CompilerError.

    made_from: what decides on the program beside the shapes of weights and inputs, and the files of the module's parts.
    """
    tensors = pytree.tree_leaves((weights_of(module), tuple(example)))
    words = [*made_from, str(module), *(f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors)]
    words += [
        file.read_text(encoding="utf-8")
        for file in (Path(__file__), Path(packing.__file__), *sorted(_files_of_parts(module)))
    ]
    words += [torch.__version__, library.machine()]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    return library.folder() / f"program-{name}.so"


def code_of(*modules: ModuleType) -> list[str]:
    """Returns the text of the modules, and of all in them if they are packages: what a network's classes may call."""
    files: list[Path] = []
    for module in modules:
        files += sorted(Path(*module.__path__).rglob("*.py")) if hasattr(module, "__path__") else [_file_of(module)]
    return [file.read_text(encoding="utf-8") for file in files]


def _file_of(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)


def is_there(path: Path) -> bool:
    return library.is_usable(path)


def make(follow: Callable[[], torch.export.ExportedProgram], path: Path) -> None:
    """Compile what `follow` gives into `path`, unless another process has done it meanwhile.

    Raises whatever PyTorch does. For a process of its own: PyTorch's compiler, and the C++ compiler that it calls, are
    pointed at a folder that is gone afterwards.
    """
    with Path(path.parent, "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time: each takes a core and half a gigabyte
        if is_there(path):
            return
        _remove_folders(path.parent, "*")
        _remove_old_programs(path.parent)
        with tempfile.TemporaryDirectory(prefix=f"{_MAKING}{os.getpid()}-", dir=path.parent) as folder:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TMPDIR"] = folder
            package = Path(folder, "program.pt2")
            torch._inductor.aoti_compile_and_package(follow(), package_path=str(package))
            made = Path(folder, path.name)
            with zipfile.ZipFile(package) as files:
                (name,) = [name for name in files.namelist() if name.endswith(".so")]
                made.write_bytes(files.read(name))
            put(made, path)


def followed(module: nn.Module, example: Sequence[Any]) -> torch.export.ExportedProgram:
    """The module as a function of its weights and of inputs, for any batch.

    example: inputs, whose tensors all have the batch as their first axis, of `BATCH`. Raises whatever PyTorch does.
    """
    weights, batch = weights_of(module), torch.export.Dim("batch", min=2)
    shapes = {
        "weights": dict.fromkeys(weights),
        "inputs": pytree.tree_map(lambda _: {0: batch}, tuple(example)),
    }
    with torch.no_grad():
        return torch.export.export(_OfWeights(module), (weights, *example), dynamic_shapes=shapes)


def clean_up(path: Path, pid: int) -> None:
    """After `make` was killed in that process."""
    _remove_folders(path.parent, f"{pid}-*")


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """All that a program reads of a module: parameters and buffers, without gradients."""
    return {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}


def _files_of_parts(module: nn.Module) -> set[Path]:
    """Those of their classes, but for PyTorch's own."""
    files = set()
    for kind in {type(part) for part in module.modules()}:
        if kind.__module__.partition(".")[0] != "torch":
            with suppress(TypeError):  # a class of a notebook has none
                files.add(Path(inspect.getfile(kind)))
    return files


def _remove_folders(cache: Path, of: str) -> None:
    for left_behind in cache.glob(f"{_MAKING}{of}"):
        shutil.rmtree(left_behind, ignore_errors=True)


def _remove_old_programs(cache: Path) -> None:
    """Those of networks that nobody has trained for long."""
    by_age = sorted(cache.glob("program-*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_KEPT:]:
        path.unlink(missing_ok=True)


class _OfWeights(nn.Module):
    """The module as a function of its weights, too."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = (module,)  # not as a part of this one: its weights would become constants
        for name, constant in packing.constants(list(weights_of(module).values())).items():
            self.register_buffer(name, constant)

    def forward(self, weights: dict[str, Tensor], *inputs: Any) -> Any:
        with PackedProducts(list(weights.values()), dict(self.named_buffers())):
            return torch.func.functional_call(*self._module, weights, inputs)
