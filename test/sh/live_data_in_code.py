#!/usr/bin/env python3
# Probes of instructions in functions that hold constants and jump tables, as those written by hand do: no byte of the data changes.
# serial
from live import *

exe = TMP + "/data"
open(exe + ".c", "w").write(r"""
#include <stdio.h>
__asm__(".text; .globl constants; .type constants,@function; .p2align 4\n"
	"constants: movsd 1f(%rip),%xmm0; addsd 2f(%rip),%xmm0; ret\n"
	"1: .double 3.25\n 2: .double 1.5\n .size constants,.-constants\n"
	".globl taken; .type taken,@function; .p2align 4\n"
	"taken: lea 1f(%rip),%rax; movsd (%rax),%xmm0; ret\n 1: .double 3.25\n .size taken,.-taken\n"
	".globl table; .type table,@function; .p2align 4\n"
	"table: lea 1f(%rip),%rax; movslq (%rax,%rdi,4),%rcx; add %rcx,%rax; jmp *%rax\n"
	"1: .long 2f-1b,3f-1b\n 2: mov $7,%eax; ret\n 3: mov $9,%eax; ret\n .size table,.-table\n"
	/* a constant within an instruction at the function's start, as V8 has them */
	".globl inside; .type inside,@function; .p2align 4\n"
	"inside: movabs $0x400a000000000000,%rax; 1: nop; nop; nop; nop; nop; nop; movsd 1b-8(%rip),%xmm0; ret\n .size inside,.-inside\n"
	".previous");
double constants(void), taken(void), inside(void);
int table(long);
__attribute__((noinline)) int plain(int n)
{
	switch (n) {
	case 0: return 3;
	case 1: puts("one"); return 5;
	case 2: return getchar();
	case 3: puts("three"); return 8;
	case 4: return printf("four\n");
	}
	return n * 7;
}
int main(void)
{
	double sum = 0;
	int n = 0;

	for (int i = 0; i < 100; i++) {
		sum += constants() + taken() + inside();
		n += table(i & 1) + plain(i + 5);
	}
	printf("%f %d\n", sum, n);
}
""")
subprocess.run(["cc", "-O1", "-o", exe, exe + ".c"], check=True)
plain = subprocess.run([exe], stdout=subprocess.PIPE, text=True, check=True).stdout
for engine in ("auto", "kernel"):
    for function, least in (("constants", 3), ("inside", 3), ("taken", 3), ("table", 4), ("plain", 20)):
        r = descry("-q", "-x", "engine=" + engine, "-n", "pid$target:a.out:%s: { @[probename] = count(); }" % function, c=exe)
        check(plain in r.out, engine, function, "the program's results are the same", r)
        check(((("0",), 100)) in r.table(), engine, function, r)
        listed = descry("-l", "-n", "pid$target:a.out:%s:" % function, c=exe)
        offsets = [line for line in listed.out.splitlines() if re.search(r" [0-9a-f]+$", line)]
        check(len(offsets) >= least, function, "has %d instructions at least" % least, listed)
    r = descry("-q", "-x", "engine=" + engine, "-n", "pid$target:a.out:inside:entry { @ = count(); }", c=exe)
    check(plain in r.out and re.search(r"^ +100$", r.out, re.M), engine, "entry of a function whose first bytes are read", r)
r = descry("-n", "pid$target:a.out:constants:11 { @ = count(); }", c=exe, rc=1)
check("may be data" in r.err, r)
done()
