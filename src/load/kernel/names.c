/* Asks the kernel for names of its addresses, by a program that runs snprintf() with "%pS". */
#define _GNU_SOURCE
#include "load/kernel/names.h"

#include <sys/mman.h>

#include "load/kernel/kernel_private.h"

enum {
	HELPER_SNPRINTF = 165,
	TEXT_MAX = 1024 - 8, /* KSYM_NAME_LEN is 512; a module's name and two numbers follow */
};

/* The memory that the program and descry share. */
struct question {
	uint64_t addr;
	char text[TEXT_MAX];
};

struct kernel_names {
	bool tried;
	int prog;              /* -1: not loaded */
	struct question *area; /* mapped; NULL */
};

static int array(const char *name, uint32_t value_size, uint32_t flags)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_ARRAY,
			     .key_size = 4,
			     .value_size = value_size,
			     .max_entries = 1,
			     .map_flags = flags };

	sys_object_name(a.map_name, name);
	return sys_bpf(BPF_MAP_CREATE, &a, sizeof(a));
}

/* Makes the map with the format and freezes it, because the verifier reads the format. */
static int make_format(void)
{
	uint32_t key = 0;
	char format[8] = "%pS";
	int fd = array("names_format", sizeof(format), BPF_F_RDONLY_PROG);
	union bpf_attr put = { .map_fd = (uint32_t)fd,
			       .key = (uintptr_t)&key,
			       .value = (uintptr_t)format };
	union bpf_attr freeze = { .map_fd = (uint32_t)fd };

	if (fd < 0)
		return -1;
	if (sys_bpf(BPF_MAP_UPDATE_ELEM, &put, sizeof(put)) ||
	    sys_bpf(BPF_MAP_FREEZE, &freeze, sizeof(freeze))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Loads the program snprintf(area->text, TEXT_MAX, format, &area->addr, 8). */
static int load(int area, int format)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = BPF_REG_4,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = area },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_4 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K,
		  .dst_reg = BPF_REG_1,
		  .imm = offsetof(struct question, text) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = TEXT_MAX },
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = BPF_REG_3,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = format },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_5, .imm = 8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = HELPER_SNPRINTF },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_SYSCALL,
			     .prog_flags = BPF_F_SLEEPABLE, /* required for this type */
			     .insns = (uintptr_t)insns,
			     .insn_cnt = ARRAY_SIZE(insns),
			     .license = (uintptr_t) "GPL" };

	sys_object_name(a.prog_name, "names");
	return sys_prog_load(&a);
}

/* Makes maps and program. The program keeps the maps. */
static void make(struct kernel_names *n)
{
	cleanup_close int format = make_format();
	cleanup_close int area = array("names_area", sizeof(struct question), BPF_F_MMAPABLE);
	void *mem;

	if (format < 0 || area < 0)
		return;
	mem = mmap(NULL, sizeof(struct question), PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
	if (mem == MAP_FAILED)
		return;
	n->area = mem;
	n->prog = load(area, format);
}

struct kernel_names *kernel_names_new(void)
{
	struct kernel_names *n = xcalloc(1, sizeof(*n));

	n->prog = -1;
	return n;
}

void kernel_names_free(struct kernel_names *n)
{
	if (!n)
		return;
	if (n->area)
		munmap(n->area, sizeof(*n->area));
	if (n->prog >= 0)
		close(n->prog);
	free(n);
}

const char *kernel_names_ask(void *arg, uint64_t addr)
{
	struct kernel_names *n = arg;
	union bpf_attr run = { 0 };

	if (!n->tried)
		make(n);
	n->tried = true;
	if (n->prog < 0)
		return NULL;
	n->area->addr = addr;
	run.test.prog_fd = (uint32_t)n->prog;
	/* The program returns the bytes that the text needs, with the NUL; an error is negative. */
	if (sys_bpf(BPF_PROG_TEST_RUN, &run, sizeof(run)) || !run.test.retval ||
	    run.test.retval > TEXT_MAX)
		return NULL;
	return n->area->text;
}
