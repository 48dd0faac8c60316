/* The plt provider against files that are mostly holes: their tables do not stay in memory. */
#define _GNU_SOURCE
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "probe/plt.h"
#include "probe/probe.h"

/* Bytes of all blocks that are not freed. Unit tests are built with ASan. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

enum { FILES = 3, NAMES = 24 << 20, TOO_LARGE = 100 << 20 };

/* Makes a file that imports puts() through its GOT, whose .dynstr has `names` bytes. */
static void make(const char *path, uint64_t names)
{
	static const char section_names[] = "\0.dynstr\0.dynsym\0.rela.dyn\0.shstrtab";
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr text;
		Elf64_Shdr sections[5];
		Elf64_Sym symbols[2];
		Elf64_Rela rela;
		char section_names[sizeof(section_names)];
	} f = { 0 };
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	memcpy(f.h.e_ident, ELFMAG, SELFMAG);
	f.h.e_ident[EI_CLASS] = ELFCLASS64;
	f.h.e_ident[EI_DATA] = ELFDATA2LSB;
	f.h.e_ident[EI_VERSION] = EV_CURRENT;
	f.h.e_type = ET_DYN;
	f.h.e_machine = EM_X86_64;
	f.h.e_phoff = sizeof(f.h);
	f.h.e_phentsize = sizeof(Elf64_Phdr);
	f.h.e_phnum = 1;
	f.h.e_shoff = offsetof(__typeof__(f), sections);
	f.h.e_shentsize = sizeof(Elf64_Shdr);
	f.h.e_shnum = ARRAY_SIZE(f.sections);
	f.h.e_shstrndx = 4;
	f.text = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	f.sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = 4096, .sh_size = names
	};
	f.sections[2] = (Elf64_Shdr){ .sh_name = 9,
				      .sh_type = SHT_DYNSYM,
				      .sh_link = 1,
				      .sh_offset = offsetof(__typeof__(f), symbols),
				      .sh_size = sizeof(f.symbols) };
	f.sections[3] = (Elf64_Shdr){ .sh_name = 17,
				      .sh_type = SHT_RELA,
				      .sh_link = 2,
				      .sh_offset = offsetof(__typeof__(f), rela),
				      .sh_size = sizeof(f.rela) };
	f.sections[4] = (Elf64_Shdr){ .sh_name = 27,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(__typeof__(f), section_names),
				      .sh_size = sizeof(section_names) };
	f.symbols[1].st_name = 1;
	f.rela = (Elf64_Rela){ .r_offset = 0x900, .r_info = ELF64_R_INFO(1, R_X86_64_GLOB_DAT) };
	memcpy(f.section_names, section_names, sizeof(section_names));
	assert_int_equal(fwrite(&f, sizeof(f), 1, out), 1);
	assert_int_equal(fseek(out, 4096, SEEK_SET), 0);
	assert_int_equal(fwrite("\0puts", 6, 1, out), 1);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(truncate(path, (off_t)(4096 + names)), 0);
}

static void found(void *arg, struct probe *p)
{
	assert_string_equal(p->func, "puts");
	(*(uint32_t *)arg)++;
}

/* Counts the entries of puts() in imports of a process that maps `n` such files. Sets *ret_kept to
 * the bytes that stay. */
static uint32_t count(uint32_t n, uint64_t names, size_t *ret_kept)
{
	char dir[] = "/tmp/descry-plt-XXXXXX", prov[32], path[64];
	const struct probe_desc pd = { prov, "holes*", "puts", "entry" };
	struct symbols *symbols = symbols_new();
	uint32_t seen = 0;
	struct probe_set ps;
	size_t before;
	void *at[FILES];
	pid_t pid;

	assert_non_null(mkdtemp(dir));
	for (uint32_t i = 0; i < n; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/holes%u.so", dir, i);
		make(path, names);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		at[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_true(at[i] != MAP_FAILED);
		close(fd);
	}
	pid = fork(); /* has the same mappings */
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	snprintf(prov, sizeof(prov), "plt%d", (int)pid);
	probe_set_init(&ps, NULL, symbols);
	vec_push(&ps.targets, (struct probe_target){ .pid = pid });
	before = __sanitizer_get_current_allocated_bytes();
	assert_null(provider_plt.match(&provider_plt, &ps, &pd, found, &seen));
	*ret_kept = __sanitizer_get_current_allocated_bytes() - before;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	probe_set_fini(&ps);
	symbols_free(symbols);
	for (uint32_t i = 0; i < n; i++) {
		munmap(at[i], 4096);
		snprintf(path, sizeof(path), "%s/holes%u.so", dir, i);
		unlink(path);
	}
	rmdir(dir);
	return seen;
}

static void test_holes(void **state)
{
	size_t kept;

	if (!__sanitizer_get_current_allocated_bytes)
		skip();
	assert_int_equal(count(FILES, NAMES, &kept), FILES);
	assert_true(kept < NAMES / 4);
	/* a table that no program has is not read at all */
	assert_int_equal(count(1, TOO_LARGE, &kept), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_holes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
