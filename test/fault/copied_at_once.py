#!/usr/bin/env python3
# descry leaks --fork of one process by three at once, and while the process is stopped and continued again and again: it lives, has its signal
# mask and its threads, and the text that it had.
# DESCRY_TORTURE=N: so many rounds; 8 if not given.
# serial
import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from checks import *

DESCRY = os.environ["DESCRY"]
ROUNDS = int(os.environ.get("DESCRY_TORTURE", "8"))
TMP = tempfile.mkdtemp(prefix="descry-copied-")
atexit.register(shutil.rmtree, TMP, True)
SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static void *keep[4000];
static volatile int ended;
static void on_term(int sig) { (void)sig; ended = 1; }
int main(void)
{
	for (int i = 0; i < 4000; i++)
		keep[i] = memset(malloc(16000), 1, 16000);
	signal(SIGTERM, on_term);
	puts("ready");
	fflush(stdout);
	while (!ended)
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	return 7;
}
"""
ENDS = 30 # seconds


def begin():
    p = subprocess.Popen([os.path.join(TMP, "copied")], stdout=subprocess.PIPE)
    atexit.register(p.kill)
    p.stdout.readline()
    return p


def state(p):
    with open("/proc/%d/status" % p.pid) as f:
        status = [line for line in f if line.startswith(("SigBlk", "Threads", "TracerPid"))]
    ends = []
    with open("/proc/%d/maps" % p.pid) as f, open("/proc/%d/mem" % p.pid, "rb") as mem:
        for line in f:
            if "r-xp" in line and "/" in line:
                mem.seek(int(line.split()[0].split("-")[1], 16) - 512)
                ends.append(mem.read(512))
    return status, ends


def leaks(p):
    return subprocess.run([DESCRY, "leaks", "--fork", "--json", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def as_before(p, before, what):
    """At last: one look alone takes away what the others left."""
    limit = time.monotonic() + ENDS
    r = leaks(p)
    while p.poll() is None and state(p) != before and time.monotonic() < limit:
        time.sleep(0.05)
        r = leaks(p)
    if not check(p.poll() is None, what, "it lives", p.poll()):
        return
    check(r.returncode == 0, what, r)
    check(state(p)[0] == before[0], what, before[0], state(p)[0])
    check(state(p)[1] == before[1], what, "its text")
    p.send_signal(signal.SIGTERM)
    try:
        check(p.wait(ENDS) == 7, what, "it ends by SIGTERM", p.returncode)
    except subprocess.TimeoutExpired:
        check(False, what, "SIGTERM has no effect")


with open(os.path.join(TMP, "copied.c"), "w") as f:
    f.write(SOURCE)
if subprocess.run(["cc", "-O1", "-fno-builtin", "-o", os.path.join(TMP, "copied"), os.path.join(TMP, "copied.c")]).returncode:
    skip("no C compiler")

# three at once
p = begin()
before = state(p)
looks = []


def look_again_and_again():
    for _ in range(ROUNDS):
        if p.poll() is None:
            looks.append(leaks(p))


threads = [threading.Thread(target=look_again_and_again) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
heaps = [json.loads(r.stdout.splitlines()[0]) for r in looks if r.returncode == 0]
others = [r.stderr for r in looks if r.returncode and "is being traced by" not in r.stderr]
check(not others, "at once", others)
if not any(h["forked"] for h in heaps):
    skip("it cannot be copied: %s" % [h["not_forked"] for h in heaps])
as_before(p, before, "at once")

# stopped and continued
p = begin()
before = state(p)
over = threading.Event()


def stop_and_continue():
    pause = 0
    while not over.is_set() and p.poll() is None:
        os.kill(p.pid, signal.SIGSTOP)
        os.kill(p.pid, signal.SIGCONT)
        pause = (pause + 1) % 9
        time.sleep(pause / 1000)


t = threading.Thread(target=stop_and_continue)
t.start()
for i in range(ROUNDS * 3):
    r = leaks(p)
    if not check(p.poll() is None and r.returncode == 0, "stopped", i, r, p.poll()):
        break
over.set()
t.join()
as_before(p, before, "stopped")

# it stays stopped when the last signal was SIGSTOP
p = begin()
before = state(p)
for i in range(ROUNDS):
    d = subprocess.Popen([DESCRY, "leaks", "--fork", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(i * 0.002)
    os.kill(p.pid, signal.SIGSTOP)
    check(d.wait(ENDS) == 0, "a stop", d.returncode)
    with open("/proc/%d/stat" % p.pid) as f:
        now = f.read().rsplit(")", 1)[1].split()[0]
    check(now == "T", "it stays stopped", i, now)
    os.kill(p.pid, signal.SIGCONT)
as_before(p, before, "a stop")
done()
