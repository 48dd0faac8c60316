#!/usr/bin/env python3
# descry malloc record of a command that forks and executes: each process has a file, whose counts are exact; each way to execute a program
# is followed, the environment stays as it was, and what is not recorded is said.
# timeout: 600
from live import *

TRACEE = os.path.join(BUILD, "test", "tracee_executes")
DIR = os.path.join(TMP, "d")
FILE = os.path.join(DIR, "a.dma")
ENV = dict(os.environ, PATH=os.path.join(BUILD, "test") + ":" + os.environ["PATH"])


def report(path, lost=0):
    p = subprocess.run([DESCRY, "malloc", "report", "--json", path], capture_output=True, text=True)
    r = json.loads(p.stdout) if check(p.returncode == 0, "report", p.stderr) else {}
    check(r.get("complete") and r.get("replaced") == 0 and r.get("lost") <= lost, "whole", path, r.get("complete"), r.get("lost"), r.get("replaced"))
    return r


def read_all(lost=0):
    """The reports of the first and of the other processes, by their commands; each file is listed once."""
    first = report(FILE)
    listed = {p["file"]: p for p in first["processes"]}
    check(sorted([*listed, "a.dma"]) == sorted(os.listdir(DIR)), "files", listed, os.listdir(DIR))
    others = []
    for name, p in listed.items():
        r = report(os.path.join(DIR, name), lost)
        events = sum(r[k] for k in ("malloc", "calloc", "aligned", "realloc", "realloc_from", "free", "map_calls"))
        check(events == p["calls"] and r["command"] == p["command"] and int(r["parent"]) == p["parent"], "listed", p, r["command"], events)
        others.append(r)
    return first, others


def record(*command, rc=0, options=(), said=None, lost=0, **more):
    shutil.rmtree(DIR, ignore_errors=True)
    os.mkdir(DIR)
    p = subprocess.run([DESCRY, "malloc", "record", "-o", FILE, *options, *command], capture_output=True, text=True,
                       **dict(dict(env=ENV, stdin=subprocess.DEVNULL), **more))
    check(p.returncode == rc and ("are not recorded" in p.stderr) == (said is not None) and (said or "") in p.stderr, "exit", p.returncode, command,
          p.stdout[-500:], p.stderr[-2000:])
    return (p, *read_all(lost))


def of_size(r, most):
    return sum(s["blocks"] for s in r["sizes"] if s["to"] == most)


def leaf_of(others):
    leaves = [r for r in others if "leaf 100" in r["command"] and not r["command"].startswith("sh ")]
    return check(len(leaves) == 1, "one leaf", [r["command"] for r in others]) and leaves[0]


for way in ("execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat", "bare", "vfork", "posix_spawn", "posix_spawnp",
            "system", "popen"):
    p, first, others = record(TRACEE, way)
    x = {"execvpe": "2", "execle": "2", "fexecve": "2", "execveat": "2", "bare": "1"}.get(way, "none")
    check(p.stdout == "none none %s\n" % x, way, "environment", p.stdout)
    check(of_size(first, 16) == 3 and (way == "popen" or first["malloc"] == 3), way, "its own", first["sizes"])
    leaf = leaf_of(others)
    check(leaf and leaf["malloc"] == 101 and not leaf["forked"] and leaf["unknown"] == 0, way, "leaf", leaf)

# in another pid namespace; below a set-user-ID program of the same user; started by the dynamic linker
for command in ("unshare -pf sh -c '%s leaf 100; :'", "su root -c '%s leaf 100; :'", "/lib64/ld-linux-x86-64.so.2 %s leaf 100"):
    name = command.split()[0]
    if os.geteuid() or not shutil.which(name):
        print("note: not tried with " + name)
        continue
    p, first, others = record("sh", "-c", (command + "; exit 9") % TRACEE, rc=9)
    leaf = [r["malloc"] for r in others if TRACEE + " leaf" in r["command"] and " -c " not in r["command"]]
    check(leaf == [101], name, [r["command"] for r in others])

# several threads at one time
p, first, others = record(TRACEE, "threads")
check(sorted(p.stdout.splitlines()) == ["none none 3", "none none none", "none none none", "none none none"], "threads", p.stdout)
check([r["malloc"] for r in others if "leaf" in r["command"] and not r["command"].startswith("sh ")] == [101] * 4, "their leaves", [r["command"] for r in others])

