#!/usr/bin/env python3
# descry calls writes lines of a burst that its buffers cannot hold: it is stopped meanwhile. What is lost is said, and with it, nothing is
# missing: each call is shown, or one of the lost records is its own. -c loses nothing.
import json

from calls_tracee import *

CALLS, ROOM = 120000, "64k"
BURST = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	unsigned seed = 1;

	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < atoi(argv[1]); i++)
		rand_r(&seed);
	puts("made");
	fflush(stdout);
	getchar();
	return 0;
}
"""
with open("b.c", "w") as f:
    f.write(BURST)
with open("b.conf", "w") as f:
    f.write("int rand_r(addr);\n")
check(sh("cc -O1 -fno-builtin -o b b.c").returncode == 0, "built")


def burst(calls, *args):
    """The tracer's errors, after a burst for which it was stopped."""
    d = subprocess.Popen([DESCRY, "calls", "-F", "b.conf", "-e", "rand_r", *args, "./b", str(calls)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    kill_at_end(d)
    check(d.stdout.readline() == b"ready\n", "it begins", args)
    d.send_signal(signal.SIGSTOP)
    d.stdin.write(b"\n")
    d.stdin.flush()
    check(d.stdout.readline() == b"made\n", "the burst", args)
    d.send_signal(signal.SIGCONT)
    err = d.communicate(b"\n", timeout=300)[1].decode()
    check(d.returncode == 0, "it ends well", args, d.returncode, err[-500:])
    return err


for engine in engines:
    how = ["-X", "engine=" + engine, "-o", "out"]
    err = burst(CALLS, *how, "-X", "bufsize=" + ROOM)
    m = re.search(r"^descry calls: (\d+) records of calls were lost: ", err, re.M)
    with open("out") as f:
        shown = len(re.findall(r"^rand_r\(", without_objects(f.read()), re.M))
    check(m and 0 < shown < CALLS and shown + int(m[1]) >= CALLS and int(m[1]) <= 2 * CALLS, engine, "the loss is said", shown, err)
    err = burst(500, *how)
    with open("out") as f:
        shown = len(re.findall(r"^rand_r\(0x\w+\) += \d+$", without_objects(f.read()), re.M))
    check(shown == 500 and "lost" not in err, engine, "the default buffer holds them", shown, err)
    err = burst(CALLS, *how, "-c", "--json")
    with open("out") as f:
        rows = [json.loads(line) for line in f]
    check(len(rows) == 1 and rows[0]["calls"] == CALLS and "lost" not in err, engine, "-c loses nothing", rows, err)
done()
