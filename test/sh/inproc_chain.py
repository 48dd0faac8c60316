#!/usr/bin/env python3
# Children of a traced process fork one another without end (tracee/forks.c, chain): descry nevertheless ends at ^C, and its watchdog
# restores the children that are left.
# serial
from live import *

FORKS = os.path.join(BUILD, "test", "tracee_forks")
SECS = 60


def until(what, secs=SECS):
    end = time.monotonic() + secs
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def mapped(pid):
    try:
        return "/memfd:descry-" in open("/proc/%s/maps" % pid).read()
    except OSError:
        return False


def children(pid):
    """Returns the processes that it has started."""
    found = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = open("/proc/%s/stat" % other).read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found.append((int(other), name))
    return found


def left():
    """Returns the living processes of the chain's session."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            rest = open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(rest[3]) == proc.pid and rest[0] not in "ZX":
            found.append(pid)
    return found


proc = subprocess.Popen([FORKS, "chain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
check(proc.stdout.readline() == b"ready\n", "it is ready")
tracer = tracing("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:work:entry { @ = count(); }", "-p", str(proc.pid))
check(mapped(proc.pid), "it is traced")
watchdogs = [pid for pid, name in children(tracer[1].pid) if name == "descry-watch"]
proc.stdin.write(b"\n")
proc.stdin.flush()
check(proc.stdout.readline() == b"chain\n", "the chain has begun")
tracer[1].send_signal(signal.SIGINT)
r = finish(tracer)
check(r.rc == 0, "descry ends while the chain goes on", r)
check(left() != [str(proc.pid)] and left(), "the chain goes on")
check(until(lambda: not mapped(proc.pid)), "the process is restored", r)
proc.stdin.close()
check(until(lambda: not left()), "the chain ends with its input", left())
proc.wait()
check(len(watchdogs) == 1 and until(lambda: not os.path.exists("/proc/%d" % watchdogs[0])), "so does the watchdog", watchdogs)
done()
