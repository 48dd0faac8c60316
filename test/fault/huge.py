#!/usr/bin/env python3
# Programs far beyond what anyone writes: they run, or are refused with a message; never a crash, never minutes.
# serial
import resource

from live import *


def script(text):
    path = TMP + "/huge.d"
    open(path, "w").write(text)
    return path


def sane(r, secs, *what):
    """Ran, or was refused in words."""
    check(r.rc == 0 or r.rc == 1 and r.err.strip(), *what, "runs or says why not", r)
    check(r.secs < secs, *what, "took %.1f s" % r.secs)
    print("note: %s: exit %s in %.2f s%s" % (what[0], r.rc, r.secs, ": " + r.err.strip().splitlines()[0][:160] if r.rc == 1 else ""))
    return r.rc == 0


# clauses: each adds to one global
n = 2000
r = finish(start("-q", "-s", script("int x;\n" + "BEGIN { x += 1; }\n" * n + 'BEGIN { printf("%d\\n", x); exit(0); }\n')), 60)
if sane(r, 30, "%d clauses of one probe" % n):
    check(r.out.strip() == str(n), "every clause ran", r)
r = finish(start("-q", "-s", script("\n".join("tick-%dms { @[%d] = count(); }" % (i + 100, i) for i in range(300)) +
                                    "\ntick-1s { exit(0); }\n")), 60)
if sane(r, 40, "300 timers"):
    n = len(re.findall(r"^ +\d+ +\d+$", r.out, re.M))
    check(n == 300, "every timer fired", n)

# one printf with 500 arguments
text = 'BEGIN { printf("%s\\n", %s); exit(0); }' % (" ".join(["%d"] * 500), ", ".join("pid - pid + %d" % i for i in range(500)))
r = finish(start("-q", "-s", script(text)), 60)
if sane(r, 20, "a printf of 500 arguments"):
    check(r.out.split() == [str(i) for i in range(500)], "all of them right", r)

# strings: more than fit into scratch memory or not
r = finish(start("-q", "-x", "strsize=4096", "-n", "BEGIN { printf(\"%s %s %s\\n\", strjoin(execname, \"x\"), "
                 "strjoin(execname, \"y\"), strjoin(execname, \"z\")); exit(0); }"), 60)
if sane(r, 20, "strings of 4096"):
    check(len(r.out.split()) == 3, "strings", r)

# an expression 2,000 levels deep; 20,000 terms
for what, text in (("parentheses", "(" * 2000 + "1" + ")" * 2000), ("terms", "+".join(["pid"] * 20000)),
                   ("minus signs", "- " * 5000 + "1"), ("ternaries", "1 ? 2 : " * 3000 + "3")):
    r = finish(start("-q", "-s", script("BEGIN { x = %s; exit(0); }" % text)), 60)
    sane(r, 30, what)

# many variables and aggregations
r = finish(start("-q", "-s", script("BEGIN { %s exit(0); }" % " ".join("v%d = %d;" % (i, i) for i in range(2000)))), 60)
sane(r, 30, "2,000 globals")
r = finish(start("-q", "-x", "aggsize=64k", "-s", script("BEGIN { %s exit(0); }" % " ".join("@a%d = count();" % i for i in range(500)))), 60)
sane(r, 30, "500 aggregations")

# 10,000 probes and more: every function of every library of a program
if shutil.which("python3"):
    tracee = subprocess.Popen([sys.executable, "-c", "import ssl, sqlite3, time; print(1, flush=True); time.sleep(60)"],
                              stdout=subprocess.PIPE)
    tracee.stdout.readline()
    s = start("-p", str(tracee.pid), "-n", "pid$target:::entry { @[probemod] = count(); } BEGIN { ok = 1; } tick-2s { exit(0); }")
    r = finish(s, 100)
    n = int((re.findall(r"matched (\d+) probe", r.err) or [0])[0])
    if sane(r, 60, "%d functions" % n):
        check(n > 10000, "this many probes", n)
    tracee.kill()
    tracee.communicate()
r = finish(start("-q", "-n", "sdt:::, rawtp:::, syscall::: { @ = count(); } tick-500ms { exit(0); }"), 100)
sane(r, 60, "every tracepoint and system call")

