#!/usr/bin/env python3
# A text of the process as the only key of an aggregation, where the in-process engine remembers the entries by the texts' addresses: texts
# that change in their place, share their beginning, are longer than a key, end at a mapping's end or at no address; keys of
# several aggregations, which are printed meanwhile. Both engines count the same.
from live import *

PROGRAM = r"""
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const char *const names[] = { "", "a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh12345678" };
static volatile int calls;
__attribute__((noinline)) void named(const char *s) { __asm__ volatile("" : : "r"(s) : "memory"); calls++; }
int main(void)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), buffer[1024], *end;
	munmap(two + 4096, 4096);
	for (int i = 0; i < 7; i++) {
		/* the same place */
		for (int k = 0; k <= i * 10; k++) {
			strcpy(buffer, names[(i + k) % 7]);
			named(buffer);
		}
		/* places of their own */
		for (int k = 0; k < 100; k++)
			named(names[i]);
		end = two + 4096 - strlen(names[i]) - 1;
		strcpy(end, names[i]);
		for (int k = 0; k < 3; k++)
			named(end);
		usleep(10000);
	}
	/* differ behind the end of a key, or before it */
	memset(buffer, 'x', sizeof(buffer));
	buffer[1023] = 0;
	for (int k = 0; k < 40; k++) {
		buffer[k % 3 ? 300 : 100] = 'A' + k % 2;
		named(buffer);
	}
	for (int k = 0; k < 50; k++)
		named(k % 5 ? names[1] : (const char *)8);
	return 0;
}
"""
CLAUSES = """pid$target:a.out:named:entry { @all[copyinstr(arg0)] = count(); @sum[copyinstr(arg0)] = sum(pid == $target); }
pid$target:a.out:named:entry /arg0 != 8/ { self->at = arg0; @its[copyinstr(self->at)] = count(); }
tick-5ms { printa("-%s\\n", @all); }
ERROR { @faults = count(); }
END { printa("%s %@d %@d\\n", @all, @sum); printa("its %s %@d\\n", @its); printa("%@d faults\\n", @faults); }"""
with open(TMP + "/text.c", "w") as f:
    f.write(PROGRAM)
subprocess.run(["cc", "-O1", "-o", TMP + "/a.out", TMP + "/text.c"], check=True)
counted = {}
for engine in ("kernel", "inproc"):
    r = descry("-q", "-x", "engine=" + engine, "-n", CLAUSES, c=TMP + "/a.out")
    counted[engine] = sorted(line for line in r.out.splitlines() if line and line[0] != "-")
    # 100 and 3 at places of their own; the buffer's 217 are divided by the program; 40 of 255 characters, 40 with the fault
    rows = dict(re.findall(r"^(\w*) (\d+) \d+$", r.out, re.M))
    check(sum(int(n) for k, n in rows.items()) == 7 * 103 + 217 + 40 + 40, engine, "all", rows, r)
    check(len(rows) == 7 + 2, engine, "keys", rows)
    check(re.search(r"^10 faults$", r.out, re.M), engine, "faults", r.out[-300:])
check(counted["kernel"] == counted["inproc"], "both engines count the same", counted)
done()
