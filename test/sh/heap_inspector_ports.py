#!/usr/bin/env python3
# descry heap alloc --inspector of a program with several ports that its command line names as an inspector's, and that never answer: one deadline
# holds for all of them, and the first ^C ends the search.
# covers: heap alloc --inspector
import signal

from live import *

# The program listens, and then executes itself with the ports in its command line.
EXECS = """
import os, socket, sys
ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
for p in ports:
    p.set_inheritable(True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], " ".join(str(p.fileno()) for p in ports), *("--inspect=%d" % p.getsockname()[1] for p in ports)])
"""
WAITS = """
import selectors, socket, sys
s = selectors.DefaultSelector()
for fd in sys.argv[1].split():
    s.register(socket.socket(fileno=int(fd)), selectors.EVENT_READ)
print("ready", flush=True)
kept = []
while True:
    for key, _ in s.select():
        kept.append(key.fileobj.accept())
        print("asked", flush=True)
"""
for ends in True, False:
    p = kill_at_end(subprocess.Popen([sys.executable, "-c", EXECS, WAITS], stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", "the program")
    d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--inspector", "-p", str(p.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    check(p.stdout.readline() == "asked\n", "the first port")
    if ends:
        d.send_signal(signal.SIGINT)
    said = d.communicate(timeout=100)[0]
    check(d.returncode == 1 and ("interrupted" in said if ends else "SIGUSR1" in said or "Node.js" in said), "ends", ends, d.returncode, said)
    p.kill()
    rest = p.communicate()[0]
    check(rest == "", "another port was asked", ends, rest)
done()
