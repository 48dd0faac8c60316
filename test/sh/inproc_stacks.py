#!/usr/bin/env python3
# serial: threads below whose stack pointer nobody may write, as Erlang's, and those that run 32-bit code, as Wine's: a program that is attached to,
# sampled and copied does what it does alone.
from live import *

if not shutil.which("cc"):
    skip("needs cc")
SOURCE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { SIZE = 65536, LARGE = 1 << 20 }; /* malloc(3) takes a large block from mmap(2), which may lay it below the C library's */
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
/* Runs with a stack in the middle of a block. Returns false when a byte below it has changed. */
static int small_stack(int size)
{
	static unsigned char *block;
	block = block ? block : malloc(size);
	memset(block, 0x5a, size);
	__asm__ volatile("mov %%rsp, %%r15\n mov %0, %%rsp\n mov $3000000, %%ecx\n 1: dec %%ecx\n jnz 1b\n mov %%r15, %%rsp\n"
			 : : "r"(block + size / 2) : "r15", "rcx", "memory");
	for (int i = 0; i < size; i++)
		if (block[i] != 0x5a)
			return 0;
	return 1;
}
/* Runs a loop of 32-bit code, which comes back by a far jump. */
static int small_code(void)
{
	static unsigned char *code;
	if (!code) {
		code = mmap(0, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
		if (code == MAP_FAILED)
			exit(77);
		memcpy(code, "\x49\x75\xfd\xff\x2b", 5);     /* 1: dec %ecx; jnz 1b; ljmp *(%ebx) */
		memcpy(code + 1024, "\xff\x63\x10", 3);      /* jmp *16(%rbx) */
	}
	__asm__ volatile("mov $0x2b, %%eax\n mov %%eax, %%ds\n mov %%rsp, %%r15\n lea 1f(%%rip), %%rax\n mov %%rax, 16(%%rbx)\n mov %[back], %%eax\n"
			 "mov %%eax, 0(%%rbx)\n movw $0x33, 4(%%rbx)\n mov %[stack], %%rsp\n pushq $0x23\n push %[code]\n lretq\n 1: mov %%r15, %%rsp\n"
			 : : "b"(code + 2048), [back] "r"((unsigned)(unsigned long)(code + 1024)), [stack] "r"(code + 60000), [code] "r"(code),
			 "c"(3000000) : "rax", "r15", "memory");
	return 1;
}
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n; }
int main(int argc, char **argv)
{
	int own = 0, right = 1;
	printf("ready\n");
	fflush(stdout);
	for (long end = now() + 6000; now() < end && right;) {
		right = argv[1][0] == 's' ? small_stack(SIZE) : argv[1][0] == 'l' ? small_stack(LARGE) : small_code();
		for (int i = 0; i < 300000; i++)
			own += work(i);
		usleep(1);
	}
	return right ? 7 : 8;
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)
COUNT = "BEGIN { printf(\"begun\\n\"); } pid$target:a.out:work:entry { @ = count(); } tick-200ms { exit(0); }"
SAMPLE = "BEGIN { printf(\"begun\\n\"); } profile-997 { @ = count(); } tick-1s { exit(0); }"
for way in "stack", "large", "32-bit":
    t = subprocess.Popen([PROGRAM, way], stdout=subprocess.PIPE)
    t.stdout.readline()
    rounds = 0
    while t.poll() is None:
        for program in COUNT, SAMPLE:
            p = subprocess.run([DESCRY, "-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", program], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if t.poll() is None:
                check(p.returncode == 0 and len(p.stdout.split()) == 2, way, program, p)
                rounds += 1
        if os.geteuid() == 0:
            subprocess.run([DESCRY, "leaks", "--fork", "-p", str(t.pid)], stdin=subprocess.DEVNULL, capture_output=True)
    if t.returncode == 77:
        print("note: there is no memory below 4 GB")
        continue
    check(t.returncode == 7, way, "the program", t.returncode)
    check(rounds >= 2, way, "rounds", rounds)
done()
