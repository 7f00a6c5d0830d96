"""Messages to the user, where several parts of a process have receivers of their own."""

import threading

from sf.system.messages import nobody, said_to, say, warn


def test_two_threads_never_mix_up_their_messages():
    heard, both = {"first": [], "second": []}, threading.Barrier(2, timeout=60.0)

    def run(name):
        with said_to(heard[name].append):
            both.wait()
            say(f"from the {name}")
            both.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"first": ["from the first"], "second": ["from the second"]}


def test_a_message_is_printed_unless_a_block_around_it_has_a_receiver(capsys):
    heard = []
    say("printed")
    with said_to(heard.append):
        say("kept")
        with said_to(nobody):
            say("dropped")
        with said_to(warn):
            say("a warning")
        say("kept, too")
    assert heard == ["kept", "kept, too"]
    assert capsys.readouterr() == ("printed\n", "a warning\n")
