#!/usr/bin/env python3
# serial: a process whose first thread has ended while another one works (pthread_exit(3) in main()): every command sees it, and it alone.
from live import *

if not shutil.which("cc") or os.geteuid():
    skip("needs cc and root")
SOURCE = r"""
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n * 3 + 1; }
static void *volatile lost;
static void *thread(void *first)
{
	char way;
	pthread_join(*(pthread_t *)first, NULL);
	lost = malloc(777);
	lost = NULL;
	free(malloc(10)); /* no register has the address any more */
	(void)!write(1, "ready\n", 6);
	while (read(0, &way, 1) == 1) {
		for (int i = 0; i < 20; i++) {
			void *volatile p = malloc((size_t)work(i));
			free(p);
		}
		(void)!write(1, "done\n", 5);
	}
	exit(7);
}
int main(void)
{
	static pthread_t first;
	pthread_t t;
	first = pthread_self();
	pthread_create(&t, NULL, thread, &first);
	pthread_exit(NULL);
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-pthread", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)


class Target:
    def __init__(self):
        self.p = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(self.p.stdout.readline() == b"ready\n", "it begins", self.p.poll())
        self.pid = str(self.p.pid)

    def works(self):
        self.p.stdin.write(b"x")
        self.p.stdin.flush()
        return check(self.p.stdout.readline() == b"done\n", "it works", self.p.poll())

    def ends(self):
        self.p.stdin.close()
        return check(self.p.wait() == 7, "status", self.p.returncode)


def traced(engine, program):
    """Returns what descry counts in one of two such processes."""
    one, other = Target(), Target()
    d = subprocess.Popen([DESCRY, "-q", "-x", "engine=" + engine, "-p", one.pid, "-n", 'BEGIN { printf("begun\\n"); }' + program],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = d.stdout.readline()
    other.works()
    one.works()
    one.ends()
    out, said = d.communicate()
    other.ends()
    return begun + out, said


COUNT = 'pid$target:a.out:work:entry { @ = count(); } pid$target:a.out:work:return { @r[arg1] = count(); }'
out, said = traced("kernel", COUNT)
if not out:
    skip("no kernel engine: " + said)
check(out.split()[:2] == ["begun", "20"] and len(out.split()) == 42, "kernel", out, said)
out, said = traced("auto", COUNT)
check(out.split()[:2] == ["begun", "20"], "auto", out, said)
out, said = traced("kernel", 'pid$target:a.out:work:entry { @[ustack(2)] = count(); }')
check("program`work" in out and "program`thread" in out, "stacks", out, said)
out, said = traced("inproc", COUNT)
check("first thread has ended" in said and "kernel" in said and "begun" not in out, "inproc is refused", out, said)

# of two such processes, and of processes with -x follow, each firing counts once
for options in [], ["-x", "follow"]:
    both = Target(), Target()
    d = subprocess.Popen([DESCRY, "-q", "-x", "engine=kernel", *options, "-p", both[0].pid, "-p", both[1].pid, "-n", 'BEGIN { printf("begun\\n"); } ' +
                          ",".join("pid%s:a.out:work:entry" % t.pid for t in both) + " { @[pid] = count(); }"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = d.stdout.readline()
    for t in both:
        t.works()
    for t in both:
        t.ends()
    out, said = d.communicate()
    check(begun == "begun\n" and sorted(out.split()) == sorted([both[0].pid, "20", both[1].pid, "20"]), "two", options, out, said)


def until_seen(t, path, seen, *command):
    """Lets the process work until `seen` says that the command has seen it. Returns what the command wrote."""
    d = subprocess.Popen([DESCRY, *command, "-o", path, "-p", t.pid], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _ in range(600):
        if (os.path.exists(path) and seen(path)) or d.poll() is not None:
            break
        t.works()
        time.sleep(0.05)
    t.ends()
    return d.communicate()[0], d.returncode


path = os.path.join(TMP, "calls")
said = until_seen(Target(), path, lambda p: b"malloc(" in open(p, "rb").read(), "calls")
check(re.search(r"malloc\(58\) += 0x", open(path).read()), "calls", said, open(path).read()[:1000])

path = os.path.join(TMP, "a.dma")
said = until_seen(Target(), path, lambda p: os.path.getsize(p) > 2000, "malloc", "record")
r = subprocess.run([DESCRY, "malloc", "report", path], capture_output=True, text=True)
check(re.search(r"\b[1-9]\d* calls", r.stdout), "malloc record", said, r)

t = Target()
r = subprocess.run([DESCRY, "leaks", "-p", t.pid], stdin=subprocess.DEVNULL, capture_output=True, text=True)
check(re.search(r"\b1 leak: 1 block, 792 bytes", r.stdout), "leaks", r)
t.ends()
done()
