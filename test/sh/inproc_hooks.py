#!/usr/bin/env python3
# A program that hooks its functions, as hook libraries do, before it is traced, while it is traced and after it: by a jump over the function's
# first bytes, which it keeps, and a trampoline with a copy of them. Where descry's jump stood, the copies lead to descry's stub for ever.
# serial
from live import *

exe = TMP + "/hooking"
open(exe + ".c", "w").write(r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int hooked(int n);
void finished(void);
/* The first instruction has as many bytes as a jump. */
__asm__(".text; .p2align 4; .globl hooked; .type hooked, @function; hooked: mov $3, %eax; lea (%rax,%rdi,2), %eax; ret; .size hooked, . - hooked; .p2align 4");
__asm__(".globl finished; .type finished, @function; finished: mov $0, %eax; ret; .size finished, . - finished; .p2align 4");
static uint8_t *trampoline, saved[5];
static int hook(int n)
{
	return 1000 + ((int (*)(int))(void *)trampoline)(n);
}
static void jump(uint8_t *at, const void *to)
{
	int32_t rel = (int32_t)((uintptr_t)to - (uintptr_t)at - 5);

	*at = 0xe9;
	memcpy(at + 1, &rel, 4);
}
static int prepare(int absolute)
{
	uint8_t *f = (uint8_t *)(void *)hooked;

	trampoline = mmap(f - 0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(saved, f, 5);
	if (*saved == 0xe9) {
		int32_t rel;
		const uint8_t *to;

		memcpy(&rel, saved + 1, 4);
		to = f + 5 + rel;
		if (absolute) { /* jmp *0(%rip) */
			memcpy(trampoline, "\xff\x25\0\0\0\0", 6);
			memcpy(trampoline + 6, &to, 8);
		} else {
			jump(trampoline, to);
		}
	} else {
		memcpy(trampoline, saved, 5);
		jump(trampoline + 5, f + 5);
	}
	return mprotect(trampoline, 4096, PROT_READ | PROT_EXEC);
}
static int writable(int yes)
{
	uintptr_t page = (uintptr_t)(void *)hooked & ~4095ul;

	return mprotect((void *)page, 8192, PROT_READ | PROT_EXEC | (yes ? PROT_WRITE : 0));
}
int main(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		int (*volatile f)(int) = hooked;
		int out = 0;

		if (*line == 'p' || *line == 'P')
			out = prepare(*line == 'P');
		if (*line == 'i') {
			out = writable(1);
			jump((uint8_t *)(void *)hooked, (void *)hook);
			out |= writable(0);
		}
		if (*line == 'u') {
			out = writable(1);
			memcpy((void *)hooked, saved, 5);
			out |= writable(0);
		}
		if (*line == 'e')
			finished();
		for (int i = 0; *line == 'w' && i < 100; i++)
			out += f(i);
		printf("%d\n", out);
		fflush(stdout);
	}
	return 0;
}
""")
subprocess.run(["cc", "-O1", "-o", exe, exe + ".c"], check=True)
SUM = 3 * 100 + 2 * 99 * 100 // 2
if finish(start("-x", "engine=inproc", "-qn", "BEGIN { exit(0); }")).rc:
    skip("no in-process engine")


class Program:
    def __init__(self):
        self.p = subprocess.Popen([exe], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hooked = False

    def do(self, what):
        for c in what:
            self.p.stdin.write(c + "\n")
            self.p.stdin.flush()
            got = self.p.stdout.readline()
            self.hooked = (self.hooked or c == "i") and c != "u"
            want = SUM + 100000 * self.hooked if c == "w" else 0
            if not check(got == "%d\n" % want, "%s of %s" % (c, what), repr(got), want, self.p.poll()):
                return

    def mapped(self):
        with open("/proc/%d/maps" % self.p.pid) as f:
            return re.findall("memfd:descry", f.read())

    def clean(self, secs=60):
        end = time.monotonic() + secs
        while self.mapped() and time.monotonic() < end:
            time.sleep(0.02)
        check(not self.mapped(), "descry's files are mapped no more")


def kill_watchdog(pid):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for child in open("/proc/%d/task/%d/children" % (pid, pid)).read().split():
            if open("/proc/%s/comm" % child).read().strip() == "descry-watch":
                os.kill(int(child), signal.SIGKILL)
                return
        time.sleep(0.01)
    check(False, "no watchdog")


def trace(t, during, how):
    d = tracing("-x", "engine=inproc", "-p", str(t.p.pid), "-n", "pid$target:a.out:hooked:entry { @ = count(); } pid$target:a.out:finished:entry { exit(0); }")
    t.do(during)
    if how == "healed":
        kill_watchdog(d[1].pid)
    if how != "ends":
        d[1].kill()
    else:
        t.do("e")
    r = finish(d)
    if how == "healed":
        r = descry("heal", str(t.p.pid))
    t.clean()
    return r


KEPT = "hooked functions while they were probed, so its code may lead to descry's stubs: 1 mapping of stubs stays"
for how in "ends", "killed", "healed":
    #                 before  during  behind  firings  said at the end
    for row in (("", "w", "w", 100, None),
                ("pi", "w", "wuw", 0, "1 place not enabled: other bytes"),
                ("", "wpiw", "wuwiwu", 200, KEPT),
                ("", "wPiw", "wuwiwu", 200, KEPT),
                ("", "piwuw", "wiwuw", 200, KEPT),
                ("", "wp", "wiwuw", 100, KEPT),
                ("p", "wiw", "wuw", 100, "overwritten descry's jump in 1 probed place of")):
        before, during, behind, count, said = row
        t = Program()
        t.do(before)
        r = trace(t, during, how)
        if how == "ends":
            check(r.rc == 0 and r.out.split()[-1] == (str(count) if count else "finished:entry"), row, r)
            check(not said or said in r.err, row, r)
            check((KEPT in r.err) == (said == KEPT or "i" in during), row, r)
        if how == "healed":
            check(("1 mapping of stubs stay" in r.out) == (said == KEPT or "i" in during), row, r)
        t.do(behind)
        if said == KEPT:
            # another descry in a process with such stubs
            r = trace(t, "w" + ("u" if t.hooked else "i") + "w", "ends")
            check(r.rc == 0, row, r)
            t.do("www")
        t.p.stdin.close()
        check(t.p.wait(60) == 0, row, how, "the program's exit", t.p.returncode)
done()
