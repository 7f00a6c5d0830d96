"""The end of a long file of lines is read without the rest."""

import pytest

from sf.storage import text_files


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a", b"a\n", b"a\nb", b"one\ntwo\nthree\n", b"one\ntwo\nthree\nfour", b"\n\n\n\n"]
)
def test_the_last_lines_are_those_of_the_whole_file(tmp_path, monkeypatch, text, block):
    monkeypatch.setattr(text_files, "_BLOCK", block)
    path = tmp_path / "lines"
    path.write_bytes(text)
    for num_lines in (1, 2, 3, 9):
        assert text_files.last_lines(path, num_lines) == text.split(b"\n")[-num_lines:]


def test_a_long_file_is_read_from_its_end(tmp_path):
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.truncate(2**36)  # zeros that take no room
        file.seek(0, 2)
        file.write(b"\nlast but one\nlast\n")
    assert text_files.last_lines(path, 3) == [b"last but one", b"last", b""]
