/* Address spaces: a made-up one, this process's own, and cores that tests make. Cores of real
 * programs: sh/stack_core. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/procmem.h"
#include "core_make.h"
#include "elf_make.h"
#include "program/object/object.h"
#include "program/space/space.h"

enum { PAGE = CORE_PAGE };

/* --- layers of memory --- */

/* 'a' in every second four bytes over 'b' in the first 100 */
static uint32_t read_upper(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	uint32_t left = 4 - addr % 4;

	(void)s;
	if (addr / 4 % 2) {
		*ret_gap = left < *ret_gap ? left : *ret_gap;
		return 0;
	}
	memset(buf, 'a', n < left ? n : left);
	return addr < 200 ? (n < left ? n : left) : 0;
}

static uint32_t read_lower(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	uint32_t left = addr < 100 ? 100 - (uint32_t)addr : 0;

	(void)s;
	(void)ret_gap;
	memset(buf, 'b', n < left ? n : left);
	return n < left ? n : left;
}

static void test_layers(void **state)
{
	static const struct space_ops ops = { .memory = { { "the upper", read_upper },
							  { "the lower", read_lower } } };
	struct space s = { .ops = &ops, .name = "a made-up space" };
	char buf[32];
	struct err *e;

	assert_null(space_read(&s, 0, buf, 16));
	assert_memory_equal(buf, "aaaabbbbaaaabbbb", 16);
	assert_null(space_read(&s, 6, buf, 7));
	assert_memory_equal(buf, "bbaaaab", 7);
	assert_int_equal(space_read_some(&s, 96, buf, 32), 4);
	e = space_read(&s, 96, buf, 32);
	assert_non_null(e);
	assert_string_equal(
		e->text,
		"a made-up space: 28 bytes at 0x64 are not in the upper and not in the lower");
	err_free(e);
	e = space_threads(&s, NULL, NULL);
	assert_non_null(e);
	err_free(e);
	assert_int_equal(space_auxv(&s, AT_PHDR), 0);
}

/* A limit makes reads fail, until it is lifted. */
static void test_limit(void **state)
{
	static const struct space_ops ops = { .memory = { { "the lower", read_lower } } };
	struct space s = { .ops = &ops, .name = "a made-up space" };
	char buf[8];

	space_limit(&s, 2, UINT64_MAX);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_int_equal(space_read_some(&s, 8, buf, 8), 8);
	assert_false(space_is_spent(&s));
	assert_int_equal(space_read_some(&s, 0, buf, 8), 0);
	assert_true(space_is_spent(&s));
	space_limit(&s, 2, 1); /* a time that is over */
	assert_int_equal(space_read_some(&s, 0, buf, 8), 0);
	space_limit(&s, UINT64_MAX, UINT64_MAX);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_false(space_is_spent(&s));
}

/* A limit inside another one: both count, and the outer one stays. */
static void test_inner_limit(void **state)
{
	static const struct space_ops ops = { .memory = { { "the lower", read_lower } } };
	struct space s = { .ops = &ops, .name = "a made-up space" };
	struct space_limit outer;
	char buf[8];

	outer = space_limit_within(&s, 1, 1000000);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 0);
	assert_true(space_limit_end(&s, &outer));
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	space_limit(&s, 3, UINT64_MAX);
	outer = space_limit_within(&s, 2, 1000000);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_false(space_limit_end(&s, &outer));
	outer = space_limit_within(&s, 100, 1000000);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 8);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 0);
	assert_true(space_limit_end(&s, &outer));
	space_limit(&s, UINT64_MAX, 1); /* a time that is over */
	outer = space_limit_within(&s, 100, 1000000);
	assert_int_equal(space_read_some(&s, 0, buf, 8), 0);
	assert_true(space_limit_end(&s, &outer));
}

/* --- a machine without a free processor --- */

enum { HOGS = 8, BIG = 1 << 20, STARVED_NS = 1000000000, LIMIT_MS = 500 };

