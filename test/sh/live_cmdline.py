#!/usr/bin/env python3
# The command line on a live kernel: exit codes, ^C, output files, listing, --json, and one-line errors for missing
# things.
# serial
from live import *


def one_line(r, *words):
    check(len(r.err.strip().splitlines()) == 1 and all(w in r.err for w in words), "one clear line", words, r)


# exit codes
check(descry("-n", "BEGIN { exit(7); }", rc=7).rc == 7, "exit(7)")
check(descry("-n", "BEGIN { trace(nosuch); }", rc=1).out == "", "wrong D")
check("usage:" in descry(rc=2).err and "usage:" in descry("-@", rc=2).err, "usage")
check("did you mean profile?" in descry("profiel", rc=2).err, "no such command")
r = descry("-n", "syscall::nosuch*:entry { }", rc=1)
check("nosuch" in r.err, "matches nothing", r)
descry("-Z", "-n", "syscall::nosuch*:entry { }", "-n", "BEGIN { exit(0); }")
r = descry("-n", "BEGIN { }", c="/nonexistent/program", rc=1)
one_line(r, "/nonexistent/program", "No such file")
one_line(descry("-n", "BEGIN { }", "-p", "4194000", rc=1), "4194000")
check(descry("-qn", "BEGIN { trace($target); exit(0); }", "-p %d" % os.getpid()).out == str(os.getpid()) + "\n", "-p and its number in one word")
r = descry("-n", "BEGIN { }", c="false")
check(r.rc == 0, "the command's own exit code is not ours", r)

# ^C prints the aggregations, exit code 0
for sig in signal.SIGINT, signal.SIGTERM:
    s = start("-n", "syscall:::entry { @[execname] = count(); } END { printf(\"the end\"); }")
    ready(s)
    s[1].send_signal(sig)
    begun = time.monotonic()
    r = finish(s)
    print("note: detached and printed in %d ms after signal %d" % ((time.monotonic() - begun) * 1000, sig))
    check(r.rc == 0 and "the end" in r.out and len(r.table()) > 0, "signal %d" % sig, r)

# ... also when it comes twice at once, as timeout(1) sends it
for _ in range(3):
    s = start("-n", "syscall:::entry { @[execname] = count(); }")
    ready(s)
    time.sleep(0.1)
    s[1].send_signal(signal.SIGINT)
    s[1].send_signal(signal.SIGTERM)
    r = finish(s)
    check(r.rc == 0 and len(r.table()) > 0, "two signals at once", r)

