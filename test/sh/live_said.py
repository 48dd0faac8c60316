#!/usr/bin/env python3
# Gaps in an answer are reported: names that may not be looked up, unknown modules and subsystems, closed standard
# descriptors. As root and as an ordinary user.
# serial
from live import *

for_anybody()
AS = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
if not shutil.which("setpriv") or not shutil.which("cc"):
    skip("no setpriv, or no C compiler")
NOBODY = AS + ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
USERS = ([], "root"), (NOBODY, "an ordinary user")


def run(who, *args, c=None, **more):
    argv = who + [live_descry] + list(args) + (["-c", c] if c else [])
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TMP, timeout=60, **more)
    return Run(argv, p.returncode, p.stdout, p.stderr, 0)


live_descry = os.path.join(TMP, os.path.basename(DESCRY))

# --- a stripped position independent program: its load address changes, the output does not
with open(os.path.join(TMP, "place.c"), "w") as f:
    f.write("#include <unistd.h>\nstatic int here(int x) { return x * 3; }\nint (*volatile fn)(int) = here;\n"
            "int main(void) { for (int i = 0; i < 5; i++) (void)!write(-1, (void *)fn, 4242); return 0; }\n")
os.chmod(TMP, 0o755)
sh("cd %s && cc -O0 -pie -fPIE -o full place.c && strip -o place full && chmod 755 place" % TMP)
where = int(re.search(r"(?m)^([0-9a-f]+) t here$", sh("nm %s/full" % TMP).stdout).group(1), 16)
for who, name in USERS:
    for n in range(2):
        r = run(who, "-qn", "syscall::write:entry /progenyof($target) && arg2 == 4242/ { @[ufunc(arg1), usym(arg1)] = count(); }", c=TMP + "/place")
        check(r.rc == 0 and r.table() == [(("place+0x%x" % where,) * 2, 5)], "module and offset, " + name, r)

# --- modules by the name of a link, and existing ones
os.symlink("full", os.path.join(TMP, "beside"))
os.mkdir(os.path.join(TMP, "links"))
os.symlink("../full", os.path.join(TMP, "links", "elsewhere"))
for who, name in USERS:
    for link, command in ("beside", "./full"), ("elsewhere", "links/elsewhere"), ("elsewhere", TMP + "/links/elsewhere"):
        r = run(who, "-qn", "pid$target:%s:here:entry { @ = count(); } pid$target:%s:main:entry { @m = count(); }" % (link, link), c=command)
        check(r.rc == 0 and re.search(r"(?m)^ +1$", r.out), "a link's name: %s of %s, %s" % (link, command, name), r)
    r = run(who, "-ln", "pid$target:nonsense::entry", c="./full")
    check(r.rc != 0 and "it has full, " in r.err and "libc.so.6" in r.err, "the modules there are, " + name, r)
    r = run(who, "-ln", "pid$target:place:here:entry", c="./place")
    check(r.rc != 0 and "no module" not in r.err, "its symbols were stripped, " + name, r)

# --- subsystems of tracepoints stand in tracefs
r = run([], "-ln", "sdt:sched::sched_switch")
if "sched_switch" in r.out:
    r = run(NOBODY, "-ln", "sdt:sched::sched_switch")
    check("sched_switch" in r.out or "tracefs, which this user may not read" in r.err, "it means the same, or is said", r)
    r = run(NOBODY, "-ln", "sdt:::sched_switch")
    check(r.rc == 0 and "sched_switch" in r.out, "by its own name", r)

# --- names of the kernel's functions without CAP_SYSLOG
TRACER = AS + ["--inh-caps=-all,+bpf,+perfmon", "--ambient-caps=-all,+bpf,+perfmon", "--bounding-set=-all,+bpf,+perfmon"]
r = run(TRACER, "-qn", "sdt:::sched_switch { @[stack(3)] = count(); } tick-200ms { exit(0); }")
if "not permitted" not in r.err and "permission denied" not in r.err:
    check(r.rc == 0 and ("0xffffffff" not in r.out or "CAP_SYSLOG" in r.err), "hidden names of the kernel are said with -q", r)
r = run([], "-qn", "sdt:::sched_switch { @[stack(3)] = count(); } tick-200ms { exit(0); }")
check(r.rc == 0 and "CAP_SYSLOG" not in r.err, "and not where they are shown", r)

# --- closed standard descriptors: no file of descry gets their numbers, and a command gets them unchanged
for who, name in USERS:
    for fd in range(3):
        def close(fd=fd):
            os.close(fd)
        argv = who + [live_descry, "-qn", 'syscall::write:entry /pid == $target/ { @ = count(); } END { printf("told\\n"); }', "-c",
                      "sh -c 'if test -e /proc/self/fd/%d; then exit 1; fi; : >%s/done.%d'" % (fd, TMP, fd)]
        os.chmod(TMP, 0o777)
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=close, timeout=60)
        check(p.returncode == (1 if fd == 1 else 0) and ("told" in p.stdout) == (fd != 1), "descriptor %d closed, %s" % (fd, name), p)
        check(fd != 1 or "Bad file descriptor" in p.stderr, "output that cannot be written is said, " + name, p)
        check(os.path.exists(TMP + "/done.%d" % fd), "the command has it closed, " + name, p)
        if os.path.exists(TMP + "/done.%d" % fd):
            os.unlink(TMP + "/done.%d" % fd)
    argv = who + [live_descry, "-qn", "tick-20s { exit(0); }"] + (["-x", "engine=interp"] if who else [])
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: (os.close(0), os.close(1)))
    end = time.monotonic() + 20
    files = {}
    while time.monotonic() < end and p.poll() is None and len(files) < 5:
        try:
            files = {n: os.readlink("/proc/%d/fd/%s" % (p.pid, n)) for n in os.listdir("/proc/%d/fd" % p.pid)} if "descry" in os.readlink("/proc/%d/exe" % p.pid) else {}
        except OSError:
            pass
        time.sleep(0.01)
    check(files.get("0") == "/dev/null" and files.get("1") == "/dev/null", "what stands in their place, " + name, files)
    p.kill()
    p.wait()
done()
