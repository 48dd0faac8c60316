#!/usr/bin/env python3
# Programs of 100,000 parts compile, or are refused by few lines; what is deep or endless ends. Each has a minute of CPU time, of
# which it needs seconds: an algorithm whose time grows with the square of the size does not get by.
import resource

from live import *

N = 100000
all_of = lambda text, n=N: "".join(text % i for i in range(n))
programs = {
    # name: (program, exit code)
    "clauses": ("BEGIN { @ = count(); }\n" * N, 0),
    "clauses of all system calls": ("syscall:::entry { @ = count(); }\n" * N, 1),
    "members": ("struct s { " + all_of("int a%d; ") + "}; BEGIN { }", 0),
    "constants": ("enum e { " + all_of("a%d,") + " last }; BEGIN { }", 0),
    "many constants": ("enum e { " + all_of("a%d,", 300000) + " last }; BEGIN { }", 0),
    "probes of a provider": ("provider p { " + all_of("probe x%d(int); ") + "}; BEGIN { }", 0),
    "inlines": (all_of("inline int i%d = 1;\n") + "BEGIN { }", 0),
    "variables": (all_of("BEGIN { v%d = 1; }\n"), 0),
    "names not known, on one line": ("BEGIN { " + all_of("if (x) { y = %d; } ", 20000) + "}", 1),
    "functions not known": ("BEGIN { " + all_of("nosuch%d(); ") + "}", 1),
    "providers not known": (all_of("nosuch%d:::x { }\n", 20000), 1),
    "@": ("@" * 10000000, 1),
    "comments": ("/* " * 1000000, 1),
    "a name": ("BEGIN { " + "a" * 5000000 + "; }", 1),
    "structs in structs": ("struct a { " * N, 1),
    "parentheses": ("BEGIN { x = " + "(" * N + "1" + ")" * N + "; }", 1),
    "ifs in ifs": ("BEGIN { " + "if (1) { " * N + "}" * N + "}", 1),
    "a sum": ("BEGIN { x = 1" + "+1" * N + "; }", 1),
    "a choice": ("BEGIN { x = " + "1?2:" * N + "3; }", 1),
    "minus signs": ("BEGIN { x = " + "-" * (N + 1) + "1; }", 1),
}
limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for name, (text, rc) in programs.items():
    open(TMP + "/large.d", "w").write(text)
    r = subprocess.run([DESCRY, "-x", "engine=interp", "-e", "-s", TMP + "/large.d"], capture_output=True, text=True, errors="replace",
                       preexec_fn=limit)
    check(r.returncode == rc and len(r.stderr) < 30000 and (rc == 0 or "error" in r.stderr), name, r.returncode, len(r.stderr),
          r.stderr[:500], r.stderr[-300:])
# Libraries of another user's directory.
os.mkdir(TMP + "/lib")
for i in range(12000):
    with open(TMP + "/lib/n%d.d" % i, "w") as f:
        f.write("#pragma D depends_on library n%d.d\ninline int i%d = 1;\n" % (i + 1, i))
os.mkfifo(TMP + "/lib/waits.d")
r = subprocess.run([DESCRY, "-x", "engine=interp", "-L", TMP + "/lib", "-e", "-n", "BEGIN { }"], capture_output=True, text=True, preexec_fn=limit)
check(r.returncode == 1 and "waits.d cannot be read, or is no regular file" in r.stderr and "libraries depend on one another" in r.stderr,
      "libraries that depend on one another", r.returncode, r.stderr[:1000])
r = subprocess.run([DESCRY, "-e", "-n", "BEGIN { @@ } " * 1000], capture_output=True, text=True)
check(r.returncode == 1 and " more error" in r.stderr.splitlines()[-1], "how many more", r.stderr[-300:])
done()
