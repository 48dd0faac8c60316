#!/usr/bin/env python3
# A D program's stacks, piped into descry flame: kernel and user stacks, keys as base frames, no count lost.
# serial
from live import *

tracee = subprocess.Popen(["sh", "-c", "while :; do :; done"])
atexit.register(tracee.kill)
PROBE = "profile-499 /pid == %d/ " % tracee.pid


def folded(program, *options):
    # until there are enough samples, on a machine as busy as it may be
    r = descry(*options, "-n", PROBE + program + " " + PROBE + "{ n++; } tick-100ms /n >= 100/ { exit(0); } tick-60s { exit(0); }")
    out = subprocess.run([DESCRY, "flame", "--folded"], input=r.out.encode(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    check(out.returncode == 0 and not out.stderr, "nothing is skipped", out, r.out[:2000])
    return r, {k: int(n) for k, n in (l.rsplit(" ", 1) for l in out.stdout.decode().splitlines())}


r, got = folded("{ @[execname, pid, stack(), ustack()] = count(); @n = sum(1); }", "-q")
total = int(r.out.split()[-1])
got.pop("[no stack]", 0)
check(got and all(k.startswith("sh;%d;" % tracee.pid) for k in got), "keys are the base", list(got)[:5])
check(abs(sum(got.values()) - total) <= 1, "every sample is there", sum(got.values()), total)
r, got = folded("{ @[ustack(3)] = count(); }", "-q")
check(sum(got.values()) > 5 and all(len(k.split(";")) <= 3 for k in got), "user stacks", got)
r, got = folded("{ ustack(2); }")
check(sum(got.values()) > 5, "stacks as events", len(got))

# The program run by flame itself.
r = subprocess.run([DESCRY, "flame", "--folded", "-n", PROBE + "{ @[execname, ustack()] = count(); } tick-1s { exit(0); }"],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
lines = r.stdout.decode().splitlines()
check(r.returncode == 0 and lines and all(l.startswith("sh;") for l in lines), "flame -n", r)
check(sum(int(l.rsplit(" ", 1)[1]) for l in lines) > 5, "flame -n counts", lines)
# The tree takes rows of aggregations as values: text in keys, or in lines beside the rows, is no frame and no count.
r = subprocess.run([DESCRY, "flame", "--folded", "-c", "sleep 0.1", "-n",
                    'syscall::clock_nanosleep:entry /pid == $target/ { @["a;b  c", stack()] = sum(7); printa("%s %k in 5\\n", @); printf("two\\nlines 12\\n"); @q[stack()] = quantize(5); exit(0); }'],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
lines = r.stdout.decode().splitlines()
check(len(lines) == 2 and lines[0].startswith("a:b  c;") and lines[0].endswith(" 7") and lines[1].endswith(" 1") and
      lines[1][:-2] == lines[0][len("a:b  c;"):-2], "rows of aggregations", r)
r = subprocess.run([DESCRY, "flame", "-n", "BEGIN { x = ; }"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
check(r.returncode == 1 and b"^" in r.stderr and not r.stdout, "flame -n: a wrong program", r)
r = subprocess.run([DESCRY, "flame", "--chain", "--folded", "-s", "examples/chain.d", "-c", "sh -c 'sleep 0.2; exit 3'"],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
chains = [l for l in r.stdout.decode().splitlines() if ";--;" in l]
check(any(int(l.rsplit(" ", 1)[1]) > 100000 and "_[w]" in l for l in chains), "a wait and who ended it", r.stdout[:2000], r.stderr)
done()
