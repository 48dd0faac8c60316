#!/usr/bin/env python3
# timeout: 300
# descry calls -f: the calls of programs that traced processes execute, by fork, vfork, or without a new process. Every call is counted, outputs and
# exit codes stay as they are, and after ^C or SIGKILL of descry the programs go on as they would. ltrace 0.7.3 -f shows such calls too; without -f both show those of
# the program that the command itself executes.
from live import *

DRAW = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	unsigned seed = 1, sum = 0;

	for (int i = 0, n = atoi(argv[1]); i < n; i++)
		sum += rand_r(&seed) & 1;
	printf("drew %s\n", argv[1]);
	fflush(stdout);
	if (!strcmp(argv[2], "wait")) {
		if (write(open("began", O_WRONLY | O_CREAT | O_APPEND, 0600), "x\n", 2) != 2)
			return 98;
		while (access("go", F_OK))
			usleep(10000);
	}
	return atoi(argv[2]);
}
"""
# functions with output arguments, some of which return at the same places; many arguments; texts
OUTPUTS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
int main(int argc, char **argv)
{
	time_t zero = 0;
	struct tm t;
	char text[64];
	int status;

	gmtime_r(&zero, &t);
	if (!fork())
		_exit(5);
	waitpid(-1, &status, 0);
	snprintf(text, sizeof(text), "%d %s %d %d %s %d", 1, "two", 3, 4, "five", 6);
	free(strdup("dup"));
	free(wcsdup(L"dup"));
	strftime(text, sizeof(text), "%F", &t);
	return WEXITSTATUS(status);
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
for name, text in ("draw.c", DRAW), ("next.c", NEXT), ("outputs.c", OUTPUTS):
    with open(name, "w") as f:
        f.write(text)
for how in "draw draw.c", "next next.c", "draw-static draw.c -static", "outputs outputs.c -fno-builtin -U_FORTIFY_SOURCE":
    check(sh("cc -O1 -o " + how).returncode == 0, "built", how)


def table(*args, rc):
    """{function: calls} of -c."""
    r = descry("calls", "-c", "--json", *args, rc=rc)
    rows = [json.loads(line) for line in r.err.splitlines() if line.startswith("{")]
    check(len({row["function"] for row in rows}) == len(rows), "one row for each function", r)
    check("were lost" not in r.err, "nothing is lost", r)
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
# many programs: sessions end and begin, no call is lost, and what descry keeps does not grow with their number
MANY = "for k in 1 2 3 4; do i=0; while [ $i -lt 100 ]; do ./draw 3 0; i=$((i + 1)); done; grep RssShmem /proc/$PPID/status; done"
got, r = table("-f", "-e", "rand_r", "sh", "-c", MANY, rc=0)
kept = [int(line.split()[1]) for line in r.lines() if line.startswith("RssShmem")]
check(got == {"rand_r": 1200} and r.lines().count("drew 3") == 400, got, r)
check(len(kept) == 4 and kept[3] < kept[0] + 4096, "shared memory in kB after 100, 200, 300 and 400 programs", kept)

# a file whose name has a control character
shutil.copy("draw", "dr\033aw")
got, r = table("-e", "rand_r", "./dr\033aw", "3", "2", rc=2)
check(got == {"rand_r": 3}, got, r)

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

# output arguments of the shell's children, also for root, whose children could give up rights; the shell itself is traced from inside
for shell in "sh", "bash":
    if not shutil.which(shell):
        continue
    r = descry("calls", "-f", "-o", "out", shell, "-c", "./outputs; exit $?", rc=5)
    with open("out") as f:
        text = f.read()
    for line in (r"gmtime_r\(0, { tm_sec=0, tm_min=0, .*tm_year=70, ", r"waitpid\(-1.*\n(.*\n)*.*, 1280, 0\)", r'snprintf\("1 two 3 4 five 6", 64, "%d %s %d %d %s %d", 1, "two", 3',
                 r'strdup\("dup"\) += ', r'wcsdup\(L?"dup"\) += ', r'strftime\("1970-01-01", 64, "%F", { tm_sec=0'):
        check(re.search(line, text), shell, line, r)
    check("engine" not in r.err and text.count("--- Called exec() ---") == 1, shell, r)

# a filter that only an executed program has; one that none has; a static program runs
r = descry("calls", "-f", "-e", "rand_r", "./next", "./draw", "1", "6", rc=6)
check(r.err.count("rand_r(1)") == 1, r)
r = descry("calls", "-f", "-e", "made_nowhere", "./next", "./draw", "1", "6", rc=6)
check("the filters match no function" in r.err and "drew 1" in r.out, r)
got, r = table("-f", "sh", "-c", "./draw-static 3 0; ./draw 8 1", rc=1)
check(got.get("rand_r") == 8 and r.lines() == ["drew 3", "drew 8"], got, r)

# an ordinary user's descry says that it does not follow a set-user-ID program
if os.geteuid() == 0 and shutil.which("setpriv"):
    anybodys = for_anybody()[0]
    shutil.copy("draw", "draw-suid")
    os.chmod("draw-suid", 0o4755)
    r = sh("setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all %s calls -f -e rand_r sh -c './draw 2 0; ./draw-suid 3 0'"
           % anybodys)
    check(r.returncode == 0 and "drew 2\ndrew 3\n" in r.stdout and r.stderr.count("rand_r(") == 2 and
          re.search("executes a file that gives it rights .* it is not followed", r.stderr), r.stdout, r.stderr)

# the kernel's engine says that it leaves them out
if "kernel" in engines_here():
    # (at a place that no other test patches at the same time)
    r = descry("calls", "-f", "-X", "engine=kernel", "-x", "main", "./next", "./draw", "3", "2", rc=2)
    check("does not trace the programs that traced processes execute" in r.err and "drew 3" in r.out, r)

# more programs than have room at once: one after the other all are traced, and a message has the number of the others
for i in range(40):
    shutil.copy("draw", "draw%d" % i)
got, r = table("-f", "-e", "rand_r", "sh", "-c", "for i in %s; do ./draw$i 3 0; done" % " ".join(map(str, range(40))), rc=0)
check(got == {"rand_r": 120} and "not traced" not in r.err, got, r)
WAIT = "for i in %s; do ./draw$i 4 wait & done; while [ $(wc -l < began) -lt 24 ]; do sleep 0.05; done; : > go; wait; exit 9"
with open("began", "w"):
    pass
got, r = table("-f", "-e", "rand_r", "sh", "-c", WAIT % " ".join(map(str, range(24))), rc=9)
left = re.search(r"(\d+) executed programs were not traced: more than 16 ran at once", r.err)
check(left and 24 - 15 <= int(left.group(1)) <= 24 and got.get("rand_r", 0) >= 4 * 10, "24 at once", got, r)
check(sorted(r.lines()) == ["drew 4"] * 24, r)


def ends(pid):
    """Waits until the process has ended, or is another's zombie."""
    until = time.time() + 60
    while time.time() < until:
        try:
            with open("/proc/%d/stat" % pid) as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


