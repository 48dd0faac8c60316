#!/usr/bin/env python3
# OpenSSH's process for clients that have not logged in yet, which has a seccomp filter, traced from inside: when it is filtered already, and
# with its server from its start. The login succeeds; calls are counted.
# serial
from live import *
import pwd
import socket
import threading

for program in ("sshd", "ssh", "ssh-keygen"):
    if not shutil.which(program) and not os.path.exists("/usr/sbin/" + program):
        skip("%s is not installed (openssh-server, openssh-client)" % program)
if os.geteuid():
    skip("a server that separates privileges needs root")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
os.chmod(TMP, 0o755)
for name in ("host", "user"):
    if sh("ssh-keygen -q -t ed25519 -N '' -f %s/%s" % (TMP, name)).returncode:
        skip("ssh-keygen makes no key here")
made = not os.path.isdir("/run/sshd")
if made:
    os.makedirs("/run/sshd", 0o755)
    atexit.register(os.rmdir, "/run/sshd")


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


PORT, DOOR = free_port(), free_port()
with open(TMP + "/config", "w") as f:
    f.write("ListenAddress 127.0.0.1:%d\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            "PidFile none\nLogLevel ERROR\n" % (PORT, TMP, TMP))
USER = pwd.getpwuid(0).pw_name


def wait_for(what, condition, secs=30):
    end = time.monotonic() + secs
    while not condition():
        if time.monotonic() > end:
            check(False, "waited for", what)
            return False
        time.sleep(0.01)
    return True


def listens():
    try:
        socket.create_connection(("127.0.0.1", PORT), 1).close()
        return True
    except OSError:
        return False


def children(pid):
    try:
        return [int(p) for p in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]
    except OSError:
        return []


def descendants(pid):
    return [q for p in children(pid) for q in [p] + descendants(p)]


def filtered(pid):
    try:
        return re.search(r"^Seccomp:\s+2", open("/proc/%d/status" % pid).read(), re.M)
    except OSError:
        return False


class Door(threading.Thread):
    """Passes both sides' first lines on, and the rest when it is opened."""

    def __init__(self):
        super().__init__(daemon=True)
        self.open, self.listener = threading.Event(), socket.create_server(("127.0.0.1", DOOR))
        self.start()

    def pass_on(self, a, b, wait):
        line = b""
        while not line.endswith(b"\n"):
            line += a.recv(1)
        b.sendall(line)
        if wait:
            self.open.wait(60)
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def run(self):
        client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", PORT))
        threading.Thread(target=self.pass_on, args=(server, client, False), daemon=True).start()
        self.pass_on(client, server, True)


def login(port):
    return subprocess.Popen(["ssh", "-F", "none", "-p", str(port), "-i", TMP + "/user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                             "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", USER + "@127.0.0.1", "echo in"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


D = "pid$target:libc.so.6:read:entry,pid$target:libc.so.6:malloc:entry,pid$target:libc.so.6:write:entry { @[probefunc] = count(); @u[ustack(8)] = count(); @t = min(timestamp); } tick-10ms { printf(\"on\\n\"); }"
command = [SSHD, "-D", "-e", "-f", TMP + "/config"]

# filtered before the attach
server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
atexit.register(server.kill)
wait_for("the server", lambda: server.poll() is not None or listens())
if server.poll() is not None:
    skip("sshd does not start here: " + server.stderr.read().strip())
p = login(PORT)
o, e = p.communicate(timeout=60)
if (p.returncode, o) != (0, "in\n"):
    server.kill()
    server.wait()
    skip("no login here, untraced: " + (e.strip().splitlines() or ["nothing is said"])[-1])
wait_for("that session's end", lambda: not descendants(server.pid))


def traced_outside(*options):
    """A login whose process for those outside is traced from before its key exchange on. None: it was not found."""
    door = Door()
    client = login(DOOR)
    atexit.register(client.kill)
    if not wait_for("the process of those outside", lambda: any(filtered(p) for p in descendants(server.pid))):
        return None
    pid = next(p for p in descendants(server.pid) if filtered(p))
    out = TMP + "/out"
    if os.path.exists(out):
        os.unlink(out)
    s = start("-q", "--json", "-x", "report", "-o", out, *options, "-n", D, "-p", str(pid))
    wait_for("the attach", lambda: s[1].poll() is not None or (os.path.exists(out) and "on" in open(out).read()))
    door.open.set()
    o, e = client.communicate(timeout=60)
    check((client.returncode, o) == (0, "in\n"), "the login of one who was traced", client.returncode, o, e)
    door.listener.close()
    r = finish(s)
    r.out = open(out).read() if os.path.exists(out) else ""
    wait_for("that session's end", lambda: not descendants(server.pid))
    return r


# it may open no files, so nothing of descry can be put into it
r = traced_outside("-x", "engine=inproc")
check(r and r.rc == 1 and "Too many open files" in r.err, "from inside it is refused, with the reason", r)
if finish(start("-q", "-x", "engine=kernel", "-n", "BEGIN { exit(0); }")).rc == 0:
    r = traced_outside()
    check(r and r.rc == 0 and '"engine":"kernel"' in r.out, "the kernel's engine is taken", r)
    check(r and r.aggs().get("read", 0) > 3 and r.aggs().get("write", 0) > 3 and r.aggs().get("malloc", 0) > 20, "its calls", r)
server.terminate()
server.communicate(timeout=30)

# with its server, from its start
s = start("-q", "--json", "-x", "engine=inproc", "-x", "report", "-x", "follow", "-n", D, c=shlex.join(command))
wait_for("the server", lambda: s[1].poll() is not None or listens())
for i in range(3):
    p = login(PORT)
    o, e = p.communicate(timeout=60)
    check((p.returncode, o) == (0, "in\n"), "a login at a traced server", p.returncode, o, e)
s[1].send_signal(signal.SIGINT)
r = finish(s)
check(r.rc == 0 and r.aggs().get("read", 0) > 3 and r.aggs().get("malloc", 0) > 20, "the server's calls", r)
done()
