"""What a child of the tests does. It lies apart: a child imports the module of its body, and nothing heavy with it."""

import gc
import json
import os
import sys


def tell(reports, path):
    told = {"torch": "torch" in sys.modules, "named": os.environ.get("SF_TEST_NAMED"), "frozen": gc.get_freeze_count()}
    path.write_text(json.dumps(told))


def answer(reports, path, queues):
    for number, queue in enumerate(queues):
        queue.put(number)
    path.write_text(str(len(queues)))
