#!/usr/bin/env python3
# One D program, two engines: the patched process prints the same as the kernel's uprobes, to the byte, and the
# program's own output is unchanged.
# serial
from live import *

INSIDE = os.path.join(BUILD, "test", "tracee_inside")
programs = [
    ("work 2000", "pid$target:a.out:work:entry { @ = count(); }"),
    ("work 2000", "pid$target:a.out:work:entry { @[arg1 & 7] = count(); @q[probefunc] = quantize(arg1); @s = sum(arg1); @m = min(arg1); @x = max(arg1); @a = avg(arg1); @d = stddev(arg1); }"),
    ("work 2000", "pid$target:a.out:work:entry { self->a = arg1; } pid$target:a.out:work:return /self->a == arg1 - arg1 + self->a/ { @[self->a & 3] = count(); self->a = 0; }"),
    ("work 50", "pid$target:a.out:work:entry { printf(\"%d %s %s %s %s\\n\", arg1, probeprov == strjoin(\"pid\", lltostr($target)) ? \"p\" : \"?\", probemod, probefunc, probename); }"),
    ("mix 300", "pid$target:a.out:text:entry { @[copyinstr(arg0), arg1 & 1] = count(); } pid$target:a.out:text:return { @r[arg1 != 0] = count(); }"),
    ("mix 300", "pid$target:a.out:branches:entry { @[\"in\"] = count(); } pid$target:a.out:work:return { @[\"out\"] = count(); }"),
    ("mix 100", "pid$target:a.out:recurse:entry { self->depth++; @e[self->depth] = count(); } pid$target:a.out:recurse:return { self->depth--; @r[arg1] = count(); }"),
    ("mix 40", "pid$target:a.out:recurse:entry { @[ustack()] = count(); }"),
    ("mix 3", "pid$target:a.out:recurse:entry { ustack(4); trace(execname); trace(pid == $target); trace(tid == pid); trace(ppid > 0); trace(uid); }"),
    ("mix 50", "pid$target:a.out:text:entry { x[arg1 % 5] += arg1; n++; } END { printf(\"%d %d %d\\n\", n, x[0], x[4]); }"),
    ("mix 50", "pid$target:a.out:text:entry /arg1 % 10 == 0/ { this->s = copyinstr(arg0); printf(\"%s|%s|%d\\n\", substr(this->s, 0, 6), strtok(this->s, \"-\"), strlen(this->s)); }"),
    ("faults 100", "pid$target:a.out:text:entry { @[copyinstr(arg0)] = count(); } ERROR { @e[arg4, arg5 < 4096] = count(); }"),
    ("mix 20", "pid$target:libc.so.6:malloc:entry { @[arg0 > 0] = count(); } pid$target:libc.so.6:write:entry { printf(\"%d bytes\\n\", arg2); }"),
    ("work 20", "pid$target:a.out:work:entry { self->ts = timestamp; } pid$target:a.out:work:return { @[timestamp >= self->ts, timestamp - self->ts < 100000000] = count(); }"),
    ("work 20", "pid$target:a.out:work:entry /arg1 == 10/ { exit(7); } END { trace(\"end\"); }"),
    ("work 300", "pid$target:a.out:work:entry { self->s = speculation(); speculate(self->s); printf(\"%d\\n\", arg1); } pid$target:a.out:work:return /self->s && self->s % 1 == 0/ { commit(self->s); self->s = 0; }"),
]
for args, d in programs:
    want = sh("%s %s" % (INSIDE, args)).stdout
    out = {}
    rc = 7 if "exit(7)" in d else 0
    for engine in "kernel", "inproc":
        # a separate file, because the program's line may come in the middle of descry's
        to = os.path.join(TMP, "out-" + engine)
        for _ in range(9):
            if os.path.exists(to):
                os.unlink(to)
            r = descry("-q", "-x", "engine=" + engine, "-o", to, "-n", d, c="%s %s" % (INSIDE, args), rc=rc)
            if "too new for its unwind tables" not in open(to).read(): # they come a moment after the process does
                break
        check(rc or want == r.out, "the program's own output", r)
        with open(to) as f:
            # aggregations with equal values come in any order
            out[engine] = sorted(f.read().splitlines()), re.sub(r"0x[0-9a-f]+|pid\d+", "X", r.err)
        os.unlink(to)
    check(out["kernel"] == out["inproc"], "engines differ:", d, "\nkernel: %s\ninproc: %s" % (out["kernel"], out["inproc"]))
done()
