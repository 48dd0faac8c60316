#!/usr/bin/env python3
# descry killed by SIGKILL in each of its phases: the traced program lives on, and nothing stays in the kernel.
# serial
from live import *


def programs():
    return {p["id"] for p in json.loads(sh("bpftool prog show --json").stdout or "[]")}


def held():
    """Programs that a process has a descriptor of, itself or by a link: not left over, but in use."""
    text = sh("cat /proc/[0-9]*/fdinfo/* 2>/dev/null").stdout
    return {int(n) for n in re.findall(r"^prog_id:\s*(\d+)", text, re.M)}


if not shutil.which("bpftool"):
    skip("needs bpftool to see what is left in the kernel")
before = programs()
PROGRAM = ("pid$target::work_step:entry { @ = count(); } pid$target::work_step:return { @r = count(); } "
           "syscall:::entry { @s[probefunc] = count(); } profile-97 { @p = count(); } END { printf(\"end\\n\"); }")


def dead(proc):
    """Gone, or a zombie."""
    try:
        return open("/proc/%d/stat" % proc.pid).read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def is_stopped(pid):
    """By a signal or a tracer."""
    try:
        return open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[0] in "tT"
    except OSError:
        return False


def steps(tracee):
    tracee.send_signal(signal.SIGTERM)
    out, _ = tracee.communicate(timeout=30)
    return numbers(out.decode()).get("steps", 0)


def until(fn, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fn():
            return True
        time.sleep(0.01)
    return False


# -p: while it compiles, attaches, traces, detaches (after ^C)
for phase, delay in [("ms", ms / 1000) for ms in (1, 3, 6, 10, 15, 20, 30, 45, 70, 100, 200)] + [("detach", 0.0), ("detach", 0.002)]:
    tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
    tracee.stdout.readline()
    s = start("-q", "-p", str(tracee.pid), "-n", PROGRAM)
    if phase == "detach":
        time.sleep(0.4)
        s[1].send_signal(signal.SIGINT)
    time.sleep(delay)
    s[1].kill()
    s[1].communicate()
    time.sleep(0.05)
    check(not dead(tracee), "the traced program died with its tracer", phase, delay)
    check(steps(tracee) > 0 and tracee.returncode == 0, "the traced program ran to its end", phase, delay, tracee.returncode)

# the breakpoints are out of the text: its bytes are those of the file
tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
tracee.stdout.readline()


def text_bytes():
    symbol = [line.split() for line in sh("nm " + LIVE).stdout.splitlines() if line.endswith(" work_step")][0]
    base = int(open("/proc/%d/maps" % tracee.pid).readline().split("-")[0], 16)
    with open("/proc/%d/mem" % tracee.pid, "rb") as f:
        f.seek(base + int(symbol[0], 16))
        return f.read(16)


clean = text_bytes()
s = start("-q", "-p", str(tracee.pid), "-n", PROGRAM)
check(until(lambda: text_bytes() != clean), "a probe shows in the text while it is on")
s[1].kill()
s[1].communicate()
check(until(lambda: text_bytes() == clean), "the text is restored after kill -9", text_bytes(), clean)
check(steps(tracee) > 0, "and runs")

# -c: the command may die with the tracer that holds it before its first instruction, but never stays stopped
for ms in 2, 8, 15, 25, 40, 80, 200:
    marker = "descry-fault-%d-%d" % (os.getpid(), ms)
    s = start("-q", "-n", PROGRAM, c="%s wait %s" % (LIVE, marker))
    time.sleep(ms / 1000)
    s[1].kill()
    s[1].stdout.close()
    s[1].stderr.close()
    s[1].wait()
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            if marker.encode() not in open("/proc/%s/cmdline" % pid, "rb").read():
                continue
            check(until(lambda: not is_stopped(pid)), "the command stays stopped", ms)
            os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass

check(until(lambda: not programs() - before - held()), "programs left in the kernel", programs() - before - held())
done()
