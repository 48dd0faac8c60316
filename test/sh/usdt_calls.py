#!/usr/bin/env python3
# -G for objects compiled against DTrace's own headers, which call a function for each probe: notes and DOF, several objects, static,
# inline and tail calls, three linkers, repeated runs, libraries loaded later, fork and exec, both engines.
# serial
# covers: -G linktype
import random

import struct

from live import *

import live

D = live.DESCRY = os.path.abspath(DESCRY)
FILES = {"shop.d": """
typedef int price_t;
provider shop {
	probe sale(string what, int n);
	probe closed(void);
	probe wide(int a, long b, char *c, unsigned short d, price_t e, uint64_t f, int g, long h);
	probe turned(int a, char *b) : (char *b, int a);
};
provider bank { probe paid__back(int n); };
""", "shop.h": """
#ifdef __cplusplus
extern "C" {
#endif
extern void __dtrace_shop___sale(const char *, int);
extern void __dtrace_shop___closed(void);
extern void __dtrace_shop___wide(int, long, const char *, unsigned short, int, unsigned long, int, long);
extern void __dtrace_shop___turned(int, const char *);
extern void __dtrace_bank___paid__back(int);
#ifdef BY_POINTER
extern void __dtraceenabled_shop___sale(unsigned *);
#define SHOP_SALE_ENABLED() ({ unsigned enabled = 0; __dtraceenabled_shop___sale(&enabled); enabled; })
#elif defined(BY_FLAG) /* as the headers of -h */
extern volatile unsigned short shop_sale_semaphore;
#define SHOP_SALE_ENABLED() shop_sale_semaphore
#else
extern int __dtraceenabled_shop___sale(void);
#define SHOP_SALE_ENABLED() __dtraceenabled_shop___sale()
#endif
#ifdef __cplusplus
}
#endif
""", "a.c": """
#include <stdio.h>
#include "shop.h"
void last(int n);
void cond(int n);
int is_sold(void);
static __attribute__((noinline)) void inner(const char *w, int n) { __dtrace_shop___sale(w, n); }
int main(int argc, char **argv)
{
	int asked = 0;

	for (int i = 0; i < 3; i++) {
		if (SHOP_SALE_ENABLED()) {
			asked++;
			__dtrace_shop___sale("bread", i);
		}
		inner("milk", 10 + i);
		cond(i);
	}
	__dtrace_shop___wide(-1, 2, "three", 4, -5, 6, -7, 8);
	__dtrace_shop___turned(7, "b");
	last(argc);
	printf("asked %d sold %d\\n", asked, is_sold());
	return 0;
}
""", "b.c": """
#include "shop.h"
void last(int n) { if (n < 5) __dtrace_shop___closed(); }
int is_sold(void) { return SHOP_SALE_ENABLED() != 0; }
/* what compilers make of "if (n) probe(n);" at a function's end */
__asm__(".text\\n.globl cond\\n.type cond, @function\\ncond: test %edi, %edi\\n"
	"jne __dtrace_bank___paid__back\\nret\\n.size cond, . - cond\\n");
""", "lib.c": """
#include "shop.h"
void sell(int n) { if (SHOP_SALE_ENABLED()) __dtrace_shop___sale("lib", n); }
""", "host.c": """
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		void *h = dlopen("./libshop.so", RTLD_NOW);
		void (*sell)(int) = (void (*)(int))dlsym(h, "sell");

		sell(i);
		if (argc > 1 && i == 1) {
			pid_t child = fork();

			if (!child) {
				sell(100);
				_exit(0);
			}
			waitpid(child, 0, 0);
		}
		dlclose(h);
	}
	return 0;
}
""", "both.h": """
#include "shop.h"
inline __attribute__((noinline)) void both(int n) { if (SHOP_SALE_ENABLED()) __dtrace_shop___sale("both", n); }
""", "one.cc": """
#include "both.h"
void two(int);
int main() { both(1); two(2); return 0; }
""", "two.cc": """
#include "both.h"
void two(int n) { both(n); }
""", "address.c": """
#include "shop.h"
void (*taken)(void) = __dtrace_shop___closed;
""", "unknown.c": """
extern void __dtrace_shop___lost(void);
void f(void) { __dtrace_shop___lost(); }
"""}
os.chdir(TMP)
for name, text in FILES.items():
    open(name, "w").write(text)