# a process that executes a program has two files; the status is that of the last
p, first, others = record(TRACEE, "here", rc=9)
check(first["malloc"] == 3 and leaf_of(others)["malloc"] == 101, "here", first["malloc"])
p, first, others = record(TRACEE, "here", rc=9, options=["--alone"])
check(first["malloc"] == 3 and not others, "alone", first["malloc"])
# what there is not is no program
p, first, others = record(TRACEE, "none")
check(first["malloc"] == 3 and [(r["malloc"], r["forked"]) for r in others] == [(5, True)], "none", others)

# a child, its child, and its threads; the blocks of its parent that it frees
p, first, others = record(TRACEE, "family")
child = [r for r in others if r["unknown"]]
check(first["malloc"] == 3 and first["free"] == 0 and len(others) == 2 and len(child) == 1, "family", first["malloc"], len(others))
check(all(r["forked"] for r in others), "they are forked")
if child:
    check(child[0]["unknown"] == 3 and child[0]["threads"] == 3, "the child", child[0]["unknown"], child[0]["threads"])
    check(of_size(child[0], 32) == 10 and of_size(child[0], 64) == 60, "the child's blocks", child[0]["sizes"])
    check([r["malloc"] for r in others if r is not child[0]] == [20], "the child's child", [r["malloc"] for r in others])
p = subprocess.run([DESCRY, "malloc", "report", next((f for f in (os.path.join(DIR, n) for n in sorted(os.listdir(DIR))) if report(f)["unknown"]), FILE)],
                   capture_output=True, text=True)
check("allocated by its parent, before the fork" in p.stdout, "said", p.stdout[:1000])
# with stacks, which the child takes by tables of its own
p, first, others = record(TRACEE, "family", options=["-k", "20"])
for r in [first, *others]:
    for s in r["bytes_stacks"]:
        check(any("main" in f or "in_thread" in f for f in s["frames"]) and not any("stack ends" in f for f in s["frames"]), "stack", s["frames"])
    check(sum(s["blocks"] for s in r["bytes_stacks"]) == r["allocated"], "all stacks", r["allocated"])

# names of the program before it are not those of the process's next one
p, first, others = record("sh", "-c", "exec '%s' leaf 100" % TRACEE, rc=9, options=["-k", "20"])
leaf = leaf_of(others)
stacks = [s["frames"] for s in leaf["count_stacks"]] if leaf else []
check(stacks and all(any("tracee_executes`main" in f for f in s) for s in stacks), "names", stacks)

# a fork within malloc(3): the child's call before it may ask for memory is counted as lost, and one within a call of the allocator does not count
p, first, others = record(TRACEE, "signal", lost=1)
check(first["malloc"] == first["free"] + 3 == 200003, "signal", first["malloc"], first["free"])
for r in others:
    check(of_size(r, 64) in (1, 2) and of_size(r, 64) + r["lost"] <= 2 and r["forked"], "a child of a handler", r["sizes"], r["lost"])
# one that may make no system call is left alone
p, first, others = record(TRACEE, "filter", said="1 forked children or executed programs")
check(first["malloc"] == 3 and not others, "filter", others)
# Says whether the library's file, of which its parent has a descriptor, can be changed.
WRITER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
int main(void)
{
	for (int fd = 3; fd < 64; fd++) {
		char path[40], name[100] = "";
		int w;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), fd);
		if (readlink(path, name, sizeof(name) - 1) <= 0 || !strstr(name, "memfd:descry-malloc-library"))
			continue;
		w = open(path, O_RDWR);
		printf("%s\n", (w >= 0 && (!ftruncate(w, 0) || write(w, "x", 1) == 1 ||
			mmap(0, 4096, PROT_WRITE, MAP_SHARED, w, 0) != MAP_FAILED)) ? "can be changed" : "no");
		return 0;
	}
	return 0;
}
"""
# nor is a static program recorded
if shutil.which("cc"):
    with open(os.path.join(TMP, "s.c"), "w") as f:
        f.write("int main(void) { return 3; }")
    if subprocess.run(["cc", "-static", "-o", os.path.join(TMP, "s"), os.path.join(TMP, "s.c")], capture_output=True).returncode == 0:
        p, first, others = record("sh", "-c", "'%s'; exit 4" % os.path.join(TMP, "s"), rc=4, said="1 forked children or executed programs")
    # nor may a recorded program change the library's text, which is that of the others
    with open(os.path.join(TMP, "w.c"), "w") as f:
        f.write(WRITER)
    if subprocess.run(["cc", "-o", os.path.join(TMP, "w"), os.path.join(TMP, "w.c")], capture_output=True).returncode == 0:
        p, first, others = record(os.path.join(TMP, "w"))
        check(p.stdout == "no\n", "the library's text", p.stdout)

# or one with an allocator of its own
if shutil.which("cc"):
    with open(os.path.join(TMP, "own.c"), "w") as f:
        f.write("""#include <stddef.h>
