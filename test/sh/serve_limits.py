#!/usr/bin/env python3
# descry serve on a loopback address: connections that are half open, slow, idle or abandoned, streams that were
# closed, too many from one address, requests that are too large: no other client is locked out. Requests of other
# sites' pages are refused. Things that a page may not do.
# serial
from served import *
import shutil
import tempfile
import threading
import time

ENGINE = ["-q", "-x", "engine=interp"]


def page_comes(s, what, source="127.0.0.1"):
    """Requests the page as a browser does, and receives it."""
    try:
        with s.socket(source, 20) as c:
            c.sendall(s.head(""))
            answer = c.makefile("rb").readline()
    except OSError as e:
        answer = str(e)
    return check(b"200" in answer if isinstance(answer, bytes) else False, what, answer)


def ended(c, seconds):
    """The server ends this connection."""
    c.settimeout(seconds)
    try:
        while c.recv(65536):
            pass
    except (TimeoutError, socket.timeout):
        return False
    except OSError:
        pass
    return True


def until(fn, seconds=60):
    end = time.monotonic() + seconds
    while not fn() and time.monotonic() < end:
        time.sleep(0.05)
    return fn()


s = Served(*ENGINE, "-n", "BEGIN { @done = count(); exit(0); }")
check(s.ask("/%s/" % s.token)[0].status == 200, "the page")

