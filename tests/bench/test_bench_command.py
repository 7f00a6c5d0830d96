import pytest

from sf.bench import command


@pytest.mark.parametrize("flag", ["--autotun", "--num_worker"])
def test_a_misspelt_flag_is_named_and_measures_nothing(flag, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sf-bench", "--env", "CartPole-v1", flag, "1"])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert flag in capsys.readouterr().err
