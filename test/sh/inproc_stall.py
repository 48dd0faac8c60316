#!/usr/bin/env python3
# A traced process, of another user, holds back pages that its tracer reads in every round (userfaultfd(2) without a server): the
# tracer goes on, reacts to ^C, and reports the work that it could not do. tracee/stall.c does it; root traces.
# serial
import queue
import threading
from live import *

STALL, UID, SECS = os.path.join(BUILD, "test", "tracee_stall"), 60001, 30
if os.geteuid() != 0:
    skip("not root: cannot run a process as another user")

proc = subprocess.Popen([STALL, str(UID)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if not proc.stdout.readline():
    skip("no userfaultfd(2) here")
err = tempfile.TemporaryFile(dir=TMP)
tracer = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-n", 'pid$target:a.out:work:entry { @ = count(); } tick-1ms { printf("t\\n"); }',
                           "-p", str(proc.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err)


def said():
    err.seek(0)
    return err.read().decode(errors="replace")


def expect(word):
    line = proc.stdout.readline().decode().strip()
    check(line == word, "the process says %r, not %r" % (line, word), said())


expect("attached")
proc.stdin.write(b"\n")
proc.stdin.flush()
expect("held")
lines = queue.Queue()
reader = threading.Thread(target=lambda: [lines.put(line) for line in tracer.stdout])
reader.start()
seen = 0
try:
    while seen < 4000: # some seconds, and all that had been written before
        lines.get(timeout=SECS)
        seen += 1
except queue.Empty:
    check(False, "the tracer's clauses do not run any more, after %d rounds" % seen, said())
tracer.send_signal(signal.SIGINT)
try:
    rc = tracer.wait(SECS)
except subprocess.TimeoutExpired:
    tracer.kill()
    rc = tracer.wait()
reader.join()
check(rc in (0, 1), "descry ended with %s" % rc, said())
check(rc == 0 or "process %d" % proc.pid in said(), "it is not said what could not be done", said())
proc.stdin.close()
proc.wait(SECS)
done()
