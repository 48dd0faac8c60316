"""Shared by tests in Python: checks go on after a failure, and the exit code reports it."""
import os
import sys

failures = 0


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