LINKERS = [ld for ld in ("bfd", "gold", "lld") if shutil.which("ld." + ld)]
print("linkers:", *LINKERS)
WATCH = """shop$target:::sale { @s[copyinstr(arg0), probefunc] = sum(arg1); } shop$target:::closed { @c[probefunc, probename] = count(); }
bank$target:::paid-back { @b[probefunc, probename] = sum((int)arg0); }
shop$target:::wide { printf("wide %d %d %s %d %d %d %d %d\\n", (int)arg0, arg1, copyinstr(arg2), arg3, (int)arg4, arg5, (int)arg6, arg7); }
shop$target:::turned { printf("turned %s %d\\n", copyinstr(arg0), (int)arg1); }"""


def run(command, rc=0):
    r = sh(command)
    check(r.returncode == rc, "%s: exit %d\n%s%s" % (command, r.returncode, r.stdout, r.stderr))
    return r


def trace(engine, command, program=WATCH, *more):
    return descry("-q", "-x", "engine=" + engine, *more, "-n", program, c=command, cwd=TMP)




def look(what, engine, told):
    r = trace(engine, "./shop")
    rows = {tuple(line.split()) for line in r.out.splitlines()}
    want = {("wide", "-1", "2", "three", "4", "-5", "6", "-7", "8"), ("turned", "b", "7"), ("last", "closed", "1"), ("cond", "paid-back", "3")}
    check(want <= rows and any(x[0] == "milk" and x[1].startswith("inner") and x[2] == "33" for x in rows if len(x) == 3), what, engine, r)
    check((("bread", "main", "3") in rows) == told and ("asked %d" % (3 if told else 0)) in r.out and ("sold %d" % told) in r.out, what, engine, "asks", r)


def build(cc, flags, linktype, ld, more=""):
    run("rm -f *.o; %s %s -c a.c b.c && %s -G -x linktype=%s -s shop.d a.o b.o && %s -fuse-ld=%s %s -o shop a.o b.o shop.o"
        % (cc, flags, D, linktype, cc, ld, more))
    check(sh("./shop").stdout == "asked 0 sold 0\n", "nobody looks")


compilers = [cc for cc in ("gcc", "clang") if shutil.which(cc)]
ways = [("gcc", "-O2", "elf", ld, "") for ld in LINKERS] + [("gcc", "-O2", "elfdof", ld, "-Wl,--gc-sections") for ld in LINKERS]
ways += [(cc, flags, linktype, "bfd", "") for cc in compilers for flags, linktype in
         (("-O0", "elf"), ("-O2 -DBY_FLAG", "elf"), ("-O2 -DBY_POINTER", "elf"), ("-O0 -DBY_POINTER", "elf"), ("-O2 -DBY_POINTER", "elfdof"))]
ways += [("gcc", "-Os -fno-plt -ffunction-sections", "elf", "bfd", "-Wl,--gc-sections"), ("gcc", "-O2 -fno-plt", "elfdof", "gold", "")]
for way in ways:
    if way[3] not in LINKERS:
        continue
    build(*way)
    look(way, "inproc", True)
    # lld maps the page of the flags twice, and a tracer outside the process cannot set a DOF flag: both are reported
    if way[2] == "elf" and way[3] != "lld":
        look(way, "kernel", True)
r = finish(start("-x", "engine=kernel", "-n", WATCH, c="./shop", cwd=TMP))
check("cannot answer yes" in r.err, "a question the kernel engine cannot answer", r)

# another user's object stays that user's, and what is written is not executed as its owner
if not os.geteuid():
    run("rm -f *.o; gcc -O2 -c a.c b.c && chown 60001:60002 a.o && chmod 6775 a.o && %s -G -s shop.d a.o b.o" % D)
    st = os.stat(TMP + "/a.o")
    check((st.st_uid, st.st_gid, st.st_mode & 0o7777) == (60001, 60002, 0o775), "the object's owner and mode", st)

