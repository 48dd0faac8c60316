"""Shared by the live tests: runs descry on the machine's kernel, and parses its output. A test is test/sh/X.py, which
imports this; its checks go on after a failure, and the exit code says whether all were good."""
import atexit
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from checks import *

DESCRY = os.environ["DESCRY"]
BUILD = os.environ["BUILD"]
LIVE = os.path.join(BUILD, "test", "tracee_live")
USDT = os.path.join(BUILD, "test", "tracee_usdt")
TMP = tempfile.mkdtemp(prefix="descry-live-")
atexit.register(shutil.rmtree, TMP, True)


def near(got, want, share, what):
    return check(abs(got - want) <= want * share, "%s: %s, expected %s within %d%%" % (what, got, want, share * 100))


def for_anybody(*more):
    """Copies of descry and of the programs `more` that any user may run, wherever the tree lies; descry is run from there."""
    global DESCRY
    os.chmod(TMP, 0o755)
    copies = [shutil.copy(f, TMP) for f in (DESCRY, *more)]
    for f in copies:
        os.chmod(f, 0o755)
    DESCRY = copies[0]
    return copies


class Run:
    def __init__(self, argv, rc, out, err, secs):
        self.argv, self.rc, self.out, self.err, self.secs = argv, rc, out, err, secs

    def __str__(self):
        return "$ %s\nexit: %s\n%s%s" % (shlex.join(self.argv), self.rc, self.out[-3000:], self.err[-3000:])

    def lines(self):
        return [line for line in self.out.splitlines() if line.strip()]

    def json(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def aggs(self, name=""):
        """--json: {keys: value} of an aggregation; one key stands alone."""
        rows = {}
        for r in self.json():
            if r["type"] == "aggregation" and r["name"] == name:
                keys = tuple(json.dumps(k) if isinstance(k, (list, dict)) else k for k in r["keys"])
                rows[keys[0] if len(keys) == 1 else keys] = r.get("value", r.get("distribution"))
        return rows

    def table(self):
        """Text: [(keys, value)] of count() and the like; the layout is checked on the way."""
        rows = []
        for line in self.out.splitlines():
            m = re.match(r"^  (\S.*?|) +(-?\d+)$", line)
            if m:
                rows.append((tuple(re.split(r"  +", m.group(1).strip())), int(m.group(2))))
        return rows


def start(*args, c=None, env=None, **more):
    argv = [DESCRY] + list(args) + (["-c", c] if c else [])
    objects = None
    if "--json" in args and "-o" not in args and c:
        # The command writes to the same pipe and may come between: a file of its own for the objects.
        fd, objects = tempfile.mkstemp(prefix="descry-json-")
        os.close(fd)
        argv += ["-o", objects]
    proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=dict(os.environ, **(env or {})), **more)
    proc.objects = objects
    return argv, proc, time.monotonic()


def descendants(pid):
    """Its children and theirs, without descry's own (its watchdog ends by itself)."""
    found = []
    for child in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open("/proc/%d/stat" % child) as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[1]) == pid and name != "descry-watch":
            found += [child] + descendants(child)
    return found


def finish(started, timeout=120):
    argv, proc, begun = started
    try:
        out, err = proc.communicate(timeout=timeout)
        rc = proc.returncode
    except subprocess.TimeoutExpired:
        below = descendants(proc.pid)
        proc.kill()
        for pid in below: # what waits would keep the pipes open
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        out, err = proc.communicate()
        rc = "timeout"
    if proc.objects:
        with open(proc.objects, "rb") as f:
            out += f.read()
        os.unlink(proc.objects)
    return Run(argv, rc, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - begun)


def descry(*args, c=None, rc=0, **more):
    """Runs it to the end; another exit code than rc, or a word of the verifier's, is a failure."""
    r = finish(start(*args, c=c, **more))
    check(r.rc == rc and "D_VERIFIER" not in r.err and "rejects" not in r.err, "exit %s expected\n%s" % (rc, r))
    return r


