"""Faults from inside: Python imports this file as sitecustomize in the process that is attacked.

plan.json beside it says what happens: {"root", "kind", "at"}. Calls that change files under the root are counted: files
opened for writing, folders made, names changed or removed, and fsync.

    count    nothing; the number of calls is written to count.json
    kill     SIGKILL before call number `at`
    power    the same, after undoing all that no fsync has forced to the disk: contents of files and names in folders
    full     from call number `at` on, the disk is full
    signal   a signal (of number "signal") after `at` seconds
"""

import atexit
import builtins
import errno
import io
import json
import os
import shutil
import signal
import stat
import sys
import threading
from pathlib import Path

HERE = Path(__file__).parent
PLAN = json.loads((HERE / "plan.json").read_text())
ROOT, KIND, AT = PLAN["root"], PLAN["kind"], PLAN["at"]
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
GROWS = {"open", "os.mkdir", "fsync"}  # calls that need room
calls, busy = 0, threading.local()
fsync, open_file = os.fsync, io.open


def is_ours(path):
    if isinstance(path, int):
        path = os.readlink(f"/proc/self/fd/{path}")
    path = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return os.path.abspath(path).startswith(ROOT + os.sep) or os.path.abspath(path) == ROOT


def changed(event, path):
    """Before each call that changes a file."""
    global calls
    if getattr(busy, "inside", False) or not is_ours(path):
        return
    calls += 1
    if KIND == "power" and calls == AT:
        busy.inside = True
        lose_power()
    if KIND in ("kill", "power") and calls == AT:
        os.kill(os.getpid(), signal.SIGKILL)
    if KIND == "full" and calls >= AT and event in GROWS:
        named = [] if event == "fsync" else [os.fsdecode(path)]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *named)


def audit(event, arguments):
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not isinstance(path, int | None):
            changed("open", path)
    elif event in CHANGES:
        changed(event, arguments[0])


class Full:
    """A file that could still be opened, on a disk that is full."""

    def __init__(self, file):
        self.file = file

    def write(self, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()


def opened(file, mode="r", *given, **options):
    """Every other file fails when it is written to rather than when it is opened."""
    global calls
    writes = KIND == "full" and set(mode) & set("wax+") and not isinstance(file, int) and is_ours(file)
    if writes and calls + 1 >= AT and (calls + AT) % 2 and not getattr(busy, "inside", False):
        calls += 1
        busy.inside = True
        try:
            return Full(open_file(file, mode, *given, **options))
        finally:
            busy.inside = False
    return open_file(file, mode, *given, **options)


# -- what is on the disk

contents = {}  # of files, by inode
names = {}  # in folders, by inode: {name: inode}
held = {}  # open files and folders, by inode, so that no number is used again


def hold(path):
    number = os.stat(path, follow_symlinks=False).st_ino
    if number not in held:
        held[number] = os.open(path, os.O_RDONLY)
    return number


def remember(path):
    """The file or folder at this path is on the disk as it is now."""
    busy.inside = True
    try:
        number = hold(path)
        if stat.S_ISDIR(os.fstat(held[number]).st_mode):
            names[number] = {each.name: hold(each.path) for each in os.scandir(path)}
        else:
            contents[number] = Path(path).read_bytes()
    finally:
        busy.inside = False


def synced(handle):
    if isinstance(handle, int) and is_ours(handle) and not getattr(busy, "inside", False):
        changed("fsync", handle)
        fsync(handle)
        if KIND == "power":
            remember(os.readlink(f"/proc/self/fd/{handle}"))
    else:
        fsync(handle)


def lose_power():
    """Put back what is on the disk."""
    found = Path(ROOT + ".found")

    def put_back(number, path):
        if stat.S_ISDIR(os.fstat(held[number]).st_mode):
            path.mkdir()
            for name, inner in names.get(number, {}).items():
                put_back(inner, path / name)
        else:
            path.write_bytes(contents.get(number, b""))

    put_back(hold(ROOT), found)
    shutil.rmtree(ROOT)
    os.rename(found, ROOT)


def begin():
    if KIND == "signal":
        timer = threading.Timer(AT, os.kill, (os.getpid(), PLAN["signal"]))
        timer.daemon = True
        timer.start()
        return
    if KIND == "power":  # what was there before is on the disk
        for folder, _, files in os.walk(ROOT):
            remember(folder)
            for name in files:
                remember(os.path.join(folder, name))
    if KIND == "count":
        atexit.register(lambda: (HERE / "count.json").write_text(json.dumps(calls)))
    os.fsync = synced
    builtins.open = io.open = opened
    sys.addaudithook(audit)


begin()
