#!/usr/bin/env python3
# Nowhere to write, nothing to read: one clear line, an exit code that is not 0, and an end.
# serial
import resource

from live import *


def complains(r, *words):
    lines = r.err.strip().splitlines()
    check(r.rc not in (0, "timeout") and len(lines) == 1 and all(w in r.err for w in words), "one clear line", words, r)


FLOOD = 'syscall::getppid:entry /pid == $target/ { printf("%d\\n", timestamp); }'
CALLS = LIVE + " threads 20000"

# a full disk, at the first line and later
complains(finish(start("-q", "-o", "/dev/full", "-n", 'BEGIN { printf("x\\n"); exit(0); }')), "No space left on device")
complains(finish(start("-q", "-o", "/dev/full", "-n", FLOOD, c=CALLS)), "No space left on device")
complains(finish(start("-q", "-n", 'BEGIN { printf("x\\n"); exit(0); }', preexec_fn=lambda: os.dup2(
    os.open("/dev/full", os.O_WRONLY), 1))), "No space left on device")
complains(finish(start("--json", "-o", "/dev/full", "-n", 'BEGIN { printf("x\\n"); exit(0); }')), "No space left on device")
complains(finish(start("-q", "-o", TMP + "/no/such/dir", "-n", 'BEGIN { exit(0); }')), "No such file or directory")

# whatever is written to standard output, and the files of every command
open(TMP + "/stacks", "w").write("a;b 5\n")
open(TMP + "/events", "w").write("1 5\n2 7\n")
open(TMP + "/provider.d", "w").write("provider p { probe x(int); };\n")
E = ["-x", "engine=interp", "-qn", "BEGIN { exit(0); }"]
stdout = [["-l"], ["-l", "--json", "-n", "syscall:::"], ["-V"], ["--version"], ["--help"], ["--json"] + E, ["-S", "-e"] + E]
stdout += [["-d", stage] + E for stage in ("parse", "bind", "ir", "ebpf", "jit")]
stdout += [["help", page] for page in ("flame", "language", "providers", "tracing")] + [["calls", "--show-d", "true"], ["malloc", "record", "--show-d", "true"]]
stdout += [[command, "--help"] for command in ("calls", "check", "flame", "heal", "heat", "list", "profile", "serve", "stack")] + [["list"], ["list", "--json"]]
stdout += [["serve", "--port", "0", "-x", "engine=interp", "-n", "BEGIN { exit(0); }"]]
files = [["flame", "--" + f, TMP + "/stacks"] for f in ("svg", "html", "folded", "json", "pprof", "speedscope")]
files += [["heat", "--" + f, TMP + "/events"] for f in ("svg", "html", "json", "text", "terminal", "plain")]
for argv in stdout + files:
    full = open("/dev/full", "w")
    r = subprocess.run([DESCRY] + argv, stdout=full, stderr=subprocess.PIPE, text=True)
    check(r.returncode == 1 and len(r.stderr.splitlines()) == 1 and "No space left on device" in r.stderr, argv, r)
for argv in files + [["-h", "-s", TMP + "/provider.d"], ["-G", "-s", TMP + "/provider.d"]]:
    complains(finish(start(*argv, "-o", "/dev/full")), "No space left on device")

