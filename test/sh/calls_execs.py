#!/usr/bin/env python3
# timeout: 300
# descry calls -f: the calls of programs that traced processes execute, by fork, vfork, or without a new process. Every call is counted, outputs and
# exit codes stay as they are, and after SIGKILL of descry the programs end well. ltrace 0.7.3 -f shows such calls too; without -f both show those of
# the program that the command itself executes.
from live import *

DRAW = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	unsigned seed = 1, sum = 0;

	for (int i = 0, n = atoi(argv[1]); i < n; i++)
		sum += rand_r(&seed) & 1;
	printf("drew %s\n", argv[1]);
	return atoi(argv[2]);
}
"""
NEXT = r"""
#include <unistd.h>
int main(int argc, char **argv)
{
	execv(argv[1], argv + 1);
	return 99;
}
"""
PIPE = "./draw 5 0 | cat; ./draw 6 0; exit 4"
SPAWN = "import subprocess\nfor i in range(4): print(subprocess.run(['./draw', '25', '3'], stdout=subprocess.PIPE).returncode)"

if not shutil.which("cc"):
    skip("no C compiler here")
if "inproc" not in engines_here():
    skip("nothing is traced from inside here")
os.chdir(TMP)
for name, text in ("draw.c", DRAW), ("next.c", NEXT):
    with open(name, "w") as f:
        f.write(text)
for how in ("draw draw.c", "next next.c", "draw-static draw.c -static"):
    check(sh("cc -O1 -o " + how).returncode == 0, "built", how)


def table(*args, rc):
    """{function: calls} of -c."""
    r = descry("calls", "-c", "--json", *args, rc=rc)
    rows = [json.loads(line) for line in r.err.splitlines() if line.startswith("{")]
    check(len({row["function"] for row in rows}) == len(rows), "one row for each function", r)
    return {row["function"]: row["calls"] for row in rows}, r


# one program after the other in one process, with and without -f
for flags in [], ["-f"]:
    got, r = table(*flags, "./next", "./next", "./draw", "7", "3", rc=3)
    check(got.get("rand_r") == 7 and got.get("execv") == 2 and got.get("printf", got.get("__printf_chk")) == 1, flags, got, r)
    check("drew 7" in r.out, flags, r)

# a shell's children, each with all its calls; a pipeline; a child by vfork of python
got, r = table("-f", "sh", "-c", "./draw 100000 0; ./draw 23 1; ./next ./draw 4 2; exit 7", rc=7)
check(got.get("rand_r") == 100027 and got.get("atoi", got.get("strtol")) == 6 and got.get("execv") == 1, got, r)
check(r.out.split("\n")[:3] == ["drew 100000", "drew 23", "drew 4"], r)
got, r = table("-f", "sh", "-c", PIPE, rc=4)
check(got.get("rand_r") == 11 and got.get("fclose", 0) >= 1 and sorted(r.lines()) == ["drew 5", "drew 6"], got, r)
got, r = table("-f", "sh", "-c", "for i in %s; do ./draw 3 0; done" % " ".join("x" * 60), rc=0)
check(got.get("rand_r") == 180 and r.lines() == ["drew 3"] * 60, got, r)
if shutil.which("python3"):
    got, r = table("-f", "-e", "rand_r", "python3", "-c", SPAWN, rc=0)
    check(got == {"rand_r": 100} and r.lines() == ["3"] * 4, got, r)

# lines: of the right process, in order, the shell's call around them
r = descry("calls", "-f", "-o", "out", "sh", "-c", "./draw 2 0; exit 5", rc=5)
with open("out") as f:
    lines = f.read().splitlines()
child = [line.split(" ", 1)[0] for line in lines if "rand_r(1)" in line]
shell = lines[0].split(" ", 1)[0]
check(len(child) == 1 and child[0] != shell, lines[-40:])
of_child = [line.split(" ", 1)[1] for line in lines if child and line.startswith(child[0] + " ")]
check([line.split("(")[0] for line in of_child if line.startswith(("--- C", "rand_r"))] == ["--- Called exec", "rand_r", "rand_r"], of_child)
check(lines[-1] == shell + " +++ exited (status 5) +++" and sum("+++" in line for line in lines) == 1, lines[-5:])
r = descry("calls", "-f", "--json", "-e", "rand_r", "sh", "-c", "./draw 3 0; ./draw 2 0", rc=0)
calls = [json.loads(line) for line in r.err.splitlines() if line.startswith("{")]
check([c["function"] for c in calls] == ["rand_r"] * 5 and len({c["tid"] for c in calls}) == 2, r)

# a filter that only an executed program has; one that none has; a static program runs
r = descry("calls", "-f", "-e", "rand_r", "./next", "./draw", "1", "6", rc=6)
check(r.err.count("rand_r(1)") == 1, r)
r = descry("calls", "-f", "-e", "made_nowhere", "./next", "./draw", "1", "6", rc=6)
check("the filters match no function" in r.err and "drew 1" in r.out, r)
got, r = table("-f", "sh", "-c", "./draw-static 3 0; ./draw 8 1", rc=1)
check(got.get("rand_r") == 8 and r.lines() == ["drew 3", "drew 8"], got, r)

# the kernel's engine says that it leaves them out
if "kernel" in engines_here():
    r = descry("calls", "-f", "-X", "engine=kernel", "sh", "-c", "./draw 3 0; exit 2", rc=2)
    check("does not trace the programs that traced processes execute" in r.err and "drew 3" in r.out, r)

# SIGKILL of descry while programs begin one after the other: all of them end well
for round in range(3):
    with open("done", "w"):
        pass
    _, p, _ = start("calls", "-f", "-o", "killed", "sh", "-c",
              "echo $$ > shell; for i in %s; do ./draw 50 0 >> done || echo bad >> done; done; echo end >> done" % " ".join("x" * 40))
    until = time.time() + 60
    while not os.path.getsize("done") and time.time() < until:
        time.sleep(0.01)
    time.sleep(0.05 * round)
    p.kill()
    p.wait()
    with open("shell") as f:
        shell = f.read().strip()
    while "end" not in open("done").read() and os.path.exists("/proc/%s" % shell) and time.time() < until + 60:
        time.sleep(0.01)
    with open("done") as f:
        got = f.read().splitlines()
    # descry's command may be ended with descry, but no program goes wrong
    check(all(line in ("drew 50", "end") for line in got), round, got)

done()