/* Runs on this processor alone, beside processes that take it. */
static void crowd(pid_t hogs[HOGS])
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	for (int i = 0; i < HOGS; i++) {
		hogs[i] = fork();
		if (hogs[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
}

/* Reads until the processor has been away for a while. Returns true when a limit of time ended
 * it. */
static bool read_starved(pid_t pid, uint8_t *from, uint8_t *to)
{
	const uint64_t begun = procmem_starved_ns();
	struct space_limit outer;
	struct space *s;
	bool spent;

	assert_null(space_live(pid, &s));
	outer = space_limit_within(s, UINT64_MAX, LIMIT_MS);
	while (!space_is_spent(s) && procmem_starved_ns() - begun < STARVED_NS)
		(void)space_read_some(s, (uintptr_t)from, to, BIG);
	spent = space_limit_end(s, &outer);
	assert_true(space_waited(s) < STARVED_NS / 2);
	space_free(s);
	return spent;
}

/* The time in which other processes have the processor is not taken from a limit of time. */
static void test_starved(void **state)
{
	uint8_t *from = calloc(1, BIG), *to = calloc(1, BIG);
	cpu_set_t before;
	pid_t hogs[HOGS], pid;
	bool spent;

	if (!procmem_starved_ns() && access("/proc/self/schedstat", R_OK)) {
		free(from);
		free(to);
		skip(); /* the kernel does not count it */
	}
	memset(from, 1, BIG);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	crowd(hogs);
	spent = read_starved(pid, from, to);
	for (int i = 0; i < HOGS; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	free(from);
	free(to);
	assert_false(spent);
}

/* --- a live one: our own --- */

static int counted_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const space_module_vec *v = arg;

	(void)size;
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].bias == info->dlpi_addr)
			return 0;
	return 1;
}

static void test_live(void **state)
{
	static const char text[] = "read by a system call";
	const struct mappings *maps;
	const struct mapping *m;
	space_module_vec modules = { 0 };
	struct space *s;
	struct object *o;
	char buf[sizeof(text)];
	char *copy;

	assert_null(space_live(getpid(), &s));
	assert_int_equal(space_auxv(s, AT_PHDR), getauxval(AT_PHDR));
	assert_null(space_mappings(s, 0, &maps));
	m = mappings_find(maps, (uintptr_t)test_live);
	assert_non_null(m);
	assert_true(m->exec && m->read && !m->write && m->path[0] == '/');
	assert_null(mappings_find(maps, 0));
	assert_null(space_read(s, (uintptr_t)text, buf, sizeof(text)));
	assert_string_equal(buf, text);
	copy = space_string(s, (uintptr_t)text, sizeof(text));
	assert_string_equal(copy, text);
	free(copy);
	assert_null(space_string(s, (uintptr_t)text, sizeof(text) - 1));
	assert_int_equal(space_read_some(s, 16, buf, 8), 0);
	assert_null(space_modules(s, &modules));
	assert_int_equal(dl_iterate_phdr(counted_module, &modules), 0);
	space_modules_free(&modules);
	assert_null(space_object(s, getauxval(AT_SYSINFO_EHDR), 0, &o));
	assert_true(object_is_x86_64(o));
	object_free(o);
	space_free(s);
}

/* --- cores --- */