static char room[1 << 20]; static size_t used;
void *malloc(size_t n) { void *p = room + used; used += (n + 15) & ~15ul; return p; }
void free(void *p) { (void)p; } void *calloc(size_t n, size_t m) { return malloc(n * m); } void *realloc(void *p, size_t n) { (void)p; return malloc(n); }
int main(void) { return malloc(10) == NULL; }""")
    check(subprocess.run(["cc", "-o", os.path.join(TMP, "own"), os.path.join(TMP, "own.c")]).returncode == 0, "cc own")
    p, first, others = record("sh", "-c", "'%s'; exit 4" % os.path.join(TMP, "own"), rc=4)
    check(re.search(r"a\.\d+\.dma: the program has an allocator of its own", p.stderr) and len(p.stderr.split("allocator of its own")) == 2, "own", p.stderr)
    # a program at a fixed address that takes the address of malloc() has none, though its symbol for that has an address
    with open(os.path.join(TMP, "plt.c"), "w") as f:
        f.write("#include <stdlib.h>\nint main(void) { void *(*volatile f)(size_t) = malloc; return f(10) == NULL; }")
    check(subprocess.run(["cc", "-O0", "-fno-pie", "-no-pie", "-o", os.path.join(TMP, "plt"), os.path.join(TMP, "plt.c")]).returncode == 0, "cc plt")
    p, first, others = record(os.path.join(TMP, "plt"))
    check("allocator of its own" not in p.stderr, "plt", p.stderr)

# the processes that stay are recorded to their end, or to ^C
for how in "end", "^C":
    shutil.rmtree(DIR)
    os.mkdir(DIR)
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, TRACEE, "stays"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    kill_at_end(d)
    # it is known only when it allocates
    if how == "end":
        d.stdin.write("x")
        d.stdin.flush()
        check(d.stdout.readline() == "end\n", "it ends")
    d.stdin.close()
    d.wait()
    first, others = read_all()
    check(first["malloc"] == 3 and [r["malloc"] for r in others] == ([7] if how == "end" else []), "stays", how, others)
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
kill_at_end(d)
sleeper = int(d.stdout.readline())
line = d.stderr.readline()
check("the command has ended; 1 of its processes" in line, "it waits", line)
d.send_signal(signal.SIGINT)
check(d.wait() == 0, "^C", d.stderr.read())
os.kill(sleeper, signal.SIGKILL)

# the tracer is killed: the processes go on, what they execute finds nothing of descry, and the files are valid up to there
for i in range(int(os.environ.get("DESCRY_TORTURE", "3"))):
    shutil.rmtree(DIR)
    os.mkdir(DIR)
    STOP = os.path.join(TMP, "stop")
    if os.path.exists(STOP):
        os.unlink(STOP)
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, "sh", "-c",
                          "n=0; while [ ! -e '%s' ]; do n=$((n + 1)); '%s' leaf 5 >/dev/null; [ $? = 9 ] || exit; done; '%s' leaf 5; echo end" % (STOP, TRACEE, TRACEE)],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kill_at_end(d)
    while len(os.listdir(DIR)) < 6 and d.poll() is None:
        time.sleep(0.002)
    time.sleep(i % 20 / 1000)
    d.kill()
    open(STOP, "w").close()
    out, err = d.communicate()
    check(out == "none none none\nend\n" and err == "", "killed", i, out, err)
    # one that is new may still be without its head
    for name in sorted(os.listdir(DIR), key=lambda n: -os.stat(os.path.join(DIR, n)).st_mtime)[:6]:
        if os.stat(os.path.join(DIR, name)).st_size:
            p = subprocess.run([DESCRY, "malloc", "report", "--json", os.path.join(DIR, name)], capture_output=True, text=True)
            check(p.returncode == 0 and json.loads(p.stdout)["damage"] is None, "after the kill", i, name, p.stderr)

# a real program
if shutil.which("cc"):
    with open(os.path.join(TMP, "t.c"), "w") as f:
        f.write("#include <stdio.h>\nint main(void) { puts(\"hi\"); return 0; }\n")
    p, first, others = record("cc", "-O1", "-o", os.path.join(TMP, "t"), os.path.join(TMP, "t.c"), options=["-k", "8"])
    compiler = [r for r in others if re.search(r"/cc1 ", r["command"])]
    check("clang" in first["command"] or (len(compiler) == 1 and compiler[0]["malloc"] > 1000 and compiler[0]["unknown"] == 0), "cc1", compiler)

# strangers who do not know the secret get no answer
import socket
with open("/proc/net/unix") as f:
    before = f.read()
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
kill_at_end(d)
name = None
while not name and d.poll() is None:
    with open("/proc/net/unix") as f:
        name = next((m[0] for m in re.findall(r"@(descry-malloc-(\d+))", f.read()) if m[0] not in before), None)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("")
s.settimeout(0.3)
for message in b"", b"x" * 16, bytes.fromhex("63646c61") + bytes(12), b"y" * 5000:
    s.sendto(message, "\0" + name)
try:
    check(False, "an answer", s.recv(100))
except TimeoutError:
    pass
# nor do they fill the queue: a tracer that is stopped takes nothing out of it
d.send_signal(signal.SIGSTOP)
s.setblocking(False)
try:
    for i in range(1000):
        s.sendto(b"x" * 16, "\0" + name)
except BlockingIOError:
    check(False, "a stranger's messages are queued", i)
d.send_signal(signal.SIGCONT)
d.stdin.close()
check(d.wait() == 0 and report(FILE)["processes"] == [], "strangers")

# when the tracer was killed, a stranger who takes its address gives a child no memory
shutil.rmtree(DIR)
os.mkdir(DIR)
with open("/proc/net/unix") as f:
    before = f.read()
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; '%s' stays; echo ready; wait" % TRACEE],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
kill_at_end(d)
sleeper = int(d.stdout.readline())
d.stdout.readline()
with open("/proc/net/unix") as f:
    name = next(m for m in re.findall(r"@(descry-malloc-\d+)", f.read()) if m not in before)
d.kill()
d.wait()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0" + name)
s.settimeout(1)
fd = os.memfd_create("stranger", os.MFD_ALLOW_SEALING)
os.ftruncate(fd, 400 << 20)
import struct
os.pwrite(fd, struct.pack("<II", 0x616c6463, 5), 0)
d.stdin.write("x")
d.stdin.flush()
try:
    hello, _, _, sender = s.recvmsg(100)
    for size in 512 * (256 << 10) + 69632, 1 << 20:
        socket.send_fds(s, [struct.pack("<IIQQ", 0x616c6463, 0, size, 0)], [fd, fd], 0, sender)
except OSError:
    pass
check(d.stdout.readline() == "end\n", "the child goes on")
check(not any(os.pread(fd, 1 << 20, at).strip(b"\0") for at in range(1 << 20, 5 << 20, 1 << 20)) and not any(os.pread(fd, 4096, 8)), "it wrote nothing")
os.kill(sleeper, signal.SIGKILL)

# what is no file is written by all processes: the one that was opened, although its path leads elsewhere by now
os.mkfifo(os.path.join(TMP, "fifo"))
victim = os.path.join(TMP, "victim")
open(victim, "w").write("kept")
reader = subprocess.Popen(["cat", os.path.join(TMP, "fifo")], stdout=subprocess.PIPE)
os.symlink(victim, os.path.join(TMP, "link"))
r = descry("malloc", "record", "-o", os.path.join(TMP, "fifo"), "sh", "-c", "mv -f '%s/link' '%s/fifo'; /bin/true; exit 0" % (TMP, TMP), rc=1)
out = reader.communicate(timeout=60)[0]
check("Illegal seek" in r.err and out.count(b"DESCRYMA") == 3 and open(victim, "rb").read() == b"kept", "written to what was opened", r, out.count(b"DESCRYMA"))
done()
