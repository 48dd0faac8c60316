#!/usr/bin/env python3
# The reason why a stack is not complete is printed behind its last frame and in JSON, and counted. A complete stack
# has none.
# serial
from live import *

C = r"""
#include <string.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
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
static ucontext_t here, there;
static void coroutine(void) { for (;;) { deep(); swapcontext(&there, &here); } }
/* What Ruby's fibers begin with: nobody has called the function, and it finds 0 where it would return to. */
__attribute__((noinline, noreturn)) static void fiber(void) { for (;;) deep(); }
static void begin_fiber(char *top) { asm volatile("mov %1, %%rsp; push $0; jmp *%0" : : "r"(fiber), "r"(top) : "memory"); }
/* As OCaml's caml_c_call: its return address is in a register, and still below rsp. */
void popped(unsigned long n);
asm(".globl popped; .type popped, @function; popped: .cfi_startproc; pop %rdx; .cfi_adjust_cfa_offset -8; 1: dec %rdi; jnz 1b;"
    "push %rdx; .cfi_adjust_cfa_offset 8; ret; .cfi_endproc; .size popped, . - popped");
static void on_signal(int sig) { s++; }
static void (*volatile null)(void);
static sigjmp_buf before;
static void on_fault(int sig) { deep(); siglongjmp(before, 1); }
__attribute__((noinline)) static void calls_null(void) { null(); s++; }
static void spin_in_signal(int sig) { for (int i = 0; i < 30; i++) spin(); }
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0x55, 0xbd, 1, 0, 0, 0, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3 };
	void *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, code, sizeof(code));
	for (;;)
		if (!strcmp(argv[1], "jit")) called((void (*)(void (*)(void)))p);
		else if (!strcmp(argv[1], "stack")) new_stack(deep, stack + 65536);
		else if (!strcmp(argv[1], "fiber")) begin_fiber(stack + 65536);
		else if (!strcmp(argv[1], "popped")) popped(100000);
		else if (!strcmp(argv[1], "signal")) { signal(SIGUSR1, on_signal); raise(SIGUSR1); }
		else if (!strcmp(argv[1], "null")) { signal(SIGSEGV, on_fault); if (!sigsetjmp(before, 1)) calls_null(); }
		else if (!strcmp(argv[1], "popped-signal")) {
			struct itimerval often = { { 0, 300 }, { 0, 300 } };
			signal(SIGPROF, spin_in_signal);
			setitimer(ITIMER_PROF, &often, 0);
			for (;;) popped(1000000);
		}
		else if (!strcmp(argv[1], "coroutine")) {
			getcontext(&there);
			there.uc_stack.ss_sp = stack;
			there.uc_stack.ss_size = 65536;
			makecontext(&there, coroutine, 0);
			for (;;) swapcontext(&here, &there);
		}
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


def whole(how, pattern, what, **more):
    """Such a stack is among them, and none is incomplete."""
    r = run(how, "-q", "-x", "report", **more)
    check(re.search(pattern, r.out), what, r.out[-900:])
    check(re.search(r"\b0 not complete", r.out + r.err), what + ": all", (r.out + r.err)[-600:])


# stacks that no _start is at the end of, and returns from signals: complete
whole("coroutine", r"ends`deep\+0x\w+\n +ends`coroutine\+0x\w+\n +libc\.so\.6`\S+\n +\d+\n", "makecontext()")
whole("fiber", r"ends`deep\+0x\w+\n +ends`fiber\+0x\w+\n +\d+\n", "returns to 0")
whole("popped", r"ends`popped\+0x\w+\n +ends`main\+0x\w+\n.*\n.*\n +ends`_start\+0x\w+\n +\d+\n", "return address popped")
whole("popped-signal", r"`__restore_rt\+0x\w+\n +ends`popped\+0x\w+\n +ends`main\+0x\w+\n.*\n.*\n +ends`_start\+0x\w+\n +\d+\n", "popped, and interrupted")
whole("null", r"ends`on_fault\+0x\w+\n +libc\.so\.6`__restore_rt\+0x\w+\n +0x0\n +ends`calls_null\+0x\w+\n +ends`main\+", "who called NULL")
whole("signal", r"`__restore_rt\+0x\w+\n(.*\n)+? +ends`main\+0x\w+\n.*\n.*\n +ends`_start\+0x\w+\n +\d+\n", "rt_sigreturn()",
      program="syscall::rt_sigreturn:entry /pid == $target/ { @[ustack()] = count(); } tick-600ms { exit(0); }")

# a stack that is complete, or as deep as requested, has no such line
r = run("plain", "-q", "-x", "report")
check(re.search(r"ends`main\+0x\w+\n.*\n.*\n +ends`_start\+0x\w+\n +\d+\n", r.out), "complete: nothing behind _start", r.out[:900])
r = run("plain", "-q", program=PROGRAM.replace("ustack()", "ustack(2)"))
check(re.search(r"ends`spin\+0x\w+\n +ends`deep\+0x\w+\n +\d+\n", r.out), "two frames, nothing behind them", r.out[:900])

done()