static char dir[] = "/tmp/descry-space-XXXXXX";

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static char *write_file(const char *name, const void *p, size_t n)
{
	char *path = path_of(name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return path;
}

static struct space *open_core(const void *p, size_t n)
{
	cleanup_free char *path = write_file("core", p, n);
	struct space *s;
	struct err *e = space_core(path, &s);

	if (e)
		fail_msg("%s", e->text);
	return s;
}

static void expect_error(const void *p, size_t n, const char *text)
{
	cleanup_free char *path = write_file("core", p, n);
	struct space *s;
	struct err *e = space_core(path, &s);

	assert_non_null(e);
	assert_non_null(strstr(e->text, text));
	assert_non_null(strstr(e->text, path));
	err_free(e);
}

static bool has_remark(struct space *s, const char *text)
{
	const char *r;

	for (uint32_t i = 0; (r = space_core_remark(s, i)); i++)
		if (strstr(r, text))
			return true;
	return false;
}

enum { PID = 77, STACK = 0x7ffc0000, ANON = 0x10000, FILES = 0x400000 };

/* A process of two threads with a library of `library`'s bytes, of which only the first page is in
 * the core. */
static uint8_t *make_core(const char *path, const uint8_t *library, size_t *ret_n)
{
	static uint8_t stack[2 * PAGE], anon[PAGE];
	const struct user_regs_struct main = { .rip = FILES + 0x1000, .rsp = STACK + 8 },
				      other = { .rip = FILES + 0x1010, .rsp = ANON + 16 };
	const uint64_t auxv[] = {
		AT_ENTRY, FILES + 0x1000, AT_SYSINFO_EHDR, 0x7fff0000, AT_NULL, 0
	};
	const struct core_mapped files[] = { { FILES, FILES + PAGE, 0, path },
					     { FILES + PAGE, FILES + 2 * PAGE, PAGE, path } };
	struct core_make c = { 0 };

	memset(stack, 's', sizeof(stack));
	memset(anon, 'a', sizeof(anon));
	core_thread(&c, PID + 1, 11, &other);
	core_thread(&c, PID, 0, &main);
	core_process(&c, PID);
	core_note(&c, NT_AUXV, auxv, sizeof(auxv));
	core_files(&c, files, ARRAY_SIZE(files));
	/* not in the order of their addresses */
	core_segment(&c, (struct core_segment){ STACK, 2 * PAGE, PF_R | PF_W, stack, 2 * PAGE });
	core_segment(&c, (struct core_segment){ FILES, PAGE, PF_R, library, PAGE });
	core_segment(&c, (struct core_segment){ FILES + PAGE, PAGE, PF_R | PF_X, NULL, 0 });
	core_segment(&c, (struct core_segment){ ANON, 3 * PAGE, PF_R | PF_W, anon, PAGE });
	return core_done(&c, ret_n);
}

/* An ELF file of two pages; `mark` is in its build id. */
static uint8_t *make_library(uint8_t mark)
{
	uint8_t *v = xcalloc(2, PAGE);
	Elf64_Ehdr h = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = sizeof(h),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1 };
	Elf64_Phdr ph = { .p_type = PT_NOTE, .p_offset = 0x200, .p_filesz = 20 };
	const uint32_t note[] = { 4, 4, NT_GNU_BUILD_ID, 0x554e47, mark };

	memcpy(h.e_ident, ELFMAG "\2\1\1", 7);
	memcpy(v, &h, sizeof(h));
	memcpy(v + sizeof(h), &ph, sizeof(ph));
	memcpy(v + 0x200, note, sizeof(note));
	memset(v + PAGE, 'l', PAGE);
	return v;
}

static void test_core(void **state)
{
	cleanup_free uint8_t *library = make_library(1);
	cleanup_free char *path = write_file("lib.so", library, 2 * PAGE), *where = NULL;
	size_t n;
	cleanup_free uint8_t *core = make_core(path, library, &n);
	struct space *s = open_core(core, n);
	const struct space_thread *t;
	const struct mappings *maps;
	uint8_t buf[2 * PAGE];
	struct err *e;
	uint32_t count;

	assert_int_equal(s->pid, PID);
	assert_null(space_threads(s, &t, &count));
	assert_int_equal(count, 2);
	assert_int_equal(t[0].tid, PID + 1);
	assert_int_equal(t[0].signal, 11);
	assert_int_equal(t[0].regs.rip, FILES + 0x1010);
	assert_int_equal(t[1].regs.rsp, STACK + 8);
	assert_int_equal(space_auxv(s, AT_ENTRY), FILES + 0x1000);

	assert_null(space_mappings(s, 0, &maps));
	assert_int_equal(maps->n, 4);
	assert_int_equal(maps->v[0].start, ANON);
	assert_string_equal(maps->v[1].path, path);
	assert_true(!maps->v[1].exec && maps->v[2].exec && !maps->v[2].write);
	assert_int_equal(maps->v[2].offset, PAGE);
	assert_string_equal(maps->v[3].path, "[stack]");

	/* of the core, of the file, and across both */
	assert_null(space_read(s, STACK + 100, buf, 8));
	assert_memory_equal(buf, "ssssssss", 8);
	assert_null(space_read(s, FILES, buf, 2 * PAGE));
	assert_memory_equal(buf, library, 2 * PAGE);
	/* pages that were not written are nowhere */
	e = space_read(s, ANON, buf, 2 * PAGE);
	assert_non_null(e);
	assert_non_null(
		strstr(e->text, "4096 bytes at 0x11000 are not in the core and not in the files"));
	err_free(e);
	assert_int_equal(space_read_some(s, STACK + 2 * PAGE - 4, buf, 8), 4);
	assert_int_equal(space_read_some(s, UINT64_MAX - 3, buf, 8), 0);

	where = space_open_path(s, &maps->v[2]);
	assert_string_equal(where, path);
	assert_null(space_core_remark(s, 0));
	space_free(s);
}

