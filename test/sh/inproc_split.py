#!/usr/bin/env python3
# One run, two engines: places that cannot be patched are the kernel's uprobes, all others jumps. The output equals
# that of the kernel engine alone. Programs whose functions share variables are not divided.
# serial
from live import *

TIGHT = os.path.join(BUILD, "test", "tracee_tight")
A = "pid$target:a.out:"
divided = [
    A + "tight_*:return," + A + "roomy:return," + A + "outer:return { @[probefunc, arg1 & 3] = count(); @q[probefunc] = quantize(arg1); }",
    A + "tight_*:," + A + "roomy:," + A + "outer: { @[probefunc, probename] = count(); @t = sum(arg0); @m = max(arg1); @n = min(arg1); @a = avg(arg1); @s = stddev(arg1); }",
    A + "tight_*:return," + A + "roomy:return { printf(\"%s %s %d\\n\", probefunc, probename, arg1); }",
    A + "tight_*:entry," + A + "roomy:entry { self->in[probefunc] = arg0 + 1; } " + A + "tight_*:return," + A + "roomy:return /self->in[probefunc] > 9/ { @[probefunc, arg1 - self->in[probefunc]] = count(); self->in[probefunc] = 0; }",
    "BEGIN { printf(\"begin\\n\"); } " + A + "tight_a:return { @ = count(); } " + A + "roomy:entry { @ = count(); } END { printa(\"%@d\\n\", @); clear(@); }",
    A + "tight_b:return," + A + "roomy:return { @[ustack(2)] = count(); }",
    A + "tight_b:return /arg1 == 40/ { exit(3); } " + A + "roomy:entry { @n = count(); } END { clear(@n); printf(\"end\"); }",
    A + "roomy:entry /arg0 == 40/ { exit(3); } " + A + "tight_b:return { @n = count(); } END { clear(@n); printf(\"end\"); }",
    A + "tight_b:return," + A + "roomy:entry { trace(stringof(probefunc)); trace(*(int *)8); } ERROR { @[arg4, arg5] = count(); }",
]
whole = [
    A + "tight_b:entry { self->a = arg0; } " + A + "tight_b:return { @[arg1 - self->a] = count(); } " + A + "roomy:return { @r = count(); }",
    A + "tight_b:return,"+ A + "roomy:return { n++; } END { trace(n); }",
]


def run(engine, d, rounds=200, rc=0, *more):
    to = os.path.join(TMP, "out-" + engine)
    for _ in range(9):
        if os.path.exists(to):
            os.unlink(to)
        r = descry("-q", "-x", "engine=" + engine, "-x", "report", "-o", to, "-n", d, *more, c="%s %d" % (TIGHT, rounds), rc=rc)
        text = open(to).read()
        if "too new for its unwind tables" not in text:
            break
    return r, text, r.err


want = sh(TIGHT + " 200").stdout
for d in divided:
    rc = 3 if "exit(3)" in d else 0
    r, alone, _ = run("kernel", d, rc=rc)
    r, ours, report = run("auto", d, rc=rc)
    check("engine inproc+kernel," in report, "divided", d, report[-900:])
    check(rc or r.out == want, "the program's own output", r)
    if "printf(\"%s %s %d" not in d:
        alone, ours = sorted(alone.split("\n")), sorted(ours.split("\n"))
    check(alone == ours, "as the kernel alone", d, alone, ours)
    check(re.search(r"tight_.:return kernel uprobe", report) and re.search("roomy:(entry|return) patched jump", report), "modes", report[-900:])
for d in whole:
    r, alone, _ = run("kernel", d)
    r, ours, report = run("auto", d)
    check("engine kernel," in report and alone == ours, "not divided", d, report[-900:])

# From inside alone: omissions are reported, and an empty selection is an error.
r = descry("-x", "engine=inproc", "-n", A + "tight_b:return," + A + "roomy:return { @ = count(); }", c=TIGHT + " 50")
check(re.search(r"^ +50$", r.out, re.M) and "tight_b:return not enabled in-process" in r.err, "left out", r)
r = descry("-q", "-x", "engine=inproc", "-n", A + "tight_a:return," + A + "tight_b:return { @ = count(); }", c=TIGHT + " 50", rc=1)
check("none of 2 probes can be enabled in-process" in r.err, "none", r)

# Attached in the middle, interrupted, and killed: the program runs on undisturbed.
d = A + "tight_*:return," + A + "outer:return { @[probefunc] = count(); } " + A + "outer:return { printf(\"fired\\n\"); }"
p = subprocess.Popen([TIGHT, "8000", "1"], stdout=subprocess.PIPE)
for sig in signal.SIGINT, signal.SIGKILL, signal.SIGKILL, signal.SIGINT:
    s = start("-x", "report", "-n", d, "-p", str(p.pid))
    fired = 0
    while fired < 3:  # so that each function has at least 2
        line = s[1].stdout.readline()
        fired += b"fired" in line
        if not line:
            break
    s[1].send_signal(sig)
    r = finish(s)
    if sig == signal.SIGINT:
        check("engine inproc+kernel," in r.err and r.rc == 0, "attached", r)
        n = {k: int(v) for k, v in re.findall(r"^ +(tight_.|outer) +(\d+)$", r.out, re.M)}
        check(set(n) == {"tight_a", "tight_b", "tight_c", "outer"} and max(n.values()) - min(n.values()) <= 1 < min(n.values()), "all counted alike", n)
    else:
        time.sleep(0.5)
check(p.communicate()[0].decode() == sh(TIGHT + " 8000").stdout and p.returncode == 0, "its own output", p.returncode)
done()
