import pytest
from stand_in_slurm import Cluster


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A stand-in for SLURM. Its jobs end with the test."""
    pytest.importorskip("submitit")
    found = Cluster(tmp_path / "cluster", monkeypatch)
    yield found
    found.end()
