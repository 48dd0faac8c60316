#!/usr/bin/env python3
# A command's children, and theirs, without the kernel's engine: every kind of probe sees them as the kernel does, or descry reports this, with
# -q too. As root without bpf(2), and as an ordinary user. The test compares each answer with the command's own work.
# serial
import ctypes
import struct
from live import *

libc = ctypes.CDLL(None, use_errno=True)
for_anybody()
BPF, PERF = 321, 298


def refuse(*calls):
    """These system calls are EPERM from here on: seccomp, which stays over exec."""
    for nr in calls:
        code = b"".join(struct.pack("HBBI", *i) for i in ((0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))
        buf = ctypes.create_string_buffer(code)
        prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(buf)))
        assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0


def nobody(*calls):
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    refuse(*calls)


USERS = (lambda: refuse(BPF), "root"), (nobody, "an ordinary user"), (lambda: nobody(PERF), "an ordinary user without perf events")


def script(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


FIFO = os.path.join(TMP, "fifo")
os.mkfifo(FIFO)
os.chmod(FIFO, 0o666)


def waits_traced():
    """Does a cat wait for FIFO, with a tracer's memory in it?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                if f.read().split("\0")[:2] != ["cat", FIFO]:
                    continue
            with open("/proc/%s/maps" % pid) as f:
                return "/memfd:descry" in f.read()
        except OSError:
            pass
    return False


def held(started):
    """A command whose cat waits for FIFO, which is opened and closed when the tracer is there: it may come late to a call of
    execve(2) (doc/inproc.md), and traces the program from then on."""
    while started[1].poll() is None:
        try:
            if waits_traced() or time.monotonic() - started[2] > 30:
                os.close(os.open(FIFO, os.O_WRONLY | os.O_NONBLOCK))
                break
        except OSError:
            pass # it has not opened it yet
        time.sleep(0.01)
    return finish(started)


# sh runs sh, which runs cat: a grandchild
child = script("child.sh", "cat /etc/passwd >/dev/null\n:\n")
waits = script("waits.sh", "cat %s /etc/passwd >/dev/null\n:\n" % FIFO)
parent = script("parent.sh", "sh %s\n:\n" % waits)
burn = script("burn.sh", "i=0\nwhile [ $i -lt 400000 ]; do i=$((i+1)); done\n:\n")
burns = script("burns.sh", "sh %s\nsh -c 'sh %s; :'\n:\n" % (burn, burn))
for who, name in USERS:
    opens = 'syscall::openat:entry /progenyof($target) && copyinstr(arg1) == "/etc/passwd"/ { @[execname] = count(); }'
    r = held(start("-qn", opens, c="sh " + parent, preexec_fn=who))
    check(r.rc == 0 and r.table() == [(("cat",), 1)], name + ": a grandchild's system call", r)
    said = [line for line in r.err.splitlines() if "probes were off while it started" not in line]
    check(len(said) == 1 and "from inside the command and the programs that it starts" in r.err and "dynamic linker" in r.err, name + ": said with -q", r)
    r = held(start("-qn", 'proc:::exec-success /progenyof($target)/ { @[execname] = count(); }', "-x", "engine=inproc", "-x", "follow", c="sh " + parent, preexec_fn=who))
    check(r.rc == 0 and (("cat",), 1) in r.table(), name + ": a grandchild's exec", r)

    # Samples of children that have ended have names.
    r = finish(start("profile", "--folded", "--pid", "-c", "sh " + burns, preexec_fn=who))
    stacks = [line.rsplit(" ", 1)[0].split(";") for line in r.lines()]
    check(r.rc == 0 and len({s[0] for s in stacks}) >= 2 and {s[0].split("-")[0] for s in stacks} == {"sh"}, name + ": two processes burn", r)
    check(all("[unknown]" not in s for s in stacks) and any("__libc_start_main" in s for s in stacks), name + ": names", r)

    # Probes of a process are that process's alone, as with the kernel's engine; with -x follow they are its children's too.
    both = 'pid$target:libc:write:entry { @[pid == $target ? "self" : "child"] = count(); } syscall::write:entry /progenyof($target)/ { @s[pid == $target ? "own" : "others"] = count(); }'
    forks = script("forks.sh", "(echo a; echo b)\n(echo c)\necho d\n")
    for follow in (), ("-x", "follow"):
        r = finish(start("-qn", both, *follow, c="sh " + forks, preexec_fn=who))
        rows = dict(r.table())
        check(rows.get(("own",)) == 1 and rows.get(("others",)) == 3, name + ": whose system calls", r)
        check(rows.get(("self",)) == 1 and rows.get(("child",)) == (3 if follow else None), name + ": whose functions", follow, r)

    # A process that runs already: its children only on request, and this is reported.
    loop = subprocess.Popen(["sh", "-c", "while :; do sh %s; done" % child], preexec_fn=who)
    more = ' tick-%s { exit(0); }'
    r = finish(start("-qn", opens + more % "500ms", "-p", str(loop.pid), preexec_fn=who))
    check(r.rc == 0 and "without the programs that they start" in r.err and len(r.err.splitlines()) == 1, name + ": children are not seen, and it is said", r)
    r = finish(start("-qn", opens.replace("count(); }", "count(); exit(0); }") + more % "20s", "-x", "follow", "-p", str(loop.pid), preexec_fn=who))
    check(r.rc == 0 and (("cat",), 1) in r.table() and "from now on" in r.err, name + ": children from now on", r)
    loop.kill()
    loop.wait()

# The interpreter gets events of processes late: both processes wait until it has read their names.
go = script("go.sh", "head -c 1 %s.1 >/dev/null\nsh %s\n:\n" % (FIFO, script("cats.sh", "cat %s.2 >/dev/null\n:\n" % FIFO)))
for n in "12":
    os.mkfifo(FIFO + "." + n)
d = ('proc:::exec-success /progenyof($target)/ { @[execname, curthread->real_parent->real_parent->tgid == $target] = count(); } '
     'proc:::exec-success /progenyof($target) && execname == "head"/ { system("echo >%s.1"); } '
     'proc:::exec-success /progenyof($target) && execname == "cat"/ { system("echo >%s.2"); }' % (FIFO, FIFO))
r = finish(start("-x", "engine=interp", "-wqn", d, c="sh " + go))
if "process connector" not in r.err:
    check(r.rc == 0 and (("cat", "1"), 1) in r.table() and (("head", "0"), 1) in r.table(), "a grandchild in the interpreter", r)
done()
