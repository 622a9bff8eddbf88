"""Runs seqloom commands in forked processes that have imported everything already: starting one takes no time.

python -m tests.docs.server SOCKET; the client is in test_blocks.py. A request is [arguments, folder] in JSON, with the
three standard streams; the answer is the exit code, one byte.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import traceback

import torch

import seqloom
from seqloom.cli.main import main
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import read_recipe
from tests.docs.fast import make_fast

HEAVY = ("matplotlib.pyplot", "onnxruntime", "onnxscript", "soundfile", "babel", "pydantic", "sacrebleu", "rich")


def import_everything() -> None:
    for module in pkgutil.walk_packages(seqloom.__path__, "seqloom."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in HEAVY:
        importlib.import_module(name)
    check_recipe(complete(read_recipe("dates"), "dates"))  # torch imports much when it first needs it


def answer(connection: socket.socket) -> None:
    """In a process of its own: run one command and send its exit code."""
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    arguments, folder = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", 1), open(2, "w", 1)  # noqa: SIM115  # as on a terminal
    os.chdir(folder)
    sys.argv = ["seqloom", *arguments]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([code]))


def serve(path: str) -> None:
    torch.set_num_threads(1)
    import_everything()
    make_fast(setattr)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            connection, _ = listening.accept()
            if not os.fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                try:
                    answer(connection)
                finally:
                    os._exit(0)
            connection.close()


if __name__ == "__main__":
    serve(sys.argv[1])