# each section of a group is known by what it holds; many that lie over the same bytes would be hashed without end
def overlapping(path, sections, size):
    """Writes an object with such sections, each with a call of the probe."""
    code, names = b"\xe8\0\0\0\0" + b"\x90" * (size - 5), b"\0__dtrace_shop___sale\0fun\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x10, 0, 0, 0, 0) + b"".join(struct.pack("<IBBHQQ", 22, 0x12, 0, 1 + i, 0, size) for i in range(sections))
    places, shown = struct.pack("<QQq", 1, 1 << 32 | 4, -4), b"\0.text\0.rela\0.symtab\0.strtab\0.shstrtab\0"
    parts, at = [], 64
    for part in code, places, symbols, names, shown:
        parts.append(at)
        at += len(part)
    table, n = -at % 8 + at, 1 + 2 * sections
    rows = [bytes(64)] + [struct.pack("<IIQQQQIIQQ", 1, 1, 0x206, 0, parts[0], size, 0, 0, 1, 0)] * sections
    rows += [struct.pack("<IIQQQQIIQQ", 7, 4, 0, 0, parts[1], 24, n, 1 + i, 1, 24) for i in range(sections)]
    rows += [struct.pack("<IIQQQQIIQQ", 13, 2, 0, 0, parts[2], len(symbols), n + 1, 1, 1, 24)]
    rows += [struct.pack("<IIQQQQIIQQ", k, 3, 0, 0, part, size, 0, 0, 1, 0) for k, part, size in ((21, parts[3], len(names)), (29, parts[4], len(shown)))]
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, len(rows), n + 2)
    with open(path, "wb") as f:
        f.write(head + code + places + symbols + names + shown + bytes(table - at) + b"".join(rows))


overlapping(os.path.join(TMP, "over.o"), 5000, 8 << 20)
r = subprocess.run([DESCRY, "-G", "-s", "shop.d", "over.o"], cwd=TMP, capture_output=True, text=True, timeout=100)
check(r.returncode == 1 and "over.o: its sections lie over each other" in r.stderr, "sections over the same bytes", r)

# DOF alone: no object, and the objects are changed as for any other
run("rm -f *.o; gcc -O2 -c a.c b.c && %s -G -x linktype=dof -s shop.d a.o b.o" % D)
check(open("shop.o", "rb").read(4) == b"\x7fDOF", "DOF alone")
# the remark in it: without it the file is shorter, with the same contents
whole_dof = open("shop.o", "rb").read()
run("rm -f *.o; gcc -O2 -c a.c b.c && %s -G -x linktype=dof -x strip -s shop.d a.o b.o" % D)
bare_dof = open("shop.o", "rb").read()
check(b"descry" in whole_dof and b"descry" not in bare_dof and len(bare_dof) < len(whole_dof), "a remark in DOF, but with -x strip")
listed = []
for strip in "", "-x strip":
    run("rm -f *.o; gcc -O2 -c a.c b.c && %s -G -x linktype=elfdof %s -s shop.d a.o b.o && gcc -o shop a.o b.o shop.o" % (D, strip))
    listed.append([l.split()[2:] for l in run(D + " -l -m shop -c ./shop").stdout.splitlines()])
check(listed[0] == listed[1] and len(listed[0]) > 6, "the same probes with a remark and without", listed)
# notes and DOF for the same places: each probe once, with the types of DOF, and of a stripped program its functions too
sizes = []
for strip in "-x strip", "":
    run("rm -f *.o; gcc -O2 -c a.c b.c && %s -G %s -s shop.d a.o b.o && gcc -o shop a.o b.o shop.o" % (D, strip))
    check("stapsdt" in run("readelf -n shop").stdout and ".SUNW_dof" in run("readelf -SW shop.o").stdout, "both")
    sizes.append(os.path.getsize("shop.o"))
    check([l.split()[2:] for l in run(D + " -l -m shop -c ./shop").stdout.splitlines()] == listed[0], "as DOF alone", strip)
