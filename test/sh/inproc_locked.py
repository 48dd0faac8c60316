#!/usr/bin/env python3
# serial: processes in which the in-process engine's memory would be locked, exceed a limit, or which may not read the processor's counter: all
# of them do what they do alone.
from live import *

if not shutil.which("cc") or os.geteuid():
    skip("needs cc and root")
SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n * 3 + 1; }
static void *thread(void *arg) { work(1); return NULL; }
static long locked(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kb);
	fclose(f);
	return kb;
}
__attribute__((noinline)) int nap(void) { return usleep(3000) - 1; }
int main(int argc, char **argv)
{
	char line[10];
	struct rlimit l = { 1l << 30, 1l << 30 };
	pthread_t t;
	void *p;
	if (!strcmp(argv[1], "both") && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 1;
	if (!strcmp(argv[1], "future") && mlockall(MCL_FUTURE))
		return 1;
	if (!strcmp(argv[1], "counter") && prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		return 1;
	if (!strcmp(argv[1], "space") && setrlimit(RLIMIT_AS, &l))
		return 1;
	if (!strcmp(argv[1], "data") && setrlimit(RLIMIT_DATA, &l))
		return 1;
	if (!strcmp(argv[1], "some") && mlock(malloc(100), 100))
		return 1;
	(void)!write(1, "ready\n", 6);
	(void)!read(0, line, 1);
	for (int i = 0; i < 20; i++) {
		nap();
		work(i);
		if (i == 1 && !strcmp(argv[1], "later") && prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
			return 1;
		if (i == 4 && (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL)))
			return 1;
	}
	(void)!read(0, line, 1);
	if (locked() > 100000)
		return 2;
	p = mmap(NULL, 900l << 20, PROT_READ | PROT_WRITE, argv[1][0] == 's' || argv[1][0] == 'd' ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE |
		 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED && (argv[1][0] == 's' || argv[1][0] == 'd') ? 3 : 7;
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)


def traced(way, *options):
    """Returns the program's status, and what descry printed and said."""
    t = subprocess.Popen([PROGRAM, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not check(t.stdout.readline() == b"ready\n", way, "begins", t.poll()):
        return None, "", ""
    return traced_to_exit(t, "-q", *options, "-p", str(t.pid), "-n",
                          'BEGIN { printf("begun\\n"); } pid$target:a.out:work:entry { @ = count(); } pid$target:a.out:nap:entry { self->t = timestamp; } '
                          'pid$target:a.out:nap:return { @naps = sum(timestamp - self->t >= 3000000); } pid$target:a.out:work:entry /arg0 == 19/ { exit(0); }')


kernel = traced("none", "-x", "engine=kernel")
if kernel[1].split() != ["begun", "21", "20"]:
    skip("no kernel engine: " + kernel[2])
for way in "both", "space", "data", "some", "counter", "later":
    status, out, said = traced(way)
    check(status == 7 and out.split() == ["begun", "21", "20"], way, status, out, said)
for way, why, *options in (("both", "mlockall", "-x", "engine=inproc"), ("future", "mlockall")):
    status, out, said = traced(way, *options)
    check(status == 7 and why in said and not out.split(), way, "refused", status, out, said)
status, out, said = traced("some", "-x", "engine=inproc")
check(status == 7 and out.split() == ["begun", "21", "20"], "locked in part", status, out, said)
done()