static void test_other_file(void **state)
{
	cleanup_free uint8_t *library = make_library(1), *another = make_library(2);
	cleanup_free char *path = write_file("lib.so", another, 2 * PAGE);
	size_t n;
	cleanup_free uint8_t *core = make_core(path, library, &n);
	struct space *s = open_core(core, n);
	const struct mappings *maps;
	char buf[8];

	assert_int_equal(space_read_some(s, FILES + PAGE, buf, 8), 0);
	assert_int_equal(space_read_some(s, FILES, buf, 8), 8);
	assert_true(has_remark(s, "lib.so is missing: another file is there now"));
	assert_null(space_mappings(s, 0, &maps));
	assert_null(space_open_path(s, &maps->v[2]));
	space_free(s);

	unlink(path);
	s = open_core(core, n);
	assert_int_equal(space_read_some(s, FILES + PAGE, buf, 8), 0);
	assert_true(has_remark(s, "lib.so is missing: it cannot be opened"));
	space_free(s);
}

/* Opens a core of a library at path, of which the core has first_page. Reads the page behind it,
 * which is in the file alone. owner: of the core. Returns false when it is missing with this
 * remark. */
static bool has_file_of(const char *path, const uint8_t *first_page, uid_t owner,
			const char *remark_text)
{
	size_t n;
	cleanup_free uint8_t *core = make_core(path, first_page, &n);
	cleanup_free char *core_path = write_file("core", core, n);
	struct space *s;
	char buf[8];
	bool found;

	assert_int_equal(chown(core_path, owner, (gid_t)-1), 0);
	assert_null(space_core(core_path, &s));
	found = space_read_some(s, FILES + PAGE, buf, 8) == 8;
	assert_true(found || has_remark(s, remark_text));
	space_free(s);
	assert_int_equal(unlink(core_path), 0);
	return found;
}

/* An ELF file without a build id is known by its first page, whoever may read it. */
static void test_file_by_first_page(void **state)
{
	cleanup_free uint8_t *library = make_library(1);

	library[0x200 + 8]++; /* the note has another type */
	cleanup_free char *path = write_file("lib.so", library, 2 * PAGE);

	assert_int_equal(chmod(path, 0600), 0);
	assert_true(has_file_of(path, library, geteuid(), ""));
	library[PAGE - 1] = 1;
	assert_false(has_file_of(path, library, geteuid(), "another file is there now"));
	assert_int_equal(unlink(path), 0);
}

/* A core may name any path. Only regular files of a disk are opened. */
static void test_file_of_other_kind(void **state)
{
	static uint8_t page[PAGE];
	cleanup_free char *fifo = path_of("fifo"), *link = path_of("link");
	const char *const paths[] = { fifo,        link, "/proc/version", "/sys/kernel/notes",
				      "/dev/zero", "/",  "relative" };

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink("/proc/version", link), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_false(has_file_of(paths[i], page, geteuid(), "it cannot be opened"));
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(unlink(link), 0);
}

/* A file that the core does not prove to have been mapped is read when the core's owner may read
 * it: or a forged core shows what its maker must not see. */
static void test_file_of_other_user(void **state)
{
	enum { USER = 1, OTHER = 2 };
	static const char refused[] = "may not read it";
	static uint8_t data[2 * PAGE];
	cleanup_free char *path = write_file("data", data, sizeof(data));
	struct stat st;

	if (geteuid()) {
		assert_int_equal(unlink(path), 0);
		skip(); /* only root may give files away */
	}
	assert_int_equal(chmod(path, 0600), 0);
	assert_false(has_file_of(path, data, 0, refused)); /* root may have got the core */
	assert_false(has_file_of(path, data, USER, refused));
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(has_file_of(path, data, 0, ""));
	/* in a folder that only its owner may search */
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_false(has_file_of(path, data, USER, refused));
	assert_int_equal(chmod(dir, 0711), 0);
	assert_true(has_file_of(path, data, USER, ""));
	assert_int_equal(chmod(dir, st.st_mode & 07777), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chown(path, USER, (gid_t)-1), 0);
	assert_true(has_file_of(path, data, USER, ""));
	assert_false(has_file_of(path, data, OTHER, refused));
	assert_int_equal(unlink(path), 0);
}

