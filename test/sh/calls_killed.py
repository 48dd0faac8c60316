#!/usr/bin/env python3
# timeout: 900
# descry calls -p of a process with eight threads in the traced functions, ended by ^C or SIGKILL at a random instant, the attach included. The
# process runs on, each thread's calls have their right results, and its text becomes its own again. DESCRY_TORTURE=N: so many, 12 if not given.
import random
import select

from calls_tracee import *

ENDS = int(os.environ.get("DESCRY_TORTURE", "12"))
THREADS = 8
WAIT = 300  # seconds, far more than anything here takes
WORKERS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { THREADS = 8 };
static volatile long turns[THREADS];
static int by_value(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
static void *work(void *arg)
{
	const long n = (long)arg;
	unsigned seed = 1, want = 1;
	char text[16];

	for (long i = 0;; i++) {
		char *p = malloc(24 + i % 100);

		snprintf(p, 24, "%ld", i);
		if (atol(p) != i || strlen(p) != strcspn(p, "x") || strcmp(p, p + strlen(p)) <= 0)
			abort();
		free(p);
		strcpy(text, "hgfedcba");
		qsort(text, 8, 1, by_value);
		want = 1;
		seed = 1;
		if (strcmp(text, "abcdefgh") || rand_r(&seed) != rand_r(&want))
			abort();
		turns[n]++;
		if (i % 64 == 0)
			usleep(500);
	}
	return NULL;
}
int main(void)
{
	pthread_t t;

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t, NULL, work, (void *)i))
			return 1;
	for (;;) {
		for (int i = 0; i < THREADS; i++)
			printf("%ld ", turns[i]);
		puts("");
		fflush(stdout);
		usleep(5000);
	}
}
"""
with open("w.c", "w") as f:
    f.write(WORKERS)
check(sh("cc -O1 -fno-builtin -U_FORTIFY_SOURCE -o w w.c -pthread").returncode == 0, "built")
random.seed(int(os.environ.get("DESCRY_SEED", "0")) or time.time_ns())
t = subprocess.Popen(["./w"], stdout=subprocess.PIPE, text=True)
kill_at_end(t)


def turns():
    """Of each thread; none when the process has ended, or its first thread does not go on."""
    if not select.select([t.stdout], [], [], WAIT)[0]:
        check(False, "the first thread does not go on")
        return []
    return list(map(int, t.stdout.readline().split()))


def state():
    """What is known of both programs, for a wait that does not end."""
    tasks = "/proc/%d/task" % t.pid
    threads = [[line for line in open("%s/%s/status" % (tasks, tid)) if line.startswith(("State", "TracerPid", "Sig"))] + [open("%s/%s/wchan" % (tasks, tid)).read()]
               for tid in os.listdir(tasks)]
    return text_is_its_own(t.pid), "memfd:descry" in open("/proc/%d/maps" % t.pid).read(), threads, sh("ps -ef | grep -w 'calls -X'").stdout


attached = 0
for i in range(ENDS):
    engine, how, end = engines[i % len(engines)], random.choice(([], ["-c"], ["-k"], ["-c", "--time-all"])), random.choice((signal.SIGKILL, signal.SIGINT))
    d = subprocess.Popen([DESCRY, "calls", "-X", "engine=" + engine, *how, "-o", "/dev/null", "-p", str(t.pid)], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    kill_at_end(d)
    # up to half a second into the trace, or in the middle of the attach
    if random.random() < 0.3:
        time.sleep(random.random() * 0.3)
    else:
        while d.poll() is None and t.poll() is None and text_is_its_own(t.pid):
            turns()
        time.sleep(random.random() * 0.5)
    attached += engine == "inproc" and t.poll() is None and not text_is_its_own(t.pid)
    check(d.poll() is None, i, engine, how, "ends early", d.stderr.read() if d.poll() is not None else "")
    d.send_signal(end)
    try:
        err = d.communicate(timeout=WAIT)[1]
    except subprocess.TimeoutExpired:
        check(False, i, engine, how, end, "does not end", d.poll(), state())
        break
    check(d.returncode == -signal.SIGKILL if end == signal.SIGKILL else d.returncode in (0, -signal.SIGINT), i, engine, how, end, d.returncode, err)
    # the watchdog of a killed tracer restores the text
    before, limit = turns(), time.monotonic() + WAIT
    while t.poll() is None and not (text_is_its_own(t.pid) and all(now > was for now, was in zip(turns(), before))):
        if time.monotonic() > limit:
            break
    if time.monotonic() > limit:
        check(False, i, engine, how, end, "is not let go", state(), err)
        break
    if t.poll() is not None:
        check(False, i, engine, how, end, "the process has ended with", t.returncode)
        break
check(attached or "inproc" not in engines, "never attached")


def undo_fill(pid):
    """Writes the file's bytes behind the jumps that were written to the C library's text, as the kernel does when it removes a breakpoint there."""
    m = re.search(r"^(\w+)-(\w+) r-xp (\w+) \S+ \d+ +(/\S*libc\.so\.6)$", open("/proc/%d/maps" % pid).read(), re.M)
    lo, hi, off = (int(m[i], 16) for i in (1, 2, 3))
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as f, open(m[4], "rb") as file:
        f.seek(lo)
        mine = f.read(hi - lo)
        file.seek(off)
        own = file.read(hi - lo)
        at = [i + 5 for i in jumps_in(mine, own)]
        for i in at:
            f.seek(lo + i)
            f.write(own[i:i + 1])
    return len(at)


def jumps_in(mine, own):
    """Where a jump of five bytes begins, behind which a byte was changed, too."""
    return [i for i in range(min(len(mine), len(own)) - 6) if mine[i] == 0xe9 and mine[i:i + 5] != own[i:i + 5] and mine[i + 5] == 0xcc != own[i + 5]
            and mine[i - 1] == own[i - 1]]


if "inproc" in engines and t.poll() is None:
    for end in signal.SIGINT, signal.SIGKILL:
        d = subprocess.Popen([DESCRY, "calls", "-X", "engine=inproc", "-o", "/dev/null", "-p", str(t.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        kill_at_end(d)
        while d.poll() is None and text_is_its_own(t.pid):
            turns()
        n, limit = 0, time.monotonic() + WAIT
        while not n and time.monotonic() < limit:
            n = undo_fill(t.pid)
        check(n, "bytes behind jumps")
        d.send_signal(end)
        d.communicate()
        while not text_is_its_own(t.pid) and time.monotonic() < limit:
            turns()
        check(text_is_its_own(t.pid), "text with bytes of its own behind jumps", end)
t.kill()
t.communicate()
if "DESCRY_TORTURE" in os.environ:
    print("note: ended %d times, %d of them while the text was changed" % (ENDS, attached))
done()
