#!/usr/bin/env python3
# Probes whose definition gives a tracer other arguments than the program's, `probe x(int a, char *b) : (char *b, int a)`: turned, doubled,
# left out, none. The programs are built with the header of -h, in C and C++, and against a function for each probe, with notes and DOF.
# covers: -h -G
from live import *

D = os.path.abspath(DESCRY)
FILES = {"shop.d": """
provider shop {
	probe plain(int a, char *b);
	probe turned(int a, char *b) : (char *b, int a);
	probe doubled(int a, char *b) : (char *b, int a, int a, char *b);
	probe halved(int a, char *b) : (char *b);
	probe hidden(int a, char *b) : ();
};
""", "main.c": """
#include <stdio.h>
#include "shop.h"
static int calls;
static int next(void) { return ++calls; }
int main(void)
{
	char word[] = "two";
	int descry = 3, arg0 = 4;

	SHOP_PLAIN(next(), word);
	SHOP_TURNED(next(), word);
	if (arg0)
		SHOP_DOUBLED(next(), "one");
	else
		SHOP_HALVED(descry, word);
	SHOP_HALVED(next(), word + 1);
	SHOP_HIDDEN(next(), word);
	printf("%d calls\\n", calls);
	return 0;
}
""", "called.h": """
#define CALL(name) __dtrace_shop___##name
#ifdef __cplusplus
extern "C"
#endif
void CALL(plain)(int, char *), CALL(turned)(int, char *), CALL(doubled)(int, char *), CALL(halved)(int, char *), CALL(hidden)(int, char *);
#define SHOP_PLAIN(a, b) CALL(plain)(a, b)
#define SHOP_TURNED(a, b) CALL(turned)(a, b)
#define SHOP_DOUBLED(a, b) CALL(doubled)(a, b)
#define SHOP_HALVED(a, b) CALL(halved)(a, b)
#define SHOP_HIDDEN(a, b) CALL(hidden)(a, b)
"""}
for name, text in FILES.items():
    open(os.path.join(TMP, name), "w").write(text)
PROGRAM = """
shop$target:::plain { printf("plain %d %s\\n", (int)arg0, copyinstr(arg1)); }
shop$target:::turned { printf("turned %s %d\\n", copyinstr((uintptr_t)args[0]), args[1]); }
shop$target:::doubled { printf("doubled %s %d %d %s\\n", copyinstr(arg0), (int)arg1, (int)arg2, copyinstr(arg3)); }
shop$target:::halved { printf("halved %s\\n", copyinstr(arg0)); }
shop$target:::hidden { printf("hidden\\n"); }
"""
WANT = ["plain 1 two", "turned two 2", "doubled one 3 3 one", "halved wo", "hidden"]
COUNTS = [("plain", 2), ("turned", 2), ("doubled", 4), ("halved", 1), ("hidden", 0)]


def step(command):
    r = subprocess.run(command.replace("DESCRY", D), shell=True, cwd=TMP, capture_output=True, text=True, timeout=60)
    check(r.returncode == 0 and not r.stderr, command, r.returncode, r.stdout, r.stderr)


def try_program(what):
    path = os.path.join(TMP, "main")
    for engine in "kernel", "inproc":
        r = descry("-x", "engine=" + engine, "-q", "-n", PROGRAM, c=path)
        check([line for line in r.out.splitlines() if line and "calls" not in line] == WANT and "5 calls" in r.out, what, engine, r)
    r = descry("-lvn", "shop$target:::", c=path)
    for name, n in COUNTS:
        listed = r.out.split(" main " + name + "\n", 1)[-1].split("Argument Types", 1)[-1].split("\n\n", 1)[0]
        check(len(re.findall(r"args\[\d\]: ", listed)) == n and ("None" in listed) == (n == 0), what, name, r)


step("DESCRY -h -s shop.d")
for cc in "cc", "g++ -x c++":
    step("%s -Wall -Wextra -Wno-write-strings -O2 -c -o main.o main.c && DESCRY -G -s shop.d main.o && cc -o main main.o shop.o" % cc)
    try_program(cc)
os.replace(os.path.join(TMP, "called.h"), os.path.join(TMP, "shop.h"))
for link in "", "-x linktype=elfdof ":
    step("cc -O1 -c main.c && DESCRY -G %s-s shop.d main.o && cc -o main main.o shop.o" % link)
    try_program("calls " + link)
done()
