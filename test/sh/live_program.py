#!/usr/bin/env python3
# The one-liners about one program: user functions, USDT, call trees; the program's own counts are the truth.
# serial
from live import *

# 23 sizes by stack, 24 the large ones
r = descry("--json", "-n", "pid$target::malloc:entry { @[ustack()] = quantize(arg0); }", c=LIVE + " malloc 200")
n = numbers(r.out)
d = {}
for v in r.aggs().values():
    for b in v:
        d[b["min"]] = d.get(b["min"], 0) + b["count"]
check(d.get(262144) == n["large"] == 20, "large mallocs", d)
check(sum(d.values()) == 200, "all mallocs", d)
check(all("malloc" in str(k) for k in r.aggs()), "named after the process has gone", r)
r = descry("--json", "-n", "pid$target::malloc:entry /arg0 >= 262144/ { @[ustack()] = count(); }", c=LIVE + " malloc 200")
check(sum(r.aggs().values()) == 20, "mallocs of 256k", r)

# 25 every function of the program
r = descry("--json", "-n", "pid$target:tracee_live::entry { @[probefunc] = count(); }", c=LIVE + " calls 50")
a = r.aggs()
check(a.get("handle_request") == 50 and a.get("parse_request") == 50 and a.get("lookup_key") == 150 and a.get("main") == 1, "calls", a)
a = descry("--json", "-n", "pid$target:a.out:*_request:entry { @[probefunc] = count(); }", c=LIVE + " calls 50").aggs()
check(a == {"handle_request": 50, "parse_request": 50}, "glob in a.out", a)

# 26 every function of libc, and the program's output is unchanged
plain = sh("ls -l /usr/lib").stdout
r = descry("-q", "-o", TMP + "/libc", "-n", "pid$target:libc.so.6::entry { @[probefunc] = count(); }", c="ls -l /usr/lib")
check(r.out == plain, "ls under 3,000 probes prints what it prints", r)
check(r.secs < 10, "seconds to attach libc", r.secs)
rows = dict(re.findall(r"^  (\S+) +(\d+)$", open(TMP + "/libc").read(), re.M))
check(len(rows) > 50 and int(rows.get("malloc", 0)) > 50, "libc functions", rows)
r = descry("-n", "pid$target:libc.so.6::entry { @[probefunc] = count(); }", c="true")
m = re.search(r"matched (\d+) probes", r.err)
check(m and int(m.group(1)) > 1500, "matched", r.err)
check(re.search(r"\d+ probes left out: \S+:entry \(", r.err), "what the kernel refuses is said", r.err)
r = descry("-q", "-n", "pid$target:::entry,pid$target:::return { @ = count(); }", c="ls -l /usr/lib/ssl /usr/bin")
check(r.out.startswith(sh("ls -l /usr/lib/ssl /usr/bin").stdout), "ls under probes on everything", str(r)[-500:])

# 27 slowest functions
r = descry("--json", "-n", "pid$target:tracee_live::entry { self->t[probefunc] = timestamp; } "
           "pid$target:tracee_live::return /self->t[probefunc]/ { @[probefunc] = max(timestamp - self->t[probefunc]); "
           "self->t[probefunc] = 0; }", c=LIVE + " spin 50")
a = r.aggs()
check(a.get("main", 0) >= a.get("do_spin", 0) >= 50000000 and a.get("spin_end", 0) < 10000000, "slowest functions", a)

# 28 call tree of one request
open(TMP + "/28.d", "w").write("""#pragma D option flowindent
pid$target::handle_request:entry { self->in = 1; }
pid$target:tracee_live::entry,pid$target:tracee_live::return /self->in/ {}
pid$target::handle_request:return { self->in = 0; }
""")
r = descry("-s", TMP + "/28.d", c=LIVE + " calls 1")
tree = re.findall(r"^ +\d  ( *(?:->|<-) \w+)", r.out, re.M)
want = ["-> handle_request", "  -> parse_request", "    -> lookup_key", "      -> lookup_key", "        -> lookup_key",
        "        <- lookup_key", "      <- lookup_key", "    <- lookup_key", "  <- parse_request", "<- handle_request"]
check([t for i, t in enumerate(tree) if i == 0 or t != tree[i - 1]] == want, "call tree", tree, r)

