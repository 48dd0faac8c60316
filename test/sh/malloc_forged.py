#!/usr/bin/env python3
# descry malloc record -k: a process says that it has two million stacks, each of a thousand frames, which would take many seconds to write.
# The recorder writes them for a while, goes on with others in between, gives the rest up a second after the process has ended, and says so.
# Processes say that all their rings are full, and have written none of them: the recorder makes no memory for that, and ends soon after SIGINT.
from live import *

FORGE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/alloc.h"
enum { FRAMES = 500, NODES = WIRE_ALLOC_NODES - 1 };

int main(int argc, char **argv)
{
	unsigned long lo = 0, a;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	free(malloc(100));
	while (f && !lo && fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:descry-malloc (") && sscanf(line, "%lx-", &a) == 1)
			lo = a;
	if (!lo)
		return 1;
	struct wire_alloc *m = (void *)lo;
	if (argc > 1 && !strcmp(argv[1], "rings")) {
		for (int i = 0; i < WIRE_ALLOC_RINGS; i++)
			m->rings[i].head = m->rings[i].tail + WIRE_ALLOC_RING;
		puts("forged");
		fflush(stdout);
		/* until all were read, but for that of this thread, whose count is wrong now */
		for (int taken = 0, i; !taken; usleep(1000))
			for (taken = 1, i = 8; i < WIRE_ALLOC_RINGS; i++)
				taken &= m->rings[i].tail == m->rings[i].head;
		puts("taken");
		fflush(stdout);
		for (;;) {
			for (int i = 0; i < WIRE_ALLOC_RINGS; i++)
				m->rings[i].head = m->rings[i].tail + WIRE_ALLOC_RING;
			usleep(1000);
		}
	}
	/* the nodes of these numbers stay empty */
	unsigned gap = argc > 1 ? atoi(argv[1]) : 0;
	struct wire_alloc_node *v = (void *)(lo + WIRE_ALLOC_BYTES + WIRE_ALLOC_NODES_AT);
	/* a native stack, one of an interpreter, and then pairs of both */
	unsigned native = m->nnodes + 10, language = native + FRAMES;
	for (unsigned i = 0; i < FRAMES; i++) {
		v[native + i] = (struct wire_alloc_node){ i ? 0x1000 * i : WIRE_ALLOC_ROOT(0, 0), i ? native + i - 1 : 0, 1 };
		v[language + i] = (struct wire_alloc_node){ i ? 1ull << 63 | 0x1000 * i : WIRE_ALLOC_PAIR(0), i ? language + i - 1 : 0, 1 };
	}
	for (unsigned i = language + FRAMES; i < NODES; i++)
		if (!gap || i % gap)
			v[i] = (struct wire_alloc_node){ WIRE_ALLOC_PAIR(language + FRAMES - 1), native + FRAMES - 1, 1 };
	__atomic_store_n(&m->nnodes, NODES - 1, __ATOMIC_SEQ_CST);
	puts("forged");
	return 0;
}
"""
if not shutil.which("cc"):
    skip("needs cc")
with open(os.path.join(TMP, "forge.c"), "w") as f:
    f.write(FORGE)
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
subprocess.run(["cc", "-O1", "-I", root, "-I", os.path.join(root, "src"), "-o", os.path.join(TMP, "forge"), os.path.join(TMP, "forge.c")], check=True)
for gap in "0", "64":
    r = descry("malloc", "record", "-k", "64", "-o", os.path.join(TMP, "o.dma"), os.path.join(TMP, "forge"), gap)
    check(r.rc == 0 and r.out == "forged\n", "recorded", gap, r)
    check("not all stacks of the process could be written before its end" in r.err, "it is said", gap, r)
    report = descry("malloc", "report", os.path.join(TMP, "o.dma"))
    check(report.rc == 0, "the file is whole", gap, report)

# 128 MB of rings, in each of four processes
d = subprocess.Popen([DESCRY, "malloc", "record", "-o", os.path.join(TMP, "o.dma"), "sh", "-c", "for i in 1 2 3; do %s/forge rings & done; exec %s/forge rings" % (TMP, TMP)],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=os.setpgrp)
said = [d.stdout.readline() for _ in range(8)]
check(sorted(said) == ["forged\n"] * 4 + ["taken\n"] * 4, "rings", said)
with open("/proc/%d/status" % d.pid) as f:
    shared = int(re.search(r"RssShmem:\s*(\d+)", f.read()).group(1))
check(shared < 32 << 10, "memory that the recorder has made, kB", shared)
os.killpg(d.pid, signal.SIGINT)
check(d.wait() in (0, 130), "ended", d.returncode)
os.killpg(d.pid, signal.SIGKILL)  # the others, for which the shell ignores SIGINT
done()
