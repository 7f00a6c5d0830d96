"""What a child of the tests does. It lies apart: a child imports the module of its body, and nothing heavy with it."""

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time


def tell(reports, path):
    told = {"torch": "torch" in sys.modules, "named": os.environ.get("SF_TEST_NAMED"), "frozen": gc.get_freeze_count()}
    path.write_text(json.dumps(told))


def answer(reports, path, queues):
    for number, queue in enumerate(queues):
        queue.put(number)
    path.write_text(str(len(queues)))


def end_simulators(reports, path):
    """Each by SIGTERM, as environments do. Then this process gets one itself, and goes on."""
    program = subprocess.Popen(["sleep", "60"])
    program.terminate()
    codes = {"program": program.wait(timeout=20)}
    for how in ("fork", "spawn"):
        process = multiprocessing.get_context(how).Process(target=time.sleep, args=(60,), daemon=True)
        process.start()
        process.terminate()
        process.join(timeout=20)
        codes[how] = process.exitcode
    os.kill(os.getpid(), signal.SIGTERM)
    path.write_text(json.dumps(codes))
