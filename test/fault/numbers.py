#!/usr/bin/env python3
# Numbers that do not fit are refused, and reduced values are reported: process ids, options, variables, records, aggregations.
from live import *

END = "BEGIN { exit(0); }"
I = ["-x", "engine=interp"]


def run(*argv):
    return subprocess.run([DESCRY] + list(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True)


def refused(rc, words, *argv):
    r = run(*argv)
    check(r.returncode == rc and words in r.stderr and not r.stdout.strip(), "refused", words, argv, r)


# 4294967297 is 1 in 32 bits
for pid in "4294967297", "18446744073709551617", "2147483648", "0", "-1", "+1", " 1", "0x1", "1e0", "1.0", "":
    if pid != " 1":  # from scripts that hand over "-p 1" as one word
        refused(2, "wants a process id", "-p", pid, "-n", END)
    refused(2, "wants a process id", "profile", "-t", "0.01", "-p", pid)
    refused(2, "wants a process id", "flame", "-n", END, "-p", pid)
    refused(2, "wants a process id", "heal", "--", pid)
refused(2, "wants a whole number", "serve", "--port", "65536", "-n", END)
refused(2, "wants a whole number", "serve", "--port", "80.5", "-n", END)
refused(2, "wants a whole number", "serve", "--history", "4294967297", "-n", END)
refused(2, "wants a whole number", "serve", "--tick", "49", "-n", END)
refused(2, "wants a number", "heal", "--timeout", "nan", "1")
refused(1, "D_PDESC_INVAL", *I, "-i", "4294967297")

# options
for option, most in (("strsize=4294967297", 4096), ("bufsize=1t", 1 << 30), ("scratchsize=8g", 1 << 20), ("nspec=65", 64),
                     ("stackframes=4294967297", 127), ("ustackframes=128", 127), ("maxframes=128", 127), ("pcapsize=1t", 1 << 20),
                     ("printsize=5g", 1 << 20)):
    r = run(*I, "-x", option, "-qn", END)
    check(r.returncode == 0 and "%d is the maximum, which is used" % most in r.stderr and len(r.stderr.splitlines()) == 1, option, r)
for option in "stackframes=-1", "maxframes=-1", "looplimit=-1":
    refused(1, "0 is the least", *I, "-x", option, "-qn", END)
refused(1, "Invalid value for specified option: nspec=-1", *I, "-x", "nspec=-1", "-qn", END)
r = run(*I, "-x", "aggsize=1t", "-x", "dynvarsize=1t", "-qn", "BEGIN { @[pid] = count(); a[1] = 1; exit(0); }")
check(r.returncode == 0 and r.stderr.count("D_OPT_REDUCED") == 2 and "aggregation @ has at most 1048576 keys" in r.stderr, "reduced", r)
r = run(*I, "-x", "aggsize=8m", "-x", "dynvarsize=8m", "-qn", "BEGIN { @[pid] = count(); a[1] = 1; exit(0); }")
check(r.returncode == 0 and not r.stderr, "not reduced", r)

# variables and records that no engine holds
for d in ("int a[1073741824]; int b; BEGIN { b = 7; a[0] = 1; trace(b); exit(0); }",
          "int a[40000000]; int b[40000000]; BEGIN { a[0] = b[0] = 1; exit(0); }",
          "struct s { int a[1073741823]; int b; }; struct s x; BEGIN { x.b = 1; exit(0); }",
          "self int a[1073741824]; BEGIN { self->a[0] = 1; exit(0); }",
          "this int a[1073741824]; BEGIN { this->a[0] = 1; exit(0); }",
          "int a[1000000000][1000000000]; BEGIN { a[0][0] = 1; exit(0); }",
          "int a[1000000000][1000000000][1000000000]; BEGIN { a[0][0][0] = 1; exit(0); }",
          "struct t { int c[1073741824]; }; struct t v[int]; BEGIN { v[1].c[0] = 1; exit(0); }",
          "BEGIN { tracemem(0, 4294967297); exit(0); }",
          "struct t { int c[1073741824]; }; BEGIN { trace(*(struct t *)0); exit(0); }",
          # keys: their bytes are 16, 0 and 16 in 32 bits
          "struct t { char c[1073741824]; }; struct u { struct t t[4]; char d[16]; }; BEGIN { @[*(struct u *)alloca(64)] = quantize(1); exit(0); }",
          "struct t { char c[1073741824]; }; struct u { struct t t[4]; }; BEGIN { @[*(struct u *)alloca(64)] = count(); exit(0); }",
          "struct t { char c[1073741824]; }; struct u { struct t t[2]; }; struct v { struct t t[2]; char d[16]; }; "
          "BEGIN { @[*(struct u *)alloca(64), *(struct v *)alloca(64)] = count(); exit(0); }",
          "struct t { char c[1073741824]; }; struct u { struct t t[4]; char d[16]; }; "
          "BEGIN { *(struct u *)alloca(64) = *(struct u *)alloca(64); exit(0); }",
          "struct t { char c[16777217]; }; BEGIN { @[*(struct t *)alloca(64)] = count(); exit(0); }"):
    for engine in "interp", "kernel":
        refused(1, "D_TOO_LARGE", "-x", "engine=" + engine, "-qn", d)
for engine in "interp", "kernel":
    r = run("-x", "engine=" + engine, "-qn", "struct e { }; BEGIN { @[*(struct e *)alloca(8)] = count(); exit(0); }")
    check(r.returncode == 0 and r.stdout.split() == ["1"], "a key without bytes", engine, r)
r = run(*I, "-qn", "int a[1000000]; int b; BEGIN { b = 7; a[999999] = 5; trace(a[999999] + b); exit(0); }")
check(r.returncode == 0 and r.stdout.strip() == "12", "a large array", r)

# the message about a map that is too large for the kernel names the D; only where bpf(2) is permitted
if run("-x", "engine=kernel", "-qn", END).returncode == 0:
    K = ["-x", "engine=kernel", "-qn"]
    r = run(*K, "BEGIN { @ = llquantize(1, 10, 0, 18, 1000); exit(0); }")
    check(r.returncode == 1 and "D_TOO_LARGE" in r.stderr and "fewer buckets" in r.stderr and "^" in r.stderr, "llquantize()", r)
    refused(1, "thread-local variables", *K, "self int a[20000]; BEGIN { self->a[1] = 5; exit(0); }")
    open(TMP + "/many.d", "w").write("BEGIN { @ = count(); }\n" * 60000)
    refused(1, "the kernel takes at most 1000000", "-x", "engine=kernel", "-q", "-s", TMP + "/many.d")
    # the kernel takes this one, but would stand still for some seconds, and for minutes with four times as many clauses
    open(TMP + "/many.d", "w").write("BEGIN { @[1] = count(); }\n" * 5000 + "BEGIN { exit(0); }\n")
    refused(1, "keep a processor for too long", "-x", "engine=kernel", "-q", "-s", TMP + "/many.d")
done()
