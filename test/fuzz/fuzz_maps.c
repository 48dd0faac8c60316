/* Text of files in /proc. The first byte determines the file. 0: kallsyms. Otherwise maps, whose
 * lines are then taken for mappings that a process makes one after the other: its list stays in
 * order, no two overlap, and the number of remembered old mappings is bounded. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "program/symbol/symbol_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PID = INT32_MAX, LINES_MAX = 300 };

static void kernel(const char *text, size_t size)
{
	struct symbols *s = symbols_new();
	char *own = xcalloc(1, size + 1);
	struct place p;

	memcpy(own, text, size);
	kallsyms_parse(&s->kernel, own, size);
	for (uint32_t i = 0; i < s->kernel.n && i < 100; i++)
		if (symbols_kernel(s, s->kernel.symbols[i].addr, &p))
			assert(p.function && p.module && p.offset <= 1 << 20);
	symbols_kernel(s, UINT64_MAX, &p);
	symbols_kernel_addr(s, "vmlinux", "x", &(uint64_t){ 0 });
	symbols_free(s);
}

static void check(const struct process *p)
{
	for (uint32_t i = 0; i < p->maps.n; i++) {
		assert(p->maps.v[i].m.start < p->maps.v[i].m.end);
		assert(!i || p->maps.v[i - 1].m.end <= p->maps.v[i].m.start);
	}
	assert(p->past.n <= 256);
}

static void history(const char *text, size_t size)
{
	struct symbols *s = symbols_new();
	struct mappings maps;
	const pid_t pid = PID;
	char *own = xcalloc(1, size + 1);

	memcpy(own, text, size);
	mappings_parse(own, size, &maps);
	for (uint32_t i = 0; i < maps.n; i++) {
		struct mapping m = maps.v[i];

		assert(m.start < m.end && m.path);
		if (i >= LINES_MAX)
			continue;
		/* Not all come in order. */
		m.time = m.inode % 8 == 7 ? 1 : 2 + i;
		process_map(s, pid, &m);
		check((struct process *)(uintptr_t)*hash_get(&s->processes, &pid, sizeof(pid)));
		if (m.inode % 16 == 5)
			process_forked(s, pid, pid - 1);
		if (m.inode % 16 == 6)
			process_exec(s, pid, i);
	}
	mappings_free(&maps);
	symbols_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	(data[0] ? history : kernel)((const char *)data + 1, size - 1);
	return 0;
}