check(sizes[0] < sizes[1], "a remark in plain -G, but with -x strip", sizes)
r = run(D + " -l -v -n 'shop$target:::wide' -c ./shop")
check("args[2]: char *" in r.stdout and "args[3]: unsigned short" in r.stdout, "types of args[]", r.stdout)
run("strip shop")
check([l.split()[2:] for l in run(D + " -l -m shop -c ./shop").stdout.splitlines()] == listed[0], "functions of a stripped program")
r = trace("inproc", "./shop")
check(["bread", "main", "3"] in [line.split() for line in r.out.splitlines()], "stripped", r)
# again: nothing changes; merged; notes to DOF and back
build("gcc", "-O2", "elf", "bfd")
r = run(D + " -l -m shop -c ./shop")
check(sh(D + " -l -n 'p*d$target:shop:main:entry' -c ./shop").stdout.count("entry") == 1, "pid by a pattern", r)
check("entry" not in sh(D + " -l -n 'p*d1:shop:main:entry' -c ./shop").stdout, "a pattern of another process", r)
check(r.stdout.count(" shop ") == 6, "no provider: those of the target", r)
before = open("a.o", "rb").read(), os.stat("a.o").st_mtime_ns
run(D + " -G -s shop.d a.o b.o")
check((open("a.o", "rb").read(), os.stat("a.o").st_mtime_ns) == before, "the second run leaves the object alone")
run("ld -r -o all.o a.o b.o && %s -G -s shop.d all.o && gcc -o shop all.o shop.o" % D)
look("merged", "kernel", True)
run("%s -G -x linktype=elfdof -s shop.d all.o && gcc -o shop all.o shop.o" % D)
check("stapsdt" not in run("readelf -n shop").stdout, "DOF and no notes")
look("DOF after notes", "inproc", True)
run("%s -G -s shop.d all.o && gcc -o shop all.o shop.o" % D)
look("notes after DOF", "kernel", True)
# from an archive
run("rm -f *.o *.a; gcc -O2 -c a.c b.c && %s -G -s shop.d a.o b.o && ar rcs libb.a b.o shop.o && gcc -o shop a.o libb.a" % D)
look("archive", "kernel", True)
# pid probes on every instruction, with those of the USDT probes: the kernel has one flag for each place
run("rm -f *.o; gcc -O2 -DBY_FLAG -c a.c b.c && %s -G -s shop.d a.o b.o && gcc -o shop a.o b.o shop.o" % D)
for first, second in ("pid$target:shop:inner*:", "shop$target:::sale"), ("shop$target:::sale", "p*d$target:shop:inner*:"):
    r = trace("kernel", "./shop", "%s { @[probeprov] = count(); } %s { @[probeprov] = count(); }" % (first, second))
    rows = {k[0].rstrip("0123456789"): v for k, v in r.table()}
    check("asked 3 sold 1" in r.out and rows.get("shop") == 6 and rows.get("pid", 0) > 6 and len(rows) == 2, "the place of a USDT probe", first, r)

# a program that asks about a probe and never fires it
open("asks.c", "w").write("""
#include <stdio.h>
#include "asks.h"
int main() { printf("it %s\\n", SHOP_CLOSED_ENABLED() ? "is" : "is not"); return 0; }
""")
run("%s -h -o asks.h -s shop.d && gcc -O2 -c asks.c && %s -G -s shop.d -o shop.o asks.o && gcc -o asks asks.o shop.o" % (D, D))
check(sh("./asks").stdout == "it is not\n", "nobody looks")
r = run(D + " -l -m asks -c ./asks")
check(r.stdout.count(" closed") == 1 and " sale" not in r.stdout, "what is asked for is listed", r.stdout)
for engine in "kernel", "inproc":
    r = trace(engine, "./asks", "shop$target:::closed { trace(1); }")
    check(r.out.strip() == "it is", "asked, never fired", engine, r)

# an inline function in two objects
for ld in LINKERS:
    for linktype in "elf", "elfdof":
        run("rm -f *.o; g++ -O2 -c one.cc two.cc && %s -G -x linktype=%s -s shop.d one.o two.o && g++ -fuse-ld=%s -o both one.o two.o shop.o" % (D, linktype, ld))
        r = trace("inproc", "./both", "shop$target:::sale { @[copyinstr(arg0), probefunc] = sum(arg1); }")
        check(r.table() == [(("both", "_Z4bothi"), 3)], "inline", ld, linktype, r)
        check(len(descry("-l", "-P", "shop*", c="./both", cwd=TMP).lines()) == 2, "one place, listed once")

