"""Shared by tests in Python: checks go on after a failure, and the exit code reports it."""
import atexit
import os
import sys

failures = 0
_started = []


def _end_all():
    for p in _started:
        p.kill()
        p.wait()


def kill_at_end(p):
    """Lets a process (subprocess.Popen) end with the test, before the test removes its files. Returns it."""
    if not _started:
        atexit.register(_end_all)  # what is registered last is called first
    _started.append(p)
    return p


def skip(why):
    print(why)
    sys.stdout.flush()
    os._exit(77)


def check(good, *what):
    global failures
    if not good:
        failures += 1
        print("FAILED:", *what)
    return good


def failed():
    """Has a check failed so far?"""
    return failures > 0


def done():
    sys.stdout.flush()
    sys.exit(1 if failures else 0)
