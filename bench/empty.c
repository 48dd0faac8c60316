/* Runs an empty BPF program on a raw tracepoint or at a function's entry, so that bench/run can
 * measure the kernel's own cost.
 *
 *	empty raw_tp TRACEPOINT
 *	empty uprobe FILE FUNCTION
 *
 * Prints "go" when it is attached, and runs until it is interrupted. Uses no library of descry, so
 * that only the kernel is measured. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static int bpf(int cmd, union bpf_attr *a)
{
	return (int)syscall(SYS_bpf, cmd, a, sizeof(*a));
}

static int load(enum bpf_prog_type type)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr a = { .prog_type = type,
			     .insns = (uintptr_t)nothing,
			     .insn_cnt = 2,
			     .license = (uintptr_t) "GPL" };
	int fd = bpf(BPF_PROG_LOAD, &a);

	return fd < 0 ? fail("loading the program") : fd;
}

static const Elf64_Shdr *section(const uint8_t *file, uint32_t type)
{
	const Elf64_Ehdr *h = (const void *)file;
	const Elf64_Shdr *s = (const void *)(file + h->e_shoff);

	for (int i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type == type)
			return &s[i];
	return NULL;
}

/* Finds the function's offset in a file that the compiler has just made. */
static uint64_t offset_of(const char *path, const char *function)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const uint8_t *file = fd < 0 || fstat(fd, &st) ? MAP_FAILED
						       : mmap(NULL, (size_t)st.st_size, PROT_READ,
							      MAP_PRIVATE, fd, 0);
	const Elf64_Ehdr *h = (const void *)file;
	const Elf64_Shdr *syms;
	const Elf64_Phdr *p;

	if (file == MAP_FAILED)
		fail(path);
	syms = section(file, SHT_SYMTAB);
	p = (const void *)(file + h->e_phoff);
	for (uint64_t i = 0; syms && i < syms->sh_size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *s = (const Elf64_Sym *)(file + syms->sh_offset) + i;
		const Elf64_Shdr *names = (const Elf64_Shdr *)(file + h->e_shoff) + syms->sh_link;

		if (strcmp((const char *)file + names->sh_offset + s->st_name, function))
			continue;
		for (int k = 0; k < h->e_phnum; k++)
			if (p[k].p_type == PT_LOAD && s->st_value - p[k].p_vaddr < p[k].p_filesz)
				return s->st_value - p[k].p_vaddr + p[k].p_offset;
	}
	fprintf(stderr, "%s has no function %s\n", path, function);
	exit(1);
}

static void attach_uprobe(const char *path, const char *function)
{
	struct perf_event_attr p = { .size = sizeof(p),
				     .config1 = (uintptr_t)path,
				     .config2 = offset_of(path, function) };
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int prog = load(BPF_PROG_TYPE_KPROBE), event;

	if (!type || fscanf(type, "%u", &p.type) != 1)
		fail("the kernel has no uprobes");
	event = (int)syscall(SYS_perf_event_open, &p, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	union bpf_attr a = { .link_create = { .prog_fd = (uint32_t)prog,
					      .target_fd = (uint32_t)event,
					      .attach_type = BPF_PERF_EVENT } };

	if (event < 0 || bpf(BPF_LINK_CREATE, &a) < 0)
		fail("attaching the uprobe");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "raw_tp")) {
		union bpf_attr a = { .raw_tracepoint = { .name = (uintptr_t)argv[2],
							 .prog_fd = (uint32_t)load(
								 BPF_PROG_TYPE_RAW_TRACEPOINT) } };

		if (bpf(BPF_RAW_TRACEPOINT_OPEN, &a) < 0)
			fail("attaching to the raw tracepoint");
	} else if (argc == 4 && !strcmp(argv[1], "uprobe")) {
		attach_uprobe(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: empty raw_tp TRACEPOINT | empty uprobe FILE FUNCTION\n");
		return 2;
	}
	puts("go");
	fflush(stdout);
	pause();
	return 0;
}