# a file that may not grow: an error, not the end by a signal; a program that descry starts has its own way with the signal
limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
for argv in [["-l"], ["--help"], ["-x", "engine=interp", "-qn", 'BEGIN { printf("%2000d", 1); exit(0); }'], ["flame", TMP + "/stacks"]]:
    with open(TMP + "/short", "w") as short:
        r = subprocess.run([DESCRY] + argv, stdout=short, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    check(r.returncode == 1 and len(r.stderr.splitlines()) == 1 and "File too large" in r.stderr, argv, r)
r = descry("-x", "engine=interp", "-qw", "-n", 'BEGIN { system("grep -E SigIgn /proc/self/status"); exit(0); }')
ignored = int(r.out.split()[-1], 16)
check(not any(ignored >> sig - 1 & 1 for sig in (signal.SIGPIPE, signal.SIGXFSZ)), "signals of a program that is started", r)

# the reader has ended: descry ends by SIGPIPE as other programs do, without a message
for argv in [["-l"], ["-x", "engine=interp", "-qn", 'tick-5ms { printf("%d\\n", timestamp); }']]:
    p = subprocess.Popen([DESCRY] + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read()
    check(p.wait() == -signal.SIGPIPE and not err, "SIGPIPE", argv, p.returncode, err)

# a reader that has gone: ends, without a word or with one
argv, proc, begun = start("-q", "-n", 'tick-10ms { printf("%d\\n", timestamp); }')
proc.stdout.readline()
proc.stdout.close()
try:
    proc.wait(5)
    err = proc.stderr.read().decode()
    check(proc.returncode != 0 and len(err.splitlines()) <= 1, "closed pipe", proc.returncode, err)
except subprocess.TimeoutExpired:
    proc.kill()
    check(False, "writes on into a closed pipe")
r = sh("%s -q -n 'tick-5ms { printf(\"%%d\\n\", timestamp); }' | head -3 | wc -l" % DESCRY, timeout=20)
check(r.stdout.strip() == "3", "| head -3", r)

# a reader that does not read: two ^C ask for the end, the third one ends descry
read, write = os.pipe()
p = subprocess.Popen([DESCRY, "-x", "engine=interp", "-qn", 'tick-1ms { printf("%4000d", 1); }'], stdout=write, stderr=subprocess.PIPE)


def wait_for(what, holds):
    end = time.monotonic() + 60
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    check(holds(), what, p.pid)


wait_for("the pipe is full", lambda: "pipe_write" in open("/proc/%d/wchan" % p.pid).read())
for n in (1, 2, 3):
    sent = time.monotonic()
    p.send_signal(signal.SIGINT)
    if n < 3:  # the handler has run, and the next one is not taken for the same
        wait_for("signal %d is delivered" % n, lambda: re.search(r"ShdPnd:\s*0+\nSigBlk", open("/proc/%d/status" % p.pid).read()))
        wait_for("apart", lambda: time.monotonic() - sent > 0.5)
        check(p.poll() is None, "ends with the third signal alone", n, p.returncode)
p.stderr.read()
check(p.wait() == -signal.SIGINT, "the third ^C", p.returncode)
os.close(read), os.close(write)

# the same while ^C is held down (a keyboard repeats it 30 times a second), and while a program of system() runs that ignores it
for argv in (["-x", "engine=interp", "-qn", 'tick-1ms { printf("%4000d", 1); }'],
             ["-x", "engine=interp", "-qwn", 'BEGIN { system("trap : INT; echo begun >&2; while :; do sleep 0.1; done"); }']):
    read, write = os.pipe()
    p = subprocess.Popen([DESCRY] + argv, stdout=write, stderr=subprocess.PIPE, start_new_session=True)
    if "-qwn" in argv:
        p.stderr.readline()
    else:
        wait_for("the pipe is full", lambda: "pipe_write" in open("/proc/%d/wchan" % p.pid).read())

    def ended():
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGINT)
            time.sleep(0.03)
        return p.poll() is not None

    wait_for("^C again and again ends it", ended)
    check(p.wait() == -signal.SIGINT, "by the third ^C", argv, p.returncode)
    try:
        os.killpg(p.pid, signal.SIGKILL)  # the shell
    except ProcessLookupError:
        pass
    os.close(read), os.close(write)

# standard output and error closed from the start
check(sh("%s -q -n 'BEGIN { exit(5); }' >&- 2>&-" % DESCRY).returncode in (1, 5), "closed descriptors")

# scripts that cannot be read
open(TMP + "/unreadable.d", "w").write("BEGIN { exit(0); }")
complains(finish(start("-s", TMP + "/missing.d")), "missing.d", "No such file or directory")
complains(finish(start("-s", TMP)), "Is a directory")
open(TMP + "/binary.d", "wb").write(bytes(range(256)) * 20)
r = finish(start("-s", TMP + "/binary.d"))
check(r.rc == 1 and 0 < len(r.err.splitlines()) < 100, "binary file", r)
open(TMP + "/empty.d", "w").close()
r = finish(start("-s", TMP + "/empty.d"))
check(r.rc == 1 and len(r.err.strip().splitlines()) >= 1, "empty file", r)

# no privilege: the message names the missing one
nobody = lambda: (os.setgroups([]), os.setgid(65534), os.setuid(65534))
copy = TMP + "/descry"
shutil.copy(DESCRY, copy)
os.chmod(TMP, 0o755), os.chmod(copy, 0o755)
os.chmod(TMP + "/unreadable.d", 0)
r = subprocess.run([copy, "-s", TMP + "/unreadable.d"], capture_output=True, text=True, preexec_fn=nobody)
check(r.returncode == 1 and "Permission denied" in r.stderr and len(r.stderr.splitlines()) == 1, "unreadable script", r)
r = subprocess.run([copy, "-n", "BEGIN { exit(0); }"], capture_output=True, text=True, preexec_fn=nobody)
check(r.returncode == 1 and re.search("privilege|permission|CAP_|root", r.stderr, re.I) and len(r.stderr.splitlines()) <= 2,
      "without privilege", r)
done()
