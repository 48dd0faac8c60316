/* First byte even: choices for a random valid program, for which interpreter and compiler must
 * agree. Odd: the bytes are instructions. When the compiler accepts them, they run, and must not
 * change any memory but their own. */
#include "unit/jit_diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	GUARDED = 32768
}; /* bytes of the area that raw programs must not reach: descriptors, the thread */

static uint64_t raw_helper(uint32_t entry, const uint64_t args[6])
{
	/* an address of the area, or an error, by the arguments */
	return args[1] & 1 ? (uint64_t)-EFAULT : (uintptr_t)mock.area + GUARDED + 4096;
}

static bool runs_long(const struct bpf_insn *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if ((ebpf_is_jump(&p[i]) && ebpf_jump_offset(&p[i]) < 0) ||
		    (p[i].code == (BPF_JMP | BPF_CALL) && p[i].imm == BPF_FUNC_loop))
			return true;
	return false;
}

static void raw(const uint8_t *data, size_t size)
{
	uint32_t n = (uint32_t)(size / sizeof(struct bpf_insn));
	struct bpf_insn *p = xmalloc((n + 1) * sizeof(*p));
	uint8_t *before = xmalloc(GUARDED);
	uint64_t ctx[21];
	struct err *e;

	memcpy(p, data, n * sizeof(*p));
	memset(ctx, data[0], sizeof(ctx));
	mock.env.area = mock.env.shared = (uintptr_t)mock.area + GUARDED;
	mock.env.area_size = MOCK_AREA - GUARDED;
	mock.helper = raw_helper;
	e = mock_compile(p, n);
	if (!e && !runs_long(p, n)) {
		struct wire_thread *t = (void *)(before + 8192);

		memcpy(before, mock.area, GUARDED);
		mock_host(ctx, 1);
		/* memory that a firing may change: its marks, and the thread's map values */
		t->gen = mock.thread->gen;
		t->cookie = mock.thread->cookie;
		t->budget = mock.thread->budget;
		if (memcmp(before, mock.area, 8192 + 1024))
			abort();
	}
	err_free(e);
	free(before);
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct random_program r;
	uint64_t r0;
	char *why;

	if (size < 2)
		return 0;
	diff_init();
	if (data[0] & 1) {
		raw(data + 1, size - 1);
	} else {
		rp_make(&r, data + 1, size - 1, data[0], false);
		why = diff_run(&r, data[0], &r0);
		if (why) {
			ebpf_print(stderr, r.p, r.n, &(struct ebpf_names){ .index = true });
			fprintf(stderr, "%s\n", why);
			abort();
		}
	}
	mock_fini();
	return 0;
}
