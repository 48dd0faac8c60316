# Why a stack is not complete: said behind its last frame, in JSON, and counted; and not said where nothing is missing.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *

C = r"""
#include <string.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
static volatile unsigned long s;
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 100000; i++) s += i; }
/* A function without unwind tables and without a frame pointer: sub $24,%rsp; call *%rdi; add $24,%rsp; ret; rbp is odd */
__attribute__((noinline)) static int called(void (*jit)(void (*)(void))) { jit(spin); s++; return 1; }
static void new_stack(void (*f)(void), char *top)
{
	asm volatile("mov %%rsp, %%rbx; mov %1, %%rsp; call *%0; mov %%rbx, %%rsp" : : "r"(f), "r"(top)
		     : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}
__attribute__((noinline)) static void deep(void) { spin(); s++; }
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0x55, 0xbd, 1, 0, 0, 0, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3 };
	void *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, code, sizeof(code));
	for (;;)
		if (!strcmp(argv[1], "jit")) called((void (*)(void (*)(void)))p);
		else if (!strcmp(argv[1], "stack")) new_stack(deep, stack + 65536);
		else deep();
}
"""
exe = TMP + "/ends"
subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w", "-x", "c", "-o", exe, "-"],
               input=C.encode(), check=True)
PROGRAM = "profile-499 /pid == $target/ { @[ustack()] = count(); } tick-600ms { exit(0); }"


def run(how, *options, program=PROGRAM):
    return descry(*options, "-n", program, c=exe + " " + how)


r = run("jit", "-q", "-x", "report")
check(re.search(r"\n +ends`spin\+0x\w+\n +0x\w+\n +\[stack ends: no unwind table for code made at run time\]\n +\d+\n", r.out), "JIT", r.out[:900])
m = re.search(r"user stacks: (\d+) walked, (\d+) not complete: .*?(\d+) no unwind table", r.out + r.err)
check(m and int(m.group(3)) > 2 and int(m.group(1)) >= int(m.group(2)), "counted", (r.out + r.err)[-900:])

r = run("jit", "--json")
check('{"end":"no unwind table for code made at run time"}' in r.out, "JSON", r.out[:600])
report = [json.loads(l) for l in r.out.splitlines() if '"type":"report"' in l]
check(report and report[0]["user_stacks"]["no-table"] > 2, "JSON report", report)

# as events, not as keys
r = run("jit", "-q", program="profile-499 /pid == $target/ { ustack(); } tick-600ms { exit(0); }")
check("[stack ends: no unwind table for code made at run time]" in r.out, "ustack() as an action", r.out[:600])

# what is complete, or as deep as asked for, has no such line
r = run("plain", "-q", "-x", "report")
check(re.search(r"ends`main\+0x\w+\n.*\n.*\n +ends`_start\+0x\w+\n +\d+\n", r.out), "complete: nothing behind _start", r.out[:900])
r = run("plain", "-q", program=PROGRAM.replace("ustack()", "ustack(2)"))
check(re.search(r"ends`spin\+0x\w+\n +ends`deep\+0x\w+\n +\d+\n", r.out), "two frames, nothing behind them", r.out[:900])

done()
END
