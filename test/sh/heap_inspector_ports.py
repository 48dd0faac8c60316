#!/usr/bin/env python3
# descry heap alloc --inspector of a program with several ports that its command line names as an inspector's, and that never answer: one deadline
# holds for all of them, and the first ^C ends the search. So it ends the wait for the answer to a method. Many ports and many arguments are one
# look at each.
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

# answers as an inspector until a method is called
SILENT = """
import socket, sys
port = socket.create_server(("127.0.0.1", 0))
print(port.getsockname()[1], flush=True)
path = "0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e"
text = b'[{"id":"%s","webSocketDebuggerUrl":"ws://127.0.0.1/%s"}]' % (path.encode(), path.encode())
kept = []
while True:
    c = port.accept()[0]
    kept.append(c)
    asked = b""
    while b"\\r\\n\\r\\n" not in asked:
        asked += c.recv(4096)
    if b"/json/list" in asked:
        c.sendall(b"HTTP/1.0 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(text) + text)
        continue
    c.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
    c.recv(1)
    print("called", flush=True)
"""
STARTS = """
import os, socket, sys
free = socket.create_server(("127.0.0.1", 0))
port = free.getsockname()[1]
free.close()
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1].replace('("127.0.0.1", 0)', '("127.0.0.1", %d)' % port), "--inspect=%d" % port])
"""
p = kill_at_end(subprocess.Popen([sys.executable, "-c", STARTS, SILENT], stdout=subprocess.PIPE, text=True))
check(p.stdout.readline().strip().isdigit(), "the port")
d = kill_at_end(subprocess.Popen([DESCRY, "heap", "alloc", "--inspector", "-p", str(p.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
check(p.stdout.readline() == "called\n", "the method")
d.send_signal(signal.SIGINT)
said = d.communicate(timeout=60)[0]
check(d.returncode == 1 and "interrupted" in said, "a method", d.returncode, said)
p.kill()

MANY = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
ports = []
try:
    while len(ports) < 3000:
        ports.append(socket.create_server(("127.0.0.1", 0)))
except OSError:
    pass
print(len(ports), flush=True)
time.sleep(1000)
"""
p = kill_at_end(subprocess.Popen([sys.executable, "-c", MANY, *["a"] * 200000], stdout=subprocess.PIPE, text=True))
check(int(p.stdout.readline()) > 500, "the ports")
r = subprocess.run([DESCRY, "heap", "alloc", "--inspector", "-p", str(p.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                   timeout=60)
check(r.returncode == 1 and ("SIGUSR1" in r.stdout or "Node.js" in r.stdout), "many ports", r.returncode, r.stdout)
done()