def engines_here():
    """The engines that may run here; ends the test when there is none."""
    engines = [e for e in ("inproc", "kernel") if finish(start("-x", "engine=" + e, "-qn", "BEGIN { exit(0); }")).rc == 0]
    if not engines:
        skip("no engine may run here")
    return engines


def python_from_inside(python):
    """The engine that has both places of function-entry from inside. In some builds of CPython (Debian's 3.11.2-6+deb12u9) an indirect
    jump near one of them could lead into a patch. descry refuses this place in-process with the reason, and by default the kernel
    probes it in the same run."""
    r = finish(start("-x", "engine=inproc", "-n", "python$target:::function-entry { }", c=python + " -c 0"))
    check("matched 2 probes" in r.err, python, "two places", r)
    if "not enabled in-process: an indirect jump" not in r.err:
        return "inproc"
    print("note: %s: one place cannot be patched, so the kernel probes it" % python)
    return "auto"


def without_objects(text):
    """Lines of `descry calls` without the names of objects: "main->puts(", "puts@libc.so.6("."""
    return re.sub(r"(\w)@[\w.+-]+(?=\()", r"\1", re.sub(r"(?m)(^|[ \]])[\w.+-]+->(?=\w)", r"\1", text))


def ready(started, word="matched", secs=10):
    """Waits until descry has printed that it runs, and a little longer, because it prints this before it attaches."""
    proc, end, text = started[1], time.monotonic() + secs, b""
    os.set_blocking(proc.stderr.fileno(), False)
    while word.encode() not in text and time.monotonic() < end and proc.poll() is None:
        text += proc.stderr.read() or b""
        time.sleep(0.01)
    os.set_blocking(proc.stderr.fileno(), True)
    time.sleep(0.3)
    return text.decode(errors="replace")


def tracing(*args, secs=30):
    """start(), and waits until BEGIN has run: every probe is attached by then."""
    mark = tempfile.mktemp(dir=TMP)
    started = start("-w", "-n", 'BEGIN { system("touch %s"); }' % mark, *args)
    end = time.monotonic() + secs
    while not os.path.exists(mark) and time.monotonic() < end and started[1].poll() is None:
        time.sleep(0.02)
    return started


def traced_to_exit(t, *args):
    """Traces a program that goes on at each byte that it reads: one when the D program has printed a line, and another one behind descry's
    end. Returns the program's status, and what descry printed and said."""
    d = subprocess.Popen([DESCRY, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = d.stdout.readline()
    t.stdin.write(b"x")
    t.stdin.flush()
    out, said = d.communicate()
    try:
        t.stdin.write(b"x")
        t.stdin.close()
    except BrokenPipeError:
        pass
    return t.wait(), begun + out, said


def compare_folded(command, inner, outer):
    """Samples a command that says when it is ready: in stacks with both functions, the inner one stands behind the outer one."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    check(p.stdout.readline() == b"ready\n", "is ready")
    for secs in (2, 8, 32):  # until there are enough samples, on a machine as busy as it may be
        r = descry("profile", "--folded", "-q", "-t", str(secs), "-p", str(p.pid))
        folded = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in r.out.splitlines()]
        both = [(s.index(inner) > s.index(outer), n) for s, n in folded if inner in s and outer in s]
        if sum(n for ok, n in both) > 20:
            break
    p.kill()
    p.wait()
    check(sum(n for ok, n in both) > 20 and all(ok for ok, n in both), command, "folded", r.out[:2000])


def numbers(text):
    """"small 9 large 1" of the tracee -> {"small": 9, "large": 1}"""
    return {k: int(v) for k, v in re.findall(r"\b([a-z]+) (-?\d+)\b", text)}


def total(distribution):
    return sum(b["count"] for b in distribution)


def sh(command, **more):
    return subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)


def _begin():
    if os.geteuid():
        skip("needs root: uprobes and system-wide tracing")
    r = finish(start("-q", "-n", 'BEGIN { printf("here\\n"); exit(0); } tick-1s { }'), 20)
    if r.out.strip() != "here":
        skip("no tracing here: " + (r.err.strip().splitlines() or ["no output"])[-1])
    for path in (LIVE, USDT):
        if not os.path.exists(path):
            skip(path + " is not built")


_begin()
