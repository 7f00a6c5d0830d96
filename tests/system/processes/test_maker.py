"""A program beside a process: what becomes of its file."""

from sf.system.native import programs
from sf.system.native.library import CompilerError
from sf.system.native.program_beside import ProgramBeside


def test_a_file_that_cannot_be_loaded_is_removed_so_that_the_next_run_makes_it_anew(tmp_path):
    path, reasons = tmp_path / "program.so", []
    path.touch()
    programs.put(path, path)
    assert programs.is_there(path)

    def take(path):
        raise CompilerError(f"{path.name} cannot be loaded")

    beside = ProgramBeside(path, lambda: None, take, reasons.append, begins_after_s=60.0)
    assert beside.is_over
    assert reasons == ["program.so cannot be loaded"]
    assert not path.exists()
