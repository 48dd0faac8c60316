#!/usr/bin/env python3
# timeout: 600
# descry malloc record, and SIGKILL at a random instant: of the tracer, of the command, or of another process of its tree. All that was not
# killed ends as it would without descry, each file is readable up to its last block, and no process stays. DESCRY_TORTURE=N: so many
# kills, and a tally; 12 if not given.
import random

import checks

from live import *

KILLS = int(os.environ.get("DESCRY_TORTURE", "12"))
DIR = os.path.join(TMP, "d")
FILE = os.path.join(DIR, "a.dma")
RECORDED, EXECUTES, ALLOCS = (os.path.join(BUILD, "test", "tracee_" + n) for n in ("recorded", "executes", "allocs"))
STEPS = [[RECORDED, "busy", "40000"], [EXECUTES, "family"], [EXECUTES, "leaf", "50"], [RECORDED, "passed", "2000"], [EXECUTES, "system"],
         [ALLOCS, "threads"], [RECORDED, "churn", "20"]]
if os.path.exists("/usr/bin/python3"):  # waits for names of functions
    STEPS.append(["/usr/bin/python3", "-c", "for i in range(300): exec('def f%d(): return bytearray(2000)\\nx = f%d()' % (i, i))"])
MARK = "DESCRY_KILLED_TEST"
WHO = ("tracer", "command", "process")


def write(name, text):
    with open(os.path.join(TMP, name), "w") as f:
        f.write(text)
    return os.path.join(TMP, name)


INNER = write("inner.sh", "".join("%s >/dev/null 2>&1 </dev/null; echo %d $?\n" % (shlex.join(step), i) for i, step in enumerate(STEPS)) + "exit 4\n")
OUTER = write("outer.sh", "sh '%s'; echo inner $?\nexit 5\n" % INNER)
plain = sh("sh '%s'" % OUTER)
LINES = plain.stdout.splitlines()
check(plain.returncode == 5 and len(LINES) == len(STEPS) + 1 and LINES[-1] == "inner 4", "without descry", plain)


def begin(name, stacks):
    shutil.rmtree(DIR, True)
    os.mkdir(DIR)
    d = subprocess.Popen([DESCRY, "malloc", "record", *(["-k", "20"] if stacks else []), "-o", FILE, "sh", OUTER], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **{MARK: name}))
    kill_at_end(d)
    return d


def end(d):
    """The output and the errors, when all that write them have ended."""
    try:
        out, err = d.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        check(False, "processes stay", marked(d.mark))
        for pid in marked(d.mark):
            os.kill(pid, signal.SIGKILL)
        out, err = d.communicate()
    return out.splitlines(), err


def marked(name):
    """Processes of a turn."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if ("%s=%s\0" % (MARK, name)).encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def kill(d, who):
    """Kills a process. Returns false when there is none such any more."""
    if who == "tracer":
        d.kill()
        return d.wait() == -signal.SIGKILL
    below = descendants(d.pid)
    if not below:
        return False
    # its child is the command
    pid = below[0] if who == "command" else random.choice(below[1:] or below)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def read_files(i, who, killed):
    """Checks the files. Returns how many there are."""
    names = os.listdir(DIR)
    n = 0
    for name in names:
        path = os.path.join(DIR, name)
        if not check(name.startswith("a.") and name.endswith(".dma"), i, "a stray file", name) or not os.path.getsize(path):
            continue  # one that is new may still be without its head
        p = subprocess.run([DESCRY, "malloc", "report", "--json", path], capture_output=True, text=True)
        r = json.loads(p.stdout) if check(p.returncode == 0, i, who, "report", name, p.stderr) else {}
        good = r and r["damage"] is None and (r["complete"] or who == "tracer")
        # forked children free blocks of their parents; of the last pass, one thread's events may be in the file, and not another's
        if r and not r["forked"] and not r["lost"] and (who != "tracer" or r["threads"] == 1):
            good = good and r["unknown"] == r["replaced"] == 0
        check(good, i, who, "the file", name, {k: v for k, v in r.items() if not isinstance(v, list)}, p.stderr)
        n += 1
    check(n or not killed, i, who, "no file")
    return n


begun = time.monotonic()
d = begin("whole", False)
d.mark = "whole"
out, err = end(d)
SECONDS = time.monotonic() - begun
check(out == LINES and d.returncode == 5, "recorded", out, err)
check(read_files(0, "nobody", True) >= len(STEPS), "files of all")

tally, files, amid = dict.fromkeys(WHO, 0), 0, 0
for i in range(20 * KILLS):
    if sum(tally.values()) >= KILLS and min(tally.values()):
        break
    who = WHO[i % 3]
    d = begin("%d-%d" % (os.getpid(), i), i % 2)
    d.mark = "%d-%d" % (os.getpid(), i)
    time.sleep(random.random() * SECONDS)
    while not os.path.exists(FILE) and d.poll() is None:  # it has begun
        time.sleep(0.001)
    killed = kill(d, who)
    out, err = end(d)
    tally[who] += killed
    SECONDS *= 1 if killed else 0.8  # it came too late: the command had ended. The first run may have been a slow one
    amid += killed and out != LINES
    if who == "tracer":
        # it may not have started the command yet, or it may have said what is in the files
        said = [line for line in err.splitlines() if not line.startswith("descry malloc: ")]
        check(out in (LINES, []) and not said, i, "the command does not notice", out, err)
    else:
        ended = bool(out) and out[-1].startswith("inner")
        check(d.returncode == (5 if ended else 1 if "did not load" in err else 137), i, who, "the status", d.returncode, out, err)
        odd = [line for line in out if line not in LINES]
        if who == "command":  # what it has started goes on
            check(out == LINES[:len(out)] and len(out) in (len(LINES), len(LINES) - 1, 0), i, "the output", out, err)
        else:  # the shell or a parent says what became of it
            check(len(odd) <= 1 and all(re.match(r"(\d|inner) (137|1)$", line) for line in odd), i, "one step at most failed", out)
    limit = time.monotonic() + 60
    while marked(d.mark) and time.monotonic() < limit:
        time.sleep(0.01)
    check(not marked(d.mark), i, who, "processes stay", marked(d.mark))
    files += read_files(i, who, killed and bool(out))
    if checks.failures > 20:
        break
check(min(tally.values()) > 0 and sum(tally.values()) >= KILLS or checks.failures, "kills of each kind", tally)
if "DESCRY_TORTURE" in os.environ:
    print("%d kills: %s; %d of them have changed the output; %d files read; %d failures" %
          (sum(tally.values()), ", ".join("%d of the %s" % (n, w) for w, n in tally.items()), amid, files, checks.failures))
done()