/* A file that is no ELF file is known by its age alone. */
static void test_file_by_age(void **state)
{
	static uint8_t data[2 * PAGE];
	cleanup_free char *path = write_file("data", data, sizeof(data)), *at = path_of("core");
	size_t n;
	cleanup_free uint8_t *core = make_core(path, data, &n);
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct space *s = open_core(core, n);
	char buf[8];

	assert_int_equal(space_read_some(s, FILES + PAGE, buf, 8), 8);
	space_free(s);
	assert_int_equal(utimensat(AT_FDCWD, at, old, 0), 0);
	assert_null(space_core(at, &s));
	assert_int_equal(space_read_some(s, FILES + PAGE, buf, 8), 0);
	space_free(s);
}

static void test_cut_short(void **state)
{
	cleanup_free uint8_t *library = make_library(1);
	cleanup_free char *path = write_file("lib.so", library, 2 * PAGE);
	size_t n;
	cleanup_free uint8_t *core = make_core(path, library, &n);
	const struct space_thread *t;
	struct space *s;
	uint32_t count;
	char buf[8];

	/* cut within the stack, the first segment: its beginning is there, and so are the
	 * registers */
	s = open_core(core, n - 3 * PAGE + 100 - PAGE / 2);
	assert_true(has_remark(s, "it is cut short: "));
	assert_null(space_threads(s, &t, &count));
	assert_int_equal(count, 2);
	assert_int_equal(space_read_some(s, STACK, buf, 8), 8);
	assert_int_equal(space_read_some(s, STACK + 2 * PAGE - 8, buf, 8), 0);
	assert_int_equal(space_read_some(s, ANON, buf, 8), 0);
	space_free(s);
	/* Every length gives an error, or a space that answers all queries. */
	for (size_t i = 0; i < n; i += i < 2 * PAGE ? 7 : 509) {
		cleanup_free char *core_path = write_file("core", core, i);
		struct err *e = space_core(core_path, &s);

		if (e) {
			assert_non_null(strstr(e->text, core_path));
			err_free(e);
			continue;
		}
		assert_null(space_threads(s, &t, &count));
		(void)space_read_some(s, STACK, buf, 8);
		space_free(s);
	}
}

/* Headers that all speak of the same notes make no more threads than the file has room for. */
static void test_notes_again(void **state)
{
	enum { HEADERS = 500, THREADS = 100 };
	const struct user_regs_struct regs = { .rip = FILES };
	struct core_make c = { 0 };
	const struct space_thread *t;
	Elf64_Phdr ph;
	Elf64_Ehdr h;
	struct space *s;
	uint8_t *core, *file;
	uint32_t count;
	size_t n;

	for (int i = 0; i < THREADS; i++)
		core_thread(&c, PID + i, 0, &regs);
	core = core_done(&c, &n);
	memcpy(&h, core, sizeof(h));
	memcpy(&ph, core + h.e_phoff, sizeof(ph));
	file = xcalloc(1, n + HEADERS * sizeof(ph));
	memcpy(file, core, n);
	h.e_phoff = n;
	h.e_phnum = HEADERS;
	memcpy(file, &h, sizeof(h));
	for (int i = 0; i < HEADERS; i++)
		memcpy(file + n + (size_t)i * sizeof(ph), &ph, sizeof(ph));
	s = open_core(file, n + HEADERS * sizeof(ph));
	assert_null(space_threads(s, &t, &count));
	assert_true(count >= THREADS && count <= (n + HEADERS * sizeof(ph)) / 356);
	assert_true(has_remark(s, "some of its notes are left out"));
	space_free(s);
	free(core);
	free(file);
}

