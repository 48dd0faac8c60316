#!/usr/bin/env python3
# descry calls: a function that ends with a jump into another library returns where the function there does, whether the dynamic linker
# sets the jump's word at the start or at the first call, and when the jump needs no table of linkage.
import json

from live import *

# made_length ends at an indirect function's choice, made_twice at two libraries: the jump's target is in libfar.so, and ends in libc. made_table jumps to a
# function that jumps through a pointer.
NEAR = """
#include <stdlib.h>
#include <string.h>
int far_number(const char *s);
int made_number(const char *s) { return atoi(s + 1); }
void made_free(void *p) { free(p); }
unsigned long made_length(const char *s) { return strlen(s + 2); }
int made_twice(const char *s) { return far_number(s + 1); }
static int from_table(const char *s) { return *s - '0'; }
int (*made_methods[2])(const char *) = { from_table, from_table };
__attribute__((noipa)) static int hop(const char *s, int n) { return made_methods[n & 1](s + 1); }
int made_table(const char *s) { return hop(s, *s & 1); }
int made_some(const char *s) { return *s == '7' ? atoi(s) : 5; }
"""
FAR = "int atoi(const char *);\nint far_number(const char *s) { return atoi(s + 1); }\n"
MAIN = """
#include <stdlib.h>
int made_number(const char *), made_twice(const char *), made_some(const char *), made_table(const char *);
void made_free(void *);
unsigned long made_length(const char *);
int main(void)
{
	for (int i = 0; i < 3; i++)
		if (made_number("x12") != 12 || made_length("abcde") != 3 || made_twice("xy34") != 34 || made_some("7") != 7 || made_some("8") != 5 || made_table("x6") != 6)
			return 1;
	made_free(malloc(10));
	return 0;
}
"""
CONF = "int made_number(string);\nvoid made_free(addr);\nulong made_length(string);\nint made_twice(string);\nint made_some(string);\nint made_table(string);\n"
WANT = ['made_number("x12") = 12', 'made_length("abcde") = 3', 'made_twice("xy34") = 34', 'made_some("7") = 7', 'made_some("8") = 5', 'made_table("x6") = 6'] * 3

if not shutil.which("cc"):
    skip("no C compiler here")
os.chdir(TMP)
for name, text in ("near.c", NEAR), ("far.c", FAR), ("main.c", MAIN), ("made.conf", CONF):
    with open(name, "w") as f:
        f.write(text)
engines = engines_here()
for how in "-Wl,-z,now", "-Wl,-z,lazy", "-fno-plt":
    check(sh("cc -O2 -fno-builtin -fPIC -shared %s -o libfar.so far.c && cc -O2 -fno-builtin -fPIC -shared %s -o libnear.so near.c -L. -lfar -Wl,-rpath,%s && "
             "cc -O1 -o main main.c -L. -lnear -Wl,-rpath,%s -Wl,-rpath-link,." % (how, how, TMP, TMP)).returncode == 0, "built", how)
    code = subprocess.run(["objdump", "-d", "libnear.so"], stdout=subprocess.PIPE, text=True).stdout
    check(re.search(r"\bjmp +\S+ <atoi@plt>|jmp +\*0x\w+\(%rip\)", code), "it ends with a jump", how, code)
    for engine in engines:
        for flags in ["-e", "made_*"], ["-x", "made_*@libnear*"]:
            r = descry("calls", "-X", "engine=" + engine, "-F", "made.conf", *flags, "./main", rc=0)
            got = [re.sub(r" += ", " = ", line) for line in without_objects(r.err).splitlines() if line.startswith("made_")]
            check(got[:-1] == WANT and re.fullmatch(r"made_free\(0x\w+\) = <void>", got[-1]), how, engine, flags, r)
        # each has a time of its own
        r = descry("calls", "-X", "engine=" + engine, "-F", "made.conf", "-c", "--json", "-e", "made_*", "./main", rc=0)
        rows = {row["function"]: row for row in map(json.loads, r.err.splitlines())}
        check({name: (row["calls"], row["returned"]) for name, row in rows.items()} ==
              {"made_number": (3, 3), "made_length": (3, 3), "made_twice": (3, 3), "made_some": (6, 6), "made_table": (3, 3), "made_free": (1, 1)}, how, engine, "-c", r)
done()
