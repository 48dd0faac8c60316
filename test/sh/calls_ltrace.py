#!/usr/bin/env python3
# descry calls writes names, nesting, numbers of processes and columns as ltrace does. Each case is one of ltrace's test suite.
from live import *

ONE = """
#include <stdlib.h>
void func2(void);
void func1(void) { func2(); __asm__ volatile("" ::: "memory"); }
__attribute__((noipa)) int jump3(int n) { return n + 1; }
__attribute__((noipa)) int jump2(int n) { return jump3(n * 3); }
__attribute__((noipa)) int jump1(int n) { return jump2(n + 2); }
static int chosen_by_linker(int n) { return n + 7; }
static int (*choose(void))(int) { return chosen_by_linker; }
int chosen(int n) __attribute__((ifunc("choose")));
"""
TWO = "#include <stdio.h>\nvoid func2(void) { puts(\"func2\"); }\n"
MAIN = """
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
void func1(void);
int jump1(int), chosen(int);
int main(int n, char **v)
{
	func1();
	if (n > 1 && !fork())
		_exit(strlen(v[1]) == 5 ? 3 : 4);
	if (n > 1)
		wait(NULL);
	return jump1(0) + chosen(1) - 15;
}
"""
CONF = "void func1();\nvoid func2();\nint jump1(int);\nint jump2(int);\nint jump3(int);\nint chosen(int);\n"

if not shutil.which("cc"):
    skip("no C compiler here")
os.chdir(TMP)
for name, text in ("one.c", ONE), ("two.c", TWO), ("main.c", MAIN), ("made.conf", CONF):
    with open(name, "w") as f:
        f.write(text)
check(sh("cc -O2 -fPIC -shared -o libtwo.so two.c && cc -O2 -fPIC -shared -o libone.so one.c -L. -ltwo -Wl,-rpath,%s && "
         "cc -O1 -Wl,-z,now -o prog main.c -L. -lone -Wl,-rpath,%s -Wl,-rpath-link,." % (TMP, TMP)).returncode == 0, "built")
engines = engines_here()


def lines(engine, *flags, command=("./prog",)):
    r = descry("calls", "-X", "engine=" + engine, "-F", "made.conf", *flags, *command, rc=0)
    return [re.sub(r" += ", " = ", line) for line in r.err.splitlines()]


END = "+++ exited (status 0) +++"
for engine in engines:
    # the object that calls, with -e and -l, and the one that is called, with -x
    check(lines(engine, "-e", "func1@MAIN") == ["prog->func1() = <void>", END], engine)
    check(lines(engine, "-e", "@libone*-__*")[:2] == ["libone.so->func2() = <void>", "libone.so->jump2(2 <unfinished ...>"], engine)
    check(lines(engine, "-e", "func*") == ["prog->func1( <unfinished ...>", "libone.so->func2() = <void>", "<... func1 resumed> ) = <void>", END], engine)
    check("func1() = <void>" in lines(engine), engine)
    check(lines(engine, "-l", "libtwo.so") == ["libone.so->func2() = <void>", END], engine)
    check(lines(engine, "-l", "libone.so", "-l", "libtwo.so")[:3] == ["prog->func1( <unfinished ...>", "libone.so->func2() = <void>",
                                                                      "<... func1 resumed> ) = <void>"], engine)
    check(lines(engine, "-x", "func2") == ["func2@libtwo.so() = <void>", END], engine)
    check(lines(engine, "-e", "func1", "-x", "func1") == ["prog->func1( <unfinished ...>", "func1@libone.so() = <void>", "<... func1 resumed> ) = <void>", END], engine)
    # functions that jump to each other return together
    got = without_objects("\n".join(lines(engine, "-x", "jump*"))).split("\n")
    check(got[:2] == ["jump1(0 <unfinished ...>", "jump2(2 <unfinished ...>"] and got[2] in ("jump3(6) = 7", "jump3(6 <unfinished ...>"), engine, got)
    check({"<... jump1 resumed> ) = 7", "<... jump2 resumed> ) = 7"} <= set(got[3:]) and sum(line.endswith(" = 7") for line in got) == 3 and got[-1] == END, engine, got)
    check(lines(engine, "-x", "chosen") == ["chosen@libone.so(1) = 8", END], engine)
    check(lines(engine, "-L") == [END], engine)
    # numbers of processes: in brackets on a terminal's side only
    got = lines(engine, "-f", "-e", "_exit", command=("./prog", "abcde"))
    check(any(re.fullmatch(r"\[pid \d+\] prog->_exit\(3\)", line) for line in got), engine, got)
    lines(engine, "-f", "-e", "_exit", "-o", "out", command=("./prog", "abcde"))
    got = open("out").read()
    check(re.search(r"(?m)^\d+ prog->_exit\(3\)", got) and "[pid" not in got, engine, got)
    # ltrace's columns first
    got = lines(engine, "-c", "-e", "func*")
    check(got[0].split()[:5] == ["%", "time", "seconds", "usecs/call", "calls"] and got[0].split()[5:] == ["function", "p50", "p99", "max"], engine, got)
    check(sorted(line.split()[3:5] for line in got[2:4]) == [["1", "func1"], ["1", "func2"]] and got[5].split()[-2:] == ["2", "total"], engine, got)
done()
