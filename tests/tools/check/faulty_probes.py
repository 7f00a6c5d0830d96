"""Probes that fail in a way of their own, for the processes that call them."""

import os
import signal


def passes(needs):
    return f"{needs} in process {os.getpid()}"


def raises(needs):
    raise KeyError("the cause\nand more")


def crashes(needs):
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(needs):
    signal.pause()


def asks_a_partner_that_dies(needs, partner):
    try:
        return partner.recv()
    except EOFError:
        return "its partner has died"


def dies(prober):
    os.kill(os.getpid(), signal.SIGKILL)