# ^C in the middle of the second program of a running shell: descry ends with its table, and the program goes on as before
for name in "began", "go":
    if os.path.exists(name):
        os.unlink(name)
LOOP = "while [ ! -e on ]; do ./draw 1 0 > first; done; ./draw1 500 wait > second; echo $? > code"
shell = subprocess.Popen(["sh", "-c", LOOP])
_, p, _ = begun = start("calls", "-f", "-o", "lines", "-e", "rand_r", "-p", str(shell.pid))
until = time.time() + 60
while (not os.path.exists("lines") or "rand_r" not in open("lines").read()) and time.time() < until:
    time.sleep(0.01)
open("on", "w").close()
while not os.path.exists("began") and time.time() < until:
    time.sleep(0.01)
p.send_signal(signal.SIGINT)
r = finish(begun)
with open("lines") as f:
    calls = [line.split()[0] for line in f if "rand_r(" in line]
check(max(map(calls.count, calls)) == 500, "the lines at ^C", sorted(map(calls.count, set(calls)))[-3:], r)
check(shell.poll() is None and not os.path.exists("code"), "the shell lives")
open("go", "w").close()
check(shell.wait() == 0 and open("second").read() == "drew 500\n" and open("code").read() == "0\n", "the program after ^C", r)

# SIGKILL of descry at any instant while programs begin one after the other, each another one: all of them run, and end as they would
LOOP = "echo $$ > shell; for i in %s; do ./draw$i 50 3 >> done; echo $? >> codes; done; echo end >> codes"
for round in range(8):
    for name in "done", "codes":
        open(name, "w").close()
    _, p, _ = start("calls", "-f", "-o", "killed", "sh", "-c", LOOP % " ".join(map(str, range(40))))
    until = time.time() + 60
    while not os.path.getsize("codes") and time.time() < until:
        time.sleep(0.001)
    time.sleep(0.017 * round)
    p.kill()
    p.wait()
    with open("shell") as f:
        check(ends(int(f.read())), round, "the shell ends")
    with open("codes") as f, open("done") as g:
        codes, lines = f.read().split(), g.read().splitlines()
    check(codes == ["3"] * 40 + ["end"] and lines == ["drew 50"] * 40, round, codes, lines)

done()
