"""The frames of a thread, twice: by `descry stack` while SIGSTOP holds the process, and by the process itself in a handler of SIGUSR1,
which the thread runs before it goes on. So both see the same instruction. The handler writes to a file."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time

from checks import *

DESCRY = os.environ["DESCRY"]


def stack(*args):
    p = subprocess.run([DESCRY, "stack", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == 0 and not p.stderr, "exit", p.returncode, p.args, p.stderr)
    return p.stdout


def threads(text):
    """Of the output of descry stack: the number of each thread, and its lines."""
    return {int(tid): rest for tid, rest in re.findall(r"^  thread (\d+)[^\n]*\n((?:    .*\n?)*)", text, re.M)}


def threads_except(pid, own):
    """The threads of a process but an interpreter's own, whose names begin so."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            if not f.read().startswith(own):
                found.append(int(tid))
    return found


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def ended(pid):
    return state(pid) == "Z"


def wait(pid, condition, what):
    """False: the process has ended instead."""
    deadline = time.monotonic() + 60
    while not condition():
        if ended(pid):
            return False
        if time.monotonic() > deadline:
            raise SystemExit("FAILED: not in time: " + what)
        time.sleep(0.001)
    return True


def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    return wait(pid, lambda: state(pid) == "T", "the process stops")


def tgkill(pid, tid, sig):
    return ctypes.CDLL(None).syscall(234, pid, tid, int(sig))


def complete(pid, tid):
    """Is the handler of the signal done: SIGUSR1 is not blocked in the thread any more, or the thread has ended since?"""
    try:
        with open("/proc/%d/task/%d/status" % (pid, tid)) as f:
            blocked = int(re.search(r"SigBlk:\s*(\w+)", f.read()).group(1), 16)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not blocked >> (signal.SIGUSR1 - 1) & 1


def sample(pid, path, tid):
    """What descry stack prints, and what the handler has added to the file. None: the process has ended; (): the thread has."""
    if not stopped(pid):
        return None
    text = stack("-p", str(pid))
    before = os.path.getsize(path)
    gone = tgkill(pid, tid, signal.SIGUSR1) < 0
    os.kill(pid, signal.SIGCONT)
    if gone:  # it ended before the process stopped
        return ()
    task = "/proc/%d/task/%d" % (pid, tid)
    if not wait(pid, lambda: os.path.getsize(path) > before or not os.path.exists(task), "the handler begins to print"):
        return None
    if os.path.getsize(path) == before:  # it ended with the signal blocked
        return ()
    while stopped(pid) and not complete(pid, tid):
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)
    if ended(pid):
        return None
    os.kill(pid, signal.SIGCONT)
    with open(path) as f:
        f.seek(before)
        return text, f.read()
