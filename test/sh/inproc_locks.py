#!/usr/bin/env python3
# Robust mutexes and those with priority inheritance: glibc's pthread_mutex_lock() jumps to another function for them, whose returns are its own. So
# plockstat sees what the call returns, and not what was in the register at the jump.
# serial
from live import *

exe = TMP + "/locks"
open(exe + ".c", "w").write(r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m[3];
static void *dies(void *a)
{
	pthread_mutex_lock(&m[0]);
	return a;
}
static void *waits(void *a)
{
	pthread_mutex_lock(&m[1]);
	pthread_mutex_unlock(&m[1]);
	return a;
}
int main(void)
{
	pthread_mutexattr_t a;
	pthread_t t;

	printf("%ld %ld\n", (long)&m[0], (long)&m[1]);
	fflush(stdout);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&m[0], &a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&m[1], &a);
	for (int i = 0; i < 7; i++)
		for (int k = 0; k < 2; k++) {
			pthread_mutex_lock(&m[k]);
			pthread_mutex_unlock(&m[k]);
		}
	pthread_mutex_lock(&m[1]);
	pthread_create(&t, NULL, waits, NULL);
	usleep(200000);
	pthread_mutex_unlock(&m[1]);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, dies, NULL);
	pthread_join(t, NULL);
	return pthread_mutex_lock(&m[0]) != 130; /* EOWNERDEAD */
}
""")
subprocess.run(["cc", "-O1", "-pthread", "-o", exe, exe + ".c"], check=True)
for engine in engines_here():
    r = descry("--json", "-x", "engine=" + engine, "-n", "plockstat$target:::mutex-acquire, plockstat$target:::mutex-error, plockstat$target:::mutex-blocked { @[probename, arg0, arg1] = count(); } "
               "pid$target::pthread_mutex_lock:return { @r[(int)arg1] = count(); }", c=exe)
    places = re.search(r"^(\d+) (\d+)$", r.out, re.M)
    if not check(places, engine, r):
        continue
    robust, inherits = map(int, places.groups())
    got = {(k[0], k[2]): n for k, n in r.aggs().items() if k[1] == robust}
    check(got == {("mutex-acquire", 0): 8, ("mutex-error", 130): 1}, engine, "robust", got)
    got = {(k[0], k[2]): n for k, n in r.aggs().items() if k[1] == inherits}
    check(got == {("mutex-acquire", 0): 9, ("mutex-blocked", 1): 1}, engine, "inherits priorities", got)
    results = r.aggs("r")
    check(results.get(130) == 1 and set(results) == {0, 130}, engine, "results", results)
    check("arg1 is not the result" not in r.err, engine, r)
done()
