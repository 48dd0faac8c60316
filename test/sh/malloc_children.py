#!/usr/bin/env python3
# timeout: 300
# descry malloc record -p PID -f: what the process forks and executes after the attach is recorded, each program in a file of its own, with
# exactly its calls; without -f it is not. A call of posix_memalign() whose pointer root's program may not read is said to be left out.
import glob

from live import *

if not shutil.which("cc"):
    skip("there is no cc")
SOURCE = """#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void work(int n, size_t size) { for (int i = 0; i < n; i++) { void *volatile p = malloc(size); free(p); } }
static void end_of(pid_t pid) { waitpid(pid, 0, 0); }
int main(int argc, char **argv) {
  char c; pid_t pid; void *p = 0;
  if (argc > 2) { work(atoi(argv[1]), atoi(argv[2])); return 0; }
  write(1, "r", 1);
  for (struct pollfd in = { 0, POLLIN, 0 }; !poll(&in, 1, 1);) work(1, 20);
  read(0, &c, 1);
  work(100, 5000);
  if (!(pid = fork())) { work(200, 6000); if (!posix_memalign(&p, 64, 9000)) free(p); _exit(0); }
  end_of(pid);
  if (!(pid = fork())) { work(10, 6100); execl(argv[0], argv[0], "300", "7000", (char *)0); _exit(9); }
  end_of(pid);
  if (!(pid = vfork())) { execl(argv[0], argv[0], "400", "8000", (char *)0); _exit(9); }
  end_of(pid);
  work(100, 5000);
  write(1, "d", 1);
  read(0, &c, 1);
  execl(argv[0], argv[0], "500", "20000", (char *)0);
  return 9; }
"""
CHILD = os.path.join(TMP, "child")
with open(CHILD + ".c", "w") as f:
    f.write(SOURCE)
check(subprocess.run(["cc", "-w", "-O1", "-fno-builtin", "-o", CHILD, CHILD + ".c"]).returncode == 0, "cc")
DIR = os.path.join(TMP, "d")
FILE = os.path.join(DIR, "a.dma")


def blocks(r, size):
    """How many of the sizes up to a power of 2 above `size`."""
    return sum(s["blocks"] for s in r["sizes"] if s["to"] // 2 < size <= s["to"])


def record(*options):
    """Returns {path: report}, what descry said, and the pid."""
    shutil.rmtree(DIR, True)
    os.mkdir(DIR)
    p = subprocess.Popen([CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    kill_at_end(p)
    check(p.stdout.read(1) == b"r", "it waits")
    d = subprocess.Popen([DESCRY, "malloc", "record", "-o", FILE, "-p", str(p.pid), *options], stderr=subprocess.PIPE, text=True)
    kill_at_end(d)
    end = time.monotonic() + 60
    while not (os.path.exists(FILE) and os.path.getsize(FILE) > 100) and d.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    for what in (b"x", b"y"):
        p.stdin.write(what)
        p.stdin.flush()
        if what == b"x":
            check(p.stdout.read(1) == b"d", "it has worked")
    check(p.wait() == 0, "the program goes on")
    said = d.communicate(timeout=120)[1]
    check(d.returncode == 0, "record", said)
    reports = {}
    for path in glob.glob(os.path.join(DIR, "*.dma")):
        r = subprocess.run([DESCRY, "malloc", "report", "--json", path], capture_output=True, text=True)
        reports[path] = json.loads(r.stdout) if check(r.returncode == 0, "report", path, r.stderr) else {}
    return reports, said, p.pid


for options in ((), ("-k", "8")):
    reports, said, pid = record("-f", *options)
    first = reports.pop(FILE)
    check(blocks(first, 5000) == 200 and blocks(first, 6000) == 200 == blocks(first, 5000), "the process itself", first["sizes"])
    check(len(reports) == 5 and len(first["processes"]) == 5, "files", list(reports), first["processes"])
    check(all(r["complete"] and not r["lost"] or blocks(r, 6000) == 200 for r in reports.values()), "whole", said)
    by_work = {(blocks(r, 7000), blocks(r, 20000)): r for r in reports.values()}
    for n, size, forked in ((200, 6000, True), (10, 6100, True), (300, 7000, False), (400, 8000, False)):
        found = [r for r in reports.values() if blocks(r, size) == n and r["forked"] == forked]
        check(len(found) == 1 and found[0]["free"] >= n and found[0]["replaced"] == 0, n, "blocks of", size, said,
              [(r["forked"], r["sizes"]) for r in reports.values()])
    path = os.path.join(DIR, "a.%d.dma" % pid)
    check(path in reports and blocks(reports[path], 20000) == 500 and not reports[path]["forked"], "a program that the process itself executes",
          list(reports))
    commands = [x["command"] for x in first["processes"]]
    check(len(commands) == 5 and sum(c.endswith(" 300 7000") for c in commands) == sum(c.endswith(" 400 8000") for c in commands) == 1, "commands", commands)
    aligned = sum(r["aligned"] for r in reports.values())
    check(aligned == 1 or "1 calls were left out" in said, "posix_memalign", aligned, said)

reports, said, pid = record()
check(list(reports) == [FILE] and blocks(reports[FILE], 5000) == 200, "without -f", list(reports), said)
done()
