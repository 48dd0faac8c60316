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

# Killed in the middle of attaching or detaching uprobes in a library's many functions and in USDT probes: the kernel finishes, so
# that no breakpoint stays in the text, and no semaphore stays raised.
def library(pid):
    """The place of libc's text in the process."""
    ends = [line.split()[0].split("-") for line in open("/proc/%d/maps" % pid) if re.search(r"r-xp .*/libc[.-]", line)]
    return int(ends[0][0], 16), int(ends[0][1], 16)


def memory(pid, lo, hi):
    with open("/proc/%d/mem" % pid, "rb") as f:
        f.seek(lo)
        return f.read(hi - lo)


def semaphores(pid):
    base = int(open("/proc/%d/maps" % pid).readline().split("-")[0], 16)
    places = [base + int(line.split()[0], 16) for line in sh("nm " + USDT).stdout.splitlines() if line.endswith("_semaphore")]
    return [memory(pid, a, a + 2) for a in places]


def killed_amid(pid, phase, n):
    """Kills descry when some breakpoints are there, after ^C when some are gone; n: a little later."""
    lo, hi = library(pid)
    clean, calm = memory(pid, lo, hi), semaphores(pid)
    check(calm and not any(map(any, calm)), "the semaphores are there", calm)
    s = start("-q", "-p", str(pid), "-x", "engine=kernel", "-n", "pid$target:libc.so.6::entry { @ = count(); } tracee$target::: { @u = count(); }"
              "BEGIN { printf(\"on\\n\"); }")
    if phase == "attach":
        check(until(lambda: memory(pid, lo, hi) != clean), "breakpoints come", s[0])
    else:
        check(s[1].stdout.readline() == b"on\n", "it is attached", s[0])
        full = memory(pid, lo, hi)
        check(full != clean and any(map(any, semaphores(pid))), "it traces", s[0])
        s[1].send_signal(signal.SIGINT)
        check(until(lambda: memory(pid, lo, hi) != full), "breakpoints go", s[0])
    for _ in range(n):
        memory(pid, lo, hi)
    s[1].kill()
    s[1].communicate()
    left = lambda: sum(x != y for x, y in zip(memory(pid, lo, hi), clean))
    check(until(lambda: memory(pid, lo, hi) == clean), "breakpoints stay", phase, n, left())
    check(until(lambda: semaphores(pid) == calm), "semaphores stay raised", phase, n, semaphores(pid))


tracee = subprocess.Popen([USDT, "0"], stdout=subprocess.DEVNULL)
if sh("nm %s | grep _semaphore" % USDT).stdout:
    check(until(lambda: len(library(tracee.pid)) == 2), "it has begun")
    for n in range(6):
        killed_amid(tracee.pid, "attach" if n % 2 else "detach", n)
else:
    print("note: built without sys/sdt.h: no test of semaphores")
check(not dead(tracee), "it lives on")
tracee.kill()
tracee.communicate()

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