# the reader has closed the pipe: end like other programs then, silently
for argv in ["-q", "-n", "syscall:::entry { trace(execname); }"], ["profile", "-q", "--folded", "-c", "python3 -c 'sum(range(10**7))'"]:
    p = subprocess.Popen([DESCRY] + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    err = p.stderr.read()
    check(p.wait() == -signal.SIGPIPE and not err, "closed pipe", argv, p.returncode, err)

# a file that cannot be written is reported before anything is traced
for command in ["flame", "-n", "tick-30s { exit(0); }"], ["heat", "-t", "30", "-n", "BEGIN { }"], ["profile", "-a", "-t", "30"]:
    begun = time.monotonic()
    r = sh(shlex.join([DESCRY] + command + ["-o", TMP + "/none/x.svg"]))
    check(r.returncode == 1 and "none/x.svg" in r.stderr and time.monotonic() - begun < 20, "no such folder", command, r)

# -o appends, -q is quiet
path = TMP + "/out"
for i in "one", "two":
    r = descry("-q", "-o", path, "-n", 'BEGIN { printf("%s\\n"); exit(0); }' % i)
    check(r.out == "" and r.err == "", "-q -o prints nothing else", r)
check(open(path).read().split() == ["one", "two"], "-o appends", open(path).read())
r = descry("-n", "BEGIN { exit(0); }")
check(r.out == "CPU     ID                    FUNCTION:NAME\n%3d %6d %32s \n\n" % (int(r.out.splitlines()[1][:3]), 1, ":BEGIN"), "columns", repr(r.out))
r = descry("-n", "syscall::getppid:entry", c=LIVE + " syscalls 2")
check(re.search(r"^ {2}\d +\d+ +getppid:entry $", r.out, re.M), "default action", repr(r.out))

# --json: each line an object
programs = ["BEGIN { print(*curthread); printf(\"a\\n\\\"b\\\"\\t%s\", execname); trace(1); tracemem(curthread, 20); exit(0); }",
            "syscall:::entry { @a[execname, pid] = count(); @b = quantize(arg0); @c[ustack(3)] = avg(arg1); } tick-300ms { exit(0); }",
            "sched:::on-cpu { @[execname] = lquantize(cpu, 0, 8); @m = min(timestamp); @s = stddev(arg0); } tick-200ms { printa(@); exit(0); }",
            "proc:::, io:::, sched::: { @[probename] = count(); } tick-300ms { exit(0); }",
            "profile-499 { @[stack(4), ustack(4)] = count(); } tick-300ms { stack(); exit(0); }",
            "BEGIN { trace(*(int *)0); } ERROR { trace(arg4); exit(0); }"]
for d in programs:
    r = descry("--json", "-n", d)
    try:
        kinds = [json.loads(line)["type"] for line in r.out.splitlines()]
        check(kinds and kinds[-1] == "report", "a report ends it", d, kinds[-3:])
    except (ValueError, KeyError) as e:
        check(False, "JSON", d, e, r)
    check(r.err == "", "nothing beside it", r.err)

# -l, and -l -v
r = descry("-l", "-P", "syscall")
check(r.out.splitlines()[0] == "   ID   PROVIDER            MODULE                          FUNCTION NAME", "header of -l", r.out[:200])
check(re.search(r"^ *\d+    syscall           vmlinux +openat entry$", r.out, re.M), "row of -l", r.out[:600])
check(len(r.out.splitlines()) > 600, "system calls", len(r.out.splitlines()))
r = descry("-l", "-v", "-n", "syscall::openat:entry")
check("args[1]" in r.out or "char" in r.out, "arguments", r)
r = descry("-l", "-v", "-n", "io:::start")
check("bufinfo_t" in r.out and "fileinfo_t" in r.out, "translated arguments", r)
r = descry("-l")
check(len(r.out.splitlines()) > 3000, "everything", len(r.out.splitlines()))

# a listed probe that cannot fire has a reason, and is an error when enabled
r = descry("-l", "-v", "-n", "io:::wait-start")
check("unavailable" in r.out or "not" in r.out, "unavailable: the reason is listed", r)
r = descry("-n", "io:::wait-start { @ = count(); }", rc=1)
check("wait-start" in r.err and "D_" in r.err, "an error when enabled", r)
r = descry("-n", "fbt::vfs_read:entry { @ = count(); }", rc=1)
check("fbt" in r.err, "no fbt", r)

# without privilege
nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
public = "/tmp/descry-live-%d" % os.getpid()
shutil.copy(DESCRY, public)
os.chmod(public, 0o755)
for d in "syscall:::entry { @ = count(); }", "BEGIN { exit(0); }", "profile-99 { @ = count(); }":
    p = subprocess.run(nobody + [public, "-q", "-n", d], capture_output=True, text=True, timeout=20)
    r = Run(p.args, p.returncode, p.stdout, p.stderr, 0)
    check(p.returncode == 1 and re.search("permi|privilege|CAP_|root", p.stderr), "as nobody", r)
    one_line(r)
p = subprocess.run(nobody + [public, "-l", "-P", "syscall"], capture_output=True, text=True, timeout=20)
check(p.returncode == 0 and len(p.stdout.splitlines()) > 600, "listing needs no privilege", p.stdout[-300:], p.stderr)
p = subprocess.run(nobody + [public, "-e", "-n", "syscall:::entry { @ = count(); }"], capture_output=True, text=True, timeout=20)
check(p.returncode == 0, "compiling needs no privilege", p.stderr)
# CAP_BPF and CAP_PERFMON are enough
caps = "+bpf,+perfmon"
p = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + caps, "--ambient-caps=" + caps,
                    public, "-q", "-n", "syscall:::entry { @ = count(); } tick-100ms { exit(0); }"], capture_output=True, text=True, timeout=20)
check(p.returncode == 0 and re.search(r"\d", p.stdout), "CAP_BPF and CAP_PERFMON", p.stdout, p.stderr)
os.unlink(public)

# no tracefs anywhere: a mount namespace of its own
if sh("unshare -m true").returncode == 0:
    r = sh("unshare -m sh -c 'umount -l /sys/kernel/tracing 2>/dev/null; umount -l /sys/kernel/debug 2>/dev/null; "
           "test ! -e /sys/kernel/tracing/events && exec %s --json -c \"%s syscalls 10\" -n "
           "\"syscall::getppid:entry,sched:::on-cpu,sdt:::sched_switch { @[probename] = count(); }\"'" % (DESCRY, LIVE))
    check(r.returncode == 0 and '"keys":["entry"],"value":10' in r.stdout and "sched_switch" in r.stdout, "without tracefs", r.stdout, r.stderr)

# size and time: printed, not judged here (bench/ does)
r = descry("-q", "-n", "BEGIN { exit(0); }")
rss = sh("/usr/bin/time -f %%M %s -q -n 'BEGIN { exit(0); }' 2>&1 | tail -1" % DESCRY).stdout.strip()
print("note: BEGIN { exit(0); } took %d ms, resident %s KB" % (r.secs * 1000, rss or "?"))
done()