static void test_no_core(void **state)
{
	cleanup_free uint8_t *library = make_library(1), *core = NULL;
	size_t n;

	expect_error("", 0, "not a core file");
	expect_error("#!/bin/sh\n", 10, "not a core file");
	expect_error(library, 2 * PAGE, "an ELF file, but not a core file");
	core = make_core("/x", library, &n);
	core[EI_CLASS] = ELFCLASS32;
	expect_error(core, n, "not of an x86-64 process");
	core[EI_CLASS] = ELFCLASS64;
	expect_error(core, 100, "cut short within its headers");
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "core", "lib.so", "data" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *path = path_of(names[i]);

		unlink(path);
	}
	return rmdir(dir);
}

/* --- a list that is too long --- */

enum { MAPPED = 9500, DEPTH = 15, NAME = 250, LIST_AT = 0x20000000 };

/* Maps a file MAPPED times whose path has DEPTH * NAME letters, and memory files at both ends.
 * Leaves no file behind. */
static void maps_much(int ready)
{
	char name[NAME + 1] = "";
	int fd, first = memfd_create("first", 0), last = memfd_create("last", 0);
	const size_t far = LIST_AT + (MAPPED + 1) * 0x2000ul;

	memset(name, 'd', NAME);
	if (chdir(dir))
		_exit(1);
	for (int i = 0; i < DEPTH; i++)
		if (mkdir(name, 0700) || chdir(name))
			_exit(2);
	fd = open("f", O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) || ftruncate(first, 4096) || ftruncate(last, 4096))
		_exit(3);
	for (size_t i = 0; i < MAPPED; i++)
		if (mmap((void *)(LIST_AT + (i + 1) * 0x2000), 4096, PROT_READ,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == MAP_FAILED)
			_exit(4);
	if (mmap((void *)LIST_AT, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, first, 0) ==
		    MAP_FAILED ||
	    mmap((void *)far, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, last, 0) ==
		    MAP_FAILED)
		_exit(5);
	unlink("f");
	for (int i = 0; i < DEPTH; i++)
		if (chdir("..") || rmdir(name))
			_exit(6);
	if (write(ready, "", 1) != 1)
		_exit(7);
	for (;;)
		pause();
}

static const char *path_at(const struct mappings *m, uint64_t addr)
{
	const struct mapping *at = mappings_find(m, addr);

	assert_non_null(at);
	return at->path;
}

/* The list is refused, or read in little memory, with what undoing needs of it. */
static void test_long_list(void **state)
{
	struct mappings m = { 0 };
	struct err *e;
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		maps_much(fds[1]);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	e = mappings_read(pid, &m);
	assert_non_null(e);
	assert_int_equal(e->code, E2BIG);
	assert_non_null(strstr(e->text, "too many mappings to be traced"));
	err_free(e);
	assert_int_equal(m.n, 0);
	assert_null(mappings_read_whole(pid, &m));
	assert_true(m.n > MAPPED);
	assert_true(mapping_is_memfd(mappings_find(&m, LIST_AT), "first"));
	assert_true(mapping_is_memfd(mappings_find(&m, LIST_AT + (MAPPED + 1) * 0x2000ul), "last"));
	assert_true(strlen(path_at(&m, LIST_AT + 0x2000)) > DEPTH * NAME);
	assert_ptr_equal(path_at(&m, LIST_AT + 0x2000), path_at(&m, LIST_AT + MAPPED * 0x2000));
	mappings_free(&m);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* of an ordinary process both are the same */
	struct mappings short_list = { 0 };

	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_null(mappings_read(pid, &short_list));
	assert_null(mappings_read_whole(pid, &m));
	assert_int_equal(m.n, short_list.n);
	for (uint32_t i = 0; i < m.n; i++) {
		assert_int_equal(m.v[i].start, short_list.v[i].start);
		assert_string_equal(m.v[i].path, short_list.v[i].path);
	}
	mappings_free(&m);
	mappings_free(&short_list);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_inner_limit),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_core),
		cmocka_unit_test(test_other_file),
		cmocka_unit_test(test_file_by_age),
		cmocka_unit_test(test_file_by_first_page),
		cmocka_unit_test(test_file_of_other_kind),
		cmocka_unit_test(test_file_of_other_user),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_notes_again),
		cmocka_unit_test(test_no_core),
		cmocka_unit_test(test_long_list),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