# a library that is loaded later and unloaded, and a child; another program executed
for linktype in "elf", "elfdof":
    run("rm -f *.o; gcc -O2 -fPIC -c lib.c && %s -G -x linktype=%s -s shop.d lib.o && gcc -shared -o libshop.so lib.o shop.o && gcc -o host host.c" % (D, linktype))
    for engine in ["inproc"] + ["kernel"] * (linktype == "elf"):
        for provider in "shop$target:::sale", "shop*:libshop.so::sale":
            r = trace(engine, "./host", provider + " { @[copyinstr(arg0), probefunc] = sum(arg1); }")
            check(r.table() == [(("lib", "sell"), 3)], "loaded later", linktype, engine, provider, r)
        r = trace(engine, "./host child", "shop$target:::sale { @[copyinstr(arg0)] = sum(arg1); }", "-x", "follow")
        check(r.table() == [(("lib",), 103)], "a child", linktype, engine, r)
# a listing of a process has the loaded objects, and no more
waits = subprocess.Popen(["sh", "-c", "read line; exec ./host"], stdin=subprocess.PIPE, cwd=TMP)
r = sh("%s -l -P shop%d" % (D, waits.pid))
check("sale" not in r.stdout and os.path.exists("libshop.so"), "not loaded, not listed", r.stdout)
waits.communicate(b"go\n")
build("gcc", "-O2", "elf", "bfd")
for engine in "kernel", "inproc":
    r = trace(engine, "sh -c 'exec ./shop'", "shop$target:%s/shop::sale { @[copyinstr(arg0)] = sum(arg1); }" % TMP)
    check(r.table() == [(("bread",), 3), (("milk",), 33)], "executed", engine, r)

# impossible cases are reported, and the objects stay unchanged
run("gcc -O2 -c a.c address.c unknown.c")
for bad, word in ("address.o", "its address must not be taken"), ("unknown.o", "probe lost of provider shop is not defined"), ("shop.d", "is not an ELF file"), ("shop", "is linked already"), ("none.o", "No such file"):
    before = open("a.o", "rb").read()
    r = run("%s -G -s shop.d a.o %s" % (D, bad), 1)
    check(word in r.stderr and r.stderr.count("\n") == 1 and open("a.o", "rb").read() == before, bad, r.stderr)
r = run("gcc -o shop a.o", 1)
check("__dtrace_shop___sale" in r.stderr, "an object that was forgotten is told by the linker")

# any number of symbols costs little for each call, and the number of calls is bounded
def crowd(functions, calls):
    with open("crowd.s", "w") as f:
        for i in range(functions):
            f.write("f%d: %s\nret\n.type f%d, @function\n.size f%d, . - f%d\n" % (i, "call __dtrace_shop___sale" if i < calls else "nop", i, i, i))
    run("gcc -c crowd.s")
crowd(400000, 8000)
run("ulimit -t 20; %s -G -s shop.d crowd.o" % D)
crowd(9000, 9000)
r = run("%s -G -s shop.d crowd.o" % D, 1)
check("too many calls of probes" in r.stderr, "the number of calls", r.stderr)

# another folder gets the name of the objects' one, between their reading and their writing
os.makedirs("theirs")
os.makedirs("victim")
run("cp a.o theirs/a.o && echo kept >victim/a.o")
open("exchange", "w").write("#!/bin/sh\nmv theirs moved && ln -s victim theirs && exec cc \"$@\"\n")
os.chmod("exchange", 0o755)
r = run("CC=./exchange %s -G -s shop.d -o theirs.o theirs/a.o" % D, 1)
check("another file has this name now" in r.stderr, "exchanged", r.stderr)
check(open("victim/a.o").read() == "kept\n" and os.listdir("victim") == ["a.o"], "the other folder", os.listdir("victim"))
check(open("moved/a.o", "rb").read() == open("a.o", "rb").read() and os.listdir("moved") == ["a.o"], "its own folder", os.listdir("moved"))

# damaged objects end in a message or in an object, never in a crash
whole = open("a.o", "rb").read()
random.seed(17)
for i in range(150):
    data = bytearray(whole[:random.randrange(len(whole))] if i % 3 == 0 else whole)
    for k in range(random.randrange(1, 9)):
        data[random.randrange(len(data)) if i % 3 else random.randrange(min(64, len(data)))] = random.randrange(256)
    open("bad.o", "wb").write(data)
    r = sh("%s -G -s shop.d bad.o" % D)
    check(r.returncode in (0, 1) and "Sanitizer" not in r.stderr, "damaged", i, r.returncode, r.stderr[-500:])
done()