# 29 strings passed, 30 return values
r = descry("--json", "-n", "pid$target::getenv:entry { @[copyinstr(arg0)] = count(); }", c=LIVE + " open 25")
check(r.aggs().get("LIVE_A") == 25 and r.aggs().get("LIVE_UNSET") == 25, "getenv", r.aggs())
r = descry("--json", "-n", "pid$target::open:return /(int)arg1 == -1/ { @[errno, ustack()] = count(); }", c=LIVE + " open 25")
check(sum(v for k, v in r.aggs().items() if k[0] == 2 and "main" in k[1]) == 25, "open returns -1 with errno 2", r.aggs())

# 32 USDT
r = descry("-q", "-n", 'tracee$target:::values /arg2 == 42 && copyinstr(arg1) == "text"/ { printf("%d:%s:%d:%d\\n", arg0, copyinstr(arg1), '
           'arg2, arg3); }',
           c=USDT + " 4")
check(re.findall(r"^(\d):text:42:(\d)$", r.out, re.M) == [(str(i), str(2 * i)) for i in range(4)], "USDT arguments", r)
r = descry("--json", "-n", "tracee$target:::guarded { @[arg0] = count(); }", c=USDT + " 4")
check(r.aggs() == {1: 1, 2: 1, 3: 1, 4: 1} and r.lines()[0] == "4", "is-enabled", r)
check(sh(USDT + " 4").stdout == "0\n", "not enabled without us")
r = descry("--json", "-n", "tracee$target::: { @[probename] = count(); }", c=USDT + " 4")
check(r.aggs().get("plain") == 4 and r.aggs().get("request-start") == 4, "USDT names", r.aggs())

# 41 from mapping memory to unmapping it
open(TMP + "/41.d", "w").write(r"""#pragma D option quiet
syscall::mmap:return /pid == $target/ { self->ptr = arg1; self->depth = 10; printf("%*s <- %s syscall\n", self->depth, "", probefunc); }
pid$target:::entry /self->ptr/ { self->depth++; printf("%*s -> %s`%s\n", self->depth, "", probemod, probefunc); }
pid$target:::return /self->ptr/ { printf("%*s <- %s`%s\n", self->depth, "", probemod, probefunc); self->depth--; }
syscall::munmap:entry /arg0 == self->ptr/ { self->depth++; printf("%*s -> %s syscall\n", self->depth, "", probefunc); self->ptr = 0; self->depth = 0; exit(0); }
""")
r = descry("-s", TMP + "/41.d", c=LIVE + " malloc 10")
check(re.search(r"^ {10} <- mmap syscall$", r.out, re.M) and re.search(r"-> munmap syscall(\nsmall \d+ large \d+)?$", r.out.strip()), "mmap to munmap", r)
check("-> libc.so.6`free" in r.out and "<- libc.so.6`malloc" in r.out, "functions of libc between", r)

# offsets: every instruction of a function; and return's arg0
r = descry("--json", "-n", "pid$target:a.out:spin_end:* { @[probename] = count(); }", c=LIVE + " spin 5")
a = r.aggs()
offsets = [k for k in a if re.match(r"^[0-9a-f]+$", k)]
check("0" in offsets and len(offsets) >= 2 and set(a.values()) == {1} and a.get("entry") == 1 and a.get("return") == 1, "offsets", a)

# -p: a process that runs, and continues unharmed
tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE, text=True)
pid = numbers(tracee.stdout.readline())["pid"]
r = descry("--json", "-p", str(pid), "-n", "pid$target::work_step:entry { @ = count(); @last = max(arg0); } tick-500ms { exit(0); }")
check(20 < r.aggs().get((), 0) <= 110, "steps seen with -p", r.aggs())
# kill -9 of the tracer
s = start("-p", str(pid), "-n", "pid$target:::entry { @[probefunc] = count(); }")
ready(s)
s[1].send_signal(signal.SIGKILL)
finish(s)
time.sleep(0.1)
check(tracee.poll() is None, "kill -9 of descry leaves the tracee alone")
# the traced process vanishes: the run ends with the counts so far
s = tracing("--json", "-p", str(pid), "-n", "pid$target::work_step:entry { @ = count(); }")
time.sleep(0.5)
tracee.terminate()
r = finish(s)
check(r.rc == 0 and r.aggs().get((), 0) > 0, "the process ends", r)
said = tracee.stdout.read()
check(tracee.wait() == 0 and numbers(said).get("steps", 0) > 100, "it counted on", tracee.returncode, said)
r = descry("-p", str(pid), "-n", "pid$target:::entry { @ = count(); }", rc=1)
check(len(r.err.splitlines()) == 1 and "no process" in r.err, "vanished before", r)
done()
