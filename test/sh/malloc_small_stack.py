#!/usr/bin/env python3
# A program under descry malloc record whose threads have the smallest stack, 16 KB, and whose environment has 1,500 variables: what it executes
# there begins as without descry, and no memory stays behind. As many arguments as the kernel takes reach an execl(3).
import re

from live import *

if not shutil.which("cc"):
    skip("needs cc")
EXE, FILE = os.path.join(TMP, "small"), os.path.join(TMP, "a.dma")
SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *const word[] = { "sh", "-c", "test $V1499 = 1499 && echo begun $0", "x", NULL };
static int ended(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : status;
}
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;

	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}
static int tries;
static void *executes(void *arg)
{
	const char *how = arg;
	pid_t pid = -1;

	for (int i = 0; i < tries; i++) {
		if (!strcmp(how, "spawn"))
			pid = posix_spawn(&pid, "/bin/sh", NULL, NULL, word, environ) ? -1 : pid;
		else if (!strcmp(how, "spawnp"))
			pid = posix_spawnp(&pid, "sh", NULL, NULL, word, environ) ? -1 : pid;
		else if (strcmp(how, "system") && !(pid = vfork())) {
			execve("/nowhere", word, environ);
			if (!strcmp(how, "execve"))
				execve("/bin/sh", word, environ);
			if (!strcmp(how, "execvp"))
				execvp("sh", word);
			if (!strcmp(how, "execl"))
				execl("/bin/sh", "sh", "-c", word[2], "x", NULL);
			_exit(1);
		}
		printf("%s: %d\n", how, !strcmp(how, "system") ? system(word[2]) : ended(pid));
		fflush(stdout);
	}
	return NULL;
}
static void in_thread(const char *how, int times)
{
	pthread_attr_t a;
	pthread_t t;
	/* with the C library's guard page below it */
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	tries = times;
	if (pthread_create(&t, &a, executes, (void *)how))
		abort();
	pthread_join(t, NULL);
}
int main(void)
{
	static const char *const ways[] = { "spawn", "spawnp", "execve", "execvp", "execl", "system" };
	char name[16], value[16];
	pid_t pid;
	int before;

	for (int i = 0; i < 1500; i++) {
		sprintf(name, "V%d", i);
		sprintf(value, "%d", i);
		setenv(name, value, 1);
	}
	for (int i = 0; i < 6; i++)
		in_thread(ways[i], 1);
	before = mappings();
	for (int i = 0; i < 6; i++)
		in_thread(ways[i], 20);
	fprintf(stderr, "grew by %d mappings\n", mappings() - before);
	if (!(pid = fork())) {
		execl("/bin/sh", "sh", "-c", "echo $# $0 ${20480}", "zero", MANY, NULL);
		_exit(1);
	}
	printf("%d\n", ended(pid));
	return 0;
}
"""
MANY = ", ".join(['"a"'] * 20480)
subprocess.run(["cc", "-x", "c", "-w", "-pthread", "-o", EXE, "-"], input=SOURCE.replace("MANY", MANY).encode(), check=True)


def run(*argv):
    return subprocess.run([*argv, EXE], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def grown(r):
    m = re.search(r"grew by (-?\d+) mappings", r.stderr)
    return int(m.group(1)) if m else None


plain = run()
check(plain.returncode == 0 and plain.stdout.count("begun") == 6 * 21 and "20480 zero a" in plain.stdout, "without descry", plain)
r = run(DESCRY, "malloc", "record", "-o", FILE)
check(r.returncode == 0 and r.stdout == plain.stdout, "as without descry", r, plain)
# one for each thread that executes, as the C library keeps some of its own
check(grown(r) is not None and grown(r) <= grown(plain) + 3, "memory that stays", r.stderr, plain.stderr)
m = re.search(r"(\d+) programs? (?:that were )?executed", r.stderr)
print("note:", r.stderr.strip().splitlines()[-1:])
done()