# the preprocessor: its memory, its time and what it prints have bounds, and it leaves no file
cpp = TMP + "/cpp"
for body, rc, words in (("head -c 70000000 /dev/zero", 1, "more than 64 MB"),
                        ("""echo "BEGIN { printf(\\"$(ulimit -Sd) $(ulimit -St)\\"); exit(0); }" """, 0, ""),
                        ("""for last; do :; done; cp $last %s/input; exit 3""" % TMP, 1, "failed on")):
    open(cpp, "w").write("#!/bin/sh\n" + body + "\n")
    os.chmod(cpp, 0o755)
    r = finish(start("-x", "engine=interp", "-C", "-x", "cpppath=" + cpp, "-qs", script("BEGIN { exit(0); }")))
    check(r.rc == rc and words in r.err and (rc or r.out.strip() == "1048576 60"), "cpp", body, r)
check(open(TMP + "/input").read().endswith('huge.d"\nBEGIN { exit(0); }'), "cpp's input", open(TMP + "/input").read())

# memory: descry holds itself to less than the machine has; programs that it starts have the limits as they were
own = resource.getrlimit(resource.RLIMIT_DATA)
text = lambda limit: "unlimited" if limit == resource.RLIM_INFINITY else str(limit // 1024)
s = start("-x", "engine=interp", "-qn", 'BEGIN { printf("begun\\n"); }')
s[1].stdout.readline()
limits = open("/proc/%d/limits" % s[1].pid).read()
s[1].send_signal(signal.SIGINT)
finish(s)
most = int(re.search(r"^Max data size +(\d+)", limits, re.M).group(1))
check(64 << 20 < most < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + (64 << 20), "descry's own limit", limits)
r = descry("-x", "engine=interp", "-qwn", 'BEGIN { system("ulimit -Sd; ulimit -Hd"); exit(0); }')
check(r.out.split() == [text(limit) for limit in own], "limits of system()", r)
r = finish(start("-x", "engine=interp", "-qn", "tick-10ms { }", c="sh -c 'ulimit -Sd; ulimit -Hd'"))
check(r.out.split() == [text(limit) for limit in own], "limits of a command", r)
# nor do arrays, whose memory is the kernel's, take what the machine needs: 40 of up to 4 GB each
if not os.geteuid():
    r = descry("-x", "engine=kernel", "-x", "strsize=4096", "-x", "dynvarsize=15g", "-n", "BEGIN { %s exit(0); }" %
               " ".join('a%d[pid, "x"] = "y";' % i for i in range(40)))
    check(re.search(r"arrays and aggregations reduced to \d+ of 1000 of their keys", r.err), "the sum of all arrays", r)
# a control group leaves less than the machine has
for top, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
    group = top + "/descry-huge-%d" % os.getpid()
    try:
        os.mkdir(group)
        open(group + "/" + name, "w").write(str(512 << 20))
    except OSError as e:
        print("note: no control group in %s: %s" % (top, e))
        if os.path.isdir(group):
            os.rmdir(group)
        continue
    s = start("-x", "engine=interp", "-qn", 'BEGIN { printf("begun\\n"); }', preexec_fn=lambda: open(group + "/cgroup.procs", "w").write(str(os.getpid())))
    s[1].stdout.readline()
    limits = open("/proc/%d/limits" % s[1].pid).read()
    s[1].send_signal(signal.SIGINT)
    finish(s)
    most = int(re.search(r"^Max data size +(\d+)", limits, re.M).group(1))
    check(64 << 20 < most < 512 << 20, "the limit of a control group", limits)
    os.rmdir(group)
    break
with open(TMP + "/stacks", "w") as f:
    f.writelines("a;b%d;c%d %d\n" % (i, i, i + 1) for i in range(300000))
r = subprocess.run([DESCRY, "flame", "--folded", TMP + "/stacks"], capture_output=True, text=True,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (60 << 20, own[1])))
check(r.returncode == 1 and "out of memory" in r.stderr and len(r.stderr.splitlines()) == 1, "a limit of the user's", r)
done()