# Connections that send nothing, half a request, or a request without the token and then nothing.
for what, text in (("silent", b""), ("half", s.head("")[:40]), ("idle", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                   ("idle with the token", s.head("none"))):
    held = []
    for i in range(300):
        c = s.socket()
        c.sendall(text)
        held.append(c)
    page_comes(s, "while 300 connections are " + what)
    for c in held:
        c.close()

# Slow: a byte now and then does not keep a connection for ever.
slow, alive = s.socket(), True
head = s.head("", "GET", "X-Slow: " + "x" * 5000)


def drip():
    for i in range(len(head)):
        try:
            slow.sendall(head[i:i + 1])
        except OSError:
            return
        time.sleep(0.02)


threading.Thread(target=drip, daemon=True).start()
check(ended(slow, 45), "a request that takes minutes is ended")

# Pages that were closed after the end of the program leave their places; 120 reloads.
for i in range(120):
    c, status, event = s.stream()
    if not check(status == 200, "reload %d" % i, status):
        break
    check(event()["type"] == "hello", "it is told")
    c.shutdown(socket.SHUT_RDWR)
    c.close()
open_now = []
for i in range(40):
    c, status, event = s.stream()
    open_now.append(c)
    if status != 200:
        break
check(8 <= i < 40 and status == 503, "an address has a limit", i, status)
c, status, event = s.stream("127.0.0.2")
check(status == 200 and event()["type"] == "hello", "another address has its own", status)
page_comes(s, "a page beside all these")
for c in open_now:
    c.close()
check(until(lambda: s.stream()[1] == 200), "closed ones leave their places")

# Too large: the head, and a body without the token, are not read to the end.
with s.socket() as c:
    try:
        c.sendall(b"GET /%s/ HTTP/1.1\r\nHost: x\r\n" % s.token.encode() + b"X-Long: " + b"x" * (4 << 20) + b"\r\n\r\n")
    except OSError:
        pass
    check(ended(c, 30), "a head of 4 MB")
sent = 0
with s.socket() as c:
    c.sendall(b"POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
    try:
        while sent < 256 << 20:
            sent += c.send(b"x" * 65536)
    except OSError:
        pass
check(sent < 64 << 20, "a body of a stranger", sent)
sent = 0
with s.socket() as c:
    c.sendall(s.head("run", "POST", "X-Descry: 1", "Transfer-Encoding: chunked"))
    try:
        while sent < 256 << 20:
            c.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            sent += 65536
    except OSError:
        pass
check(sent < 64 << 20, "a body without end", sent)
page_comes(s, "after all that")
s.end()
check(s.process.returncode == 0, "it ends with 0", s.process.returncode)

# Other sites' pages: a browser's headers about them, and names that another server resolves to this machine.
s = Served("--allow-d", *ENGINE)
port = s.host.split(":")[1]
run, events = "/%s/run" % s.token, "/%s/events" % s.token
for more in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
             {"Host": "evil.example:" + port}, {"Host": "127.0.0.1.evil.example"}, {"Host": ""}, {"Host": "localhost:x"}):
    r, text = s.ask(run, "POST", "BEGIN { exit(0); }", X_Descry="1", **more)
    check(r.status == 403, "run", more, r.status, text)
    r, text = s.ask(run + "x", **more)  # anything but the page itself: nothing is read across sites
    check(r.status == 403, "read", more, r.status, text)
r, text = s.ask("/%s/" % s.token, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
check(r.status == 200, "a link to the page", r.status)
for host in (s.host, "localhost:" + port, "127.0.0.1:8000", "LOCALHOST:1", "[::1]:1"):
    r, text = s.ask(run, "POST", "BEGIN { exit(0); }", X_Descry="1", Host=host, Origin="http://" + host, Sec_Fetch_Site="same-origin")
    check(r.status == 200, "the page, also at the end of a tunnel", host, r.status, text)
r, text = s.ask(run, "POST", "/*" + "x" * (1 << 20) + "*/ BEGIN { exit(0); }", X_Descry="1")
check(r.status == 413, "a program that is too long", r.status, text)
s.end()

# Changing this machine needs -w of the person who started the server. A pragma of the page is no substitute.
made = os.path.join(tempfile.mkdtemp(prefix="descry-serve-"), "made")
atexit.register(shutil.rmtree, os.path.dirname(made), True)
SYSTEM = 'BEGIN { system("touch %s"); exit(0); }' % made


def run_on_page(s, program):
    """Sends a program. Returns the messages until it has ended."""
    c, status, event = s.stream()
    e = event()
    while not (e["type"] == "tick" and not e["running"]):  # the empty run before
        e = event()
    r, text = s.ask("/%s/run" % s.token, "POST", program, X_Descry="1")
    check(r.status == 200, "it is taken", r.status, text)
    lines = []
    while True:
        e = event()
        lines += [line[1] for line in e.get("lines", [])]
        if e["type"] == "tick" and not e["running"]:
            c.close()
            return "\n".join(lines)


for argv, allowed in (([], False), (["-w"], True), (["-x", "destructive"], True)):
    s = Served("--allow-d", *argv, *ENGINE)
    for program, tag in (("#pragma D option destructive\n" + SYSTEM, "D_PRAGMA_OPTSET"), (SYSTEM, "not allowed"),
                         ("#pragma D option destructive=yes\nBEGIN { exit(0); }", "D_PRAGMA_OPTSET"),
                         ('BEGIN { freopen("%s"); printf("x"); exit(0); }' % made, "not allowed"),
                         ("BEGIN { setopt(\"destructive\"); exit(0); }", "when tracing is active")):
        said = run_on_page(s, program)
        refused = tag in said
        if "setopt" in program:
            check(refused, "setopt()", argv, said)
            continue
        check(refused != allowed, "destructive", argv, program, said)
        check(refused or not said, "nothing else is wrong", argv, program, said)
        if made in program:
            check(os.path.exists(made) == allowed, "what it did", argv, program)
        if os.path.exists(made):
            os.unlink(made)
    s.end()

# The engine is the server's to choose.
s = Served("--allow-d", *ENGINE)
for name in "inproc", "kernel":
    said = run_on_page(s, "#pragma D option engine=%s\nBEGIN { exit(0); }" % name)
    check(("D_PRAGMA_OPTSET" in said) == (name not in ENGINE[-1]), "the page chooses the engine", name, ENGINE, said)
s.end()

# What is for the user at the terminal is not the page's to set: a dump of core ends the server.
s = Served("--allow-d", *ENGINE)
for name in "core", "debug", "tree=7", "verbose":
    said = run_on_page(s, "#pragma D option %s\nBEGIN { exit(0); }" % name)
    check("D_PRAGMA_OPTSET" in said, "an option for the terminal", name, said)
s.end()

# Bound to every address, it answers to addresses and to this machine's name, to no other.
s = Served("--bind", "0.0.0.0", *ENGINE, "-n", "BEGIN { exit(0); }")
port = s.host.split(":")[1]
s.host = "127.0.0.1:" + port
for host, status in (("evil.example:" + port, 403), ("127.0.0.1:" + port, 200), (socket.gethostname() + ":" + port, 200), ("192.0.2.1", 200)):
    r, text = s.ask("/%s/" % s.token, Host=host)
    check(r.status == status, "every address", host, r.status)
s.end()
done()
