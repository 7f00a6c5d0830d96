"""Which network interface the ranks use."""

from __future__ import annotations

import os
import socket

import pytest

from sf.ranks import ranks
from sf.ranks.place import Place
from sf.ranks.ranks import choose_interface, interface_towards

ONE_MACHINE, TWO_MACHINES = Place(0, 2, 0, 2), Place(0, 2, 0, 1)


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.setattr(os, "environ", {"MASTER_ADDR": "127.0.0.1"})


def test_ranks_of_one_machine_can_be_reached_from_there_alone():
    choose_interface(ONE_MACHINE)
    assert [os.environ[name] for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")] == ["lo", "lo"]


def test_ranks_of_several_machines_use_the_interface_towards_the_first_or_of_the_default_route(monkeypatch):
    monkeypatch.setattr(ranks, "interface_towards", lambda host: f"towards {host}")
    choose_interface(TWO_MACHINES)
    assert os.environ.pop("GLOO_SOCKET_IFNAME") == "towards 127.0.0.1"
    found = {"127.0.0.1": "lo", "192.0.2.1": "eth0"}  # its own name means loopback to the first machine
    monkeypatch.setattr(ranks, "interface_towards", found.get)
    choose_interface(TWO_MACHINES)
    assert os.environ["GLOO_SOCKET_IFNAME"] == "eth0"


def test_what_the_user_has_chosen_stays(monkeypatch):
    os.environ["GLOO_SOCKET_IFNAME"] = "ib0"
    choose_interface(ONE_MACHINE)
    assert os.environ["GLOO_SOCKET_IFNAME"] == "ib0"
    monkeypatch.setattr(ranks, "interface_towards", lambda host: None)
    del os.environ["NCCL_SOCKET_IFNAME"]
    choose_interface(TWO_MACHINES)
    assert "NCCL_SOCKET_IFNAME" not in os.environ


def test_an_interface_is_found_by_the_address_of_its_packets(monkeypatch):
    assert interface_towards("127.0.0.1") == "lo"

    def fails(host):
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "gethostbyname", fails)
    assert interface_towards("nowhere") is None
