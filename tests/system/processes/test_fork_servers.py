"""What a child that is forked from a prepared process has of its own, and what it shares."""

import json
import multiprocessing.util
import os
import shutil
import signal
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest
import warm
from careless import Careless
from child_body import answer, end_simulators, tell
from runs import train_here

from sf.run.children.roles.table import ROLES
from sf.run.children.servers import NETWORKS, SIMULATORS
from sf.shared.queues import PipeQueue
from sf.system.processes.child import start_child
from sf.system.processes.creator import CREATOR
from sf.system.processes.fork_servers import ForkServer
from sf.system.processes.stopping import STOP_SIGNALS


@pytest.fixture
def told_by(tmp_path):
    def told(server):
        start_child(server, "rollout", 0, tell, tmp_path / "told").join()
        return json.loads((tmp_path / "told").read_text())

    return told


def test_a_child_ends_what_it_has_started_by_sigterm_and_does_not_end_by_it_itself(tmp_path):
    start_child(SIMULATORS, "rollout", 0, end_simulators, tmp_path / "codes").join()
    codes = json.loads((tmp_path / "codes").read_text())
    assert codes == dict.fromkeys(("program", "fork", "spawn"), -signal.SIGTERM)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_server_of_a_role_imports_the_module_of_its_body(role):
    assert role.body.__module__ in role.server.preload


def test_each_server_has_imported_what_its_children_need(told_by, monkeypatch):
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", warm.spawn_cold)
    networks, simulators = (ForkServer(server.preload) for server in (NETWORKS, SIMULATORS))
    assert told_by(networks)["torch"]
    assert not told_by(simulators)["torch"]


def test_a_child_has_the_environment_variables_of_now_and_not_those_of_its_fork_server(told_by, monkeypatch):
    SIMULATORS.ensure_running()
    monkeypatch.setenv("SF_TEST_NAMED", "later")
    assert told_by(SIMULATORS)["named"] == "later"
    monkeypatch.delenv("SF_TEST_NAMED")
    assert told_by(SIMULATORS)["named"] is None


def test_a_garbage_collection_in_a_child_copies_nothing_of_what_it_shares(told_by):
    assert told_by(NETWORKS)["frozen"] > 100_000


@pytest.mark.parametrize(("has_parent", "status"), [(True, 0), (False, 1)])
def test_a_fork_server_whose_parent_has_died_as_it_began_ends_before_it_imports_anything(has_parent, status):
    creator = os.getpid() if has_parent else 2**22 + 1  # which no process can have
    environ = {**os.environ, CREATOR: str(creator)}
    begin = [sys.executable, "-c", "import sf.system.processes.preload"]
    assert subprocess.run(begin, env=environ, timeout=60, check=False).returncode == status


def test_the_fork_server_that_the_program_itself_may_use_is_left_alone(told_by):
    of_program = forkserver.connect_to_new_process
    told_by(SIMULATORS)
    assert forkserver.connect_to_new_process is of_program
    assert forkserver._forkserver._forkserver_pid is None


def test_a_child_gets_the_queues_of_many_hundred_workers(tmp_path):
    queues = [PipeQueue(4) for _ in range(450)]
    start_child(NETWORKS, "learner", 0, answer, tmp_path / "told", queues).join()
    assert [queue.get_many() for queue in queues] == [[number] for number in range(450)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 looks into the working directory before all else")
@pytest.mark.long
def test_files_with_names_of_pythons_own_modules_do_no_harm_and_those_of_the_user_are_found(tmp_path):
    for name in ("queue", "random"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is not of Python')")
    shutil.copy(Path(__file__).parents[2] / "support" / "careless.py", tmp_path / "wheel.py")  # also installed
    command = [Path(sys.executable).with_name("sf-train"), "--env", f"wheel:{Careless.__name__}", "--device", "cpu"]
    command += ["--train_for_env_steps", "500", "--num_workers", "1", "--env_kwargs", f'{{"folder": "{tmp_path}"}}']
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_rollout_workers_draw_different_numbers_from_generators_of_the_process_and_the_same_in_the_next_run(tmp_path):
    def drawn(name):
        folder = tmp_path / f"drawn_{name}"
        folder.mkdir()
        kwargs = f'{{"folder": "{folder}"}}'
        flags = ["--env_kwargs", kwargs, "--experiment", name, "--train_for_env_steps", "200"]
        train_here(tmp_path, *flags, env=f"careless:{Careless.__name__}")
        return sorted(log.read_text().splitlines()[:20] for log in folder.iterdir() if log.name != str(os.getpid()))

    first = drawn("first")
    assert len(first) == 2
    assert not set(first[0]) & set(first[1])
    assert drawn("second") == first


def test_a_fork_server_gets_none_of_the_signals_that_a_whole_group_of_processes_gets():
    """The first that a program starts, too: the tracker that multiprocessing starts before it unblocks them."""
    program = (
        "import re\n"
        "from pathlib import Path\n"
        "from sf.system.processes.fork_servers import ForkServer\n"
        "server = ForkServer([])\n"
        "server.ensure_running()\n"
        "status = Path(f'/proc/{server._server._forkserver_pid}/status').read_text()\n"
        "print(int(re.search(r'SigBlk:\\s*(\\w+)', status)[1], 16))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    blocked = int(done.stdout)
    assert [signum.name for signum in STOP_SIGNALS if not blocked & 1 << signum - 1] == []
