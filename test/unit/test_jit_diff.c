/* Random programs through the interpreter, the compiler and, where bpf(2) is permitted, the
 * kernel. */
#include "unit.h"

#include <time.h>

#include "jit_diff.h"

enum { ROUNDS = 3000, KERNEL_ROUNDS = 300 };
static bool no_kernel;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void differs(const struct random_program *r, uint64_t seed, const char *why)
{
	ebpf_print(stderr, r->p, r->n, &(struct ebpf_names){ .index = true });
	fail_msg("seed %llu: %s", (unsigned long long)seed, why);
}

/* JIT_SEED=N JIT_SECONDS=N: a longer campaign from there. */
static void test_interpreter(void **state)
{
	struct random_program *r = xcalloc(1, sizeof(*r));
	const char *first = getenv("JIT_SEED"), *seconds = getenv("JIT_SECONDS");
	uint64_t seed = first ? strtoull(first, NULL, 0) : 1, r0, rounds = 0;
	double until = now() + (seconds ? atof(seconds) : 0);
	char *why;

	diff_init();
	while (seconds ? now() < until : rounds < ROUNDS) {
		rp_make(r, NULL, 0, seed, false);
		why = diff_run(r, seed, &r0);
		if (why)
			differs(r, seed, why);
		seed++;
		rounds++;
	}
	printf("%llu programs\n", (unsigned long long)rounds);
	mock_fini();
	free(r);
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int new_map(uint32_t entries)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY,
				.key_size = 4,
				.value_size = RANDOM_VALUE,
				.max_entries = entries };

	return bpf(BPF_MAP_CREATE, &attr);
}

static void test_kernel(void **state)
{
	struct random_program *r = xcalloc(1, sizeof(*r));
	struct bpf_insn *p = xcalloc(RANDOM_MAX, sizeof(*p));
	char *log = xcalloc(1, 1 << 16);
	int maps[RANDOM_MAPS], ran = 0;

	for (uint32_t m = 0; m < RANDOM_MAPS; m++) {
		maps[m] = new_map(diff_values[m]);
		if (maps[m] < 0) {
			no_kernel = true;
			fprintf(stderr, "bpf(2): %s: the kernel's part is not compared\n",
				strerror(errno));
			free(r);
			free(p);
			free(log);
			skip();
		}
	}
	diff_init();
	for (uint64_t seed = 1; seed <= KERNEL_ROUNDS; seed++) {
		union bpf_attr attr = { 0 };
		uint8_t packet[64] = { 0 };
		uint64_t r0;
		char *why;
		int fd;

		rp_make(r, NULL, 0, seed, true);
		memcpy(p, r->p, r->n * sizeof(*p));
		for (uint32_t i = 0; i < r->n; i++) {
			if (!ebpf_is_ld_imm64(&p[i]))
				continue;
			if (p[i].src_reg == BPF_PSEUDO_MAP_FD ||
			    p[i].src_reg == EBPF_PSEUDO_MAP_VALUE)
				p[i].imm = maps[p[i].imm];
			i++;
		}
		diff_reset(seed);
		for (uint32_t m = 0; m < RANDOM_MAPS; m++) {
			for (uint32_t k = 0; k < diff_values[m]; k++) {
				union bpf_attr a = { .map_fd = (uint32_t)maps[m],
						     .key = (uintptr_t)&k,
						     .value = (uintptr_t)diff_memory[m] +
							      k * RANDOM_VALUE };

				assert_int_equal(bpf(BPF_MAP_UPDATE_ELEM, &a), 0);
			}
		}
		attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
		attr.insns = (uintptr_t)p;
		attr.insn_cnt = r->n;
		attr.license = (uintptr_t) "GPL";
		fd = bpf(BPF_PROG_LOAD, &attr);
		if (fd < 0)
			continue; /* the kernel's verifier requires more than this one */
		memset(&attr, 0, sizeof(attr));
		attr.test.prog_fd = (uint32_t)fd;
		attr.test.data_in = (uintptr_t)packet;
		attr.test.data_size_in = sizeof(packet);
		assert_int_equal(bpf(BPF_PROG_TEST_RUN, &attr), 0);
		close(fd);
		ran++;
		why = diff_run(r, seed, &r0);
		if (why)
			differs(r, seed, why);
		if ((uint32_t)r0 != attr.test.retval)
			differs(r, seed, "the kernel's r0 differs");
		for (uint32_t m = 0; m < RANDOM_MAPS; m++) {
			for (uint32_t k = 0; k < diff_values[m]; k++) {
				uint8_t value[RANDOM_VALUE];
				union bpf_attr a = { .map_fd = (uint32_t)maps[m],
						     .key = (uintptr_t)&k,
						     .value = (uintptr_t)value };

				assert_int_equal(bpf(BPF_MAP_LOOKUP_ELEM, &a), 0);
				if (memcmp(value, diff_memory[m] + k * RANDOM_VALUE, RANDOM_VALUE))
					differs(r, seed, "the kernel's memory differs");
			}
		}
	}
	printf("%d of %d programs through the kernel\n", ran, KERNEL_ROUNDS);
	assert_true(ran > KERNEL_ROUNDS / 4);
	mock_fini();
	free(r);
	free(p);
	free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreter),
		cmocka_unit_test(test_kernel),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	if (!r && no_kernel)
		fprintf(stderr, "the interpreter's part passed\n");
	return r;
}
