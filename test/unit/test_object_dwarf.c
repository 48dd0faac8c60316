/* libdw finds the end of all it reads: sections in a mapped file are left as they are, others get
 * bytes behind them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/object/dwarf.h"
#include "program/object/object.h"
#include "unit.h"

static Dwarf *open_file(Dwfl *d, const char *path, struct dwarf_copies *c)
{
	Dwarf_Addr bias;
	Dwfl_Module *m;

	dwfl_report_begin(d);
	m = dwarf_report(d, "", path);
	dwfl_report_end(d, NULL, NULL);
	assert_non_null(m);
	return dwarf_of_module(m, &bias, c);
}

static int first_module(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			void *arg)
{
	*(Dwfl_Module **)arg = m;
	return DWARF_CB_ABORT;
}

static Dwfl_Module *dwarf_module(Dwfl *d)
{
	Dwfl_Module *m = NULL;

	dwfl_getmodules(d, first_module, &m, 0);
	return m;
}

static const Elf_Data *section(Dwarf *d, const char *name)
{
	Elf *elf = dwarf_getelf(d);
	Elf_Scn *s = NULL;
	size_t strings;
	GElf_Shdr h;

	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &h) && !strcmp(elf_strptr(elf, strings, h.sh_name), name))
			return elf_getdata(s, NULL);
	fail_msg("no section %s", name);
	return NULL;
}

/* This program, with its sections in the mapped file. */
static void test_mapped(void **state)
{
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&dwarf_callbacks);
	Dwarf *dw = open_file(d, "/proc/self/exe", &c);

	assert_non_null(dw);
	assert_int_equal(c.v.n, 0);
	assert_non_null(section(dw, ".debug_info"));
	dwfl_end(d);
	dwarf_copies_free(&c);
}

/* libelf takes its .debug_line_str for a hash table, so it is a copy, whose last string has no
 * NUL. */
static void test_no_nul(void **state)
{
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&dwarf_callbacks);
	Dwarf *dw = open_file(d, "test/fuzz/corpus/dwarf/line-strings", &c);
	const Elf_Data *strings;
	Dwarf_Addr bias;
	const char *s;

	assert_non_null(dw);
	assert_int_equal(c.v.n, 1);
	assert_ptr_equal(dwarf_of_module(dwarf_module(d), &bias, &c), dw);
	assert_int_equal(c.v.n, 1); /* units point into the first */
	strings = section(dw, ".debug_line_str");
	assert_ptr_equal(strings->d_buf, c.v.v[0]);
	s = strings->d_buf;
	assert_int_equal(strings->d_size, 36);
	assert_memory_equal(s, "/home/", 6);
	assert_string_equal(s + 28, "<st.gnu.");
	for (int i = 36; i < 64; i++)
		assert_int_equal(s[i], 0);
	dwfl_end(d);
	dwarf_copies_free(&c);
}

static char folder[] = "/tmp/descry-dwarf-XXXXXX";

static void run(const char *commands)
{
	char self[4096] = "";
	cleanup_free char *command = NULL;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	command = xasprintf("cd %s && SELF='%s' && %s", folder, self, commands);
	if (system(command))
		fail_msg("%s", command);
}

static bool has_dwarf(const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", folder, name);
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&dwarf_callbacks);
	bool found = open_file(d, path, &c);

	dwfl_end(d);
	dwarf_copies_free(&c);
	return found;
}

/* A FIFO at the place of a debug file does not block. A real debug file is found. */
static void test_fifo(void **state)
{
	Dwfl *d = dwfl_begin(&dwarf_callbacks);

	alarm(60);
	run("objcopy --strip-debug \"$SELF\" main && mkdir .debug && mkfifo main.debug .debug/main.debug fifo");
	assert_false(has_dwarf("main"));
	run("rm .debug/main.debug && objcopy --only-keep-debug \"$SELF\" .debug/main.debug");
	assert_true(has_dwarf("main"));
	run("mkfifo linked.dbg.fifo && cp .debug/main.debug linked.dbg && "
	    "objcopy --add-gnu-debuglink=linked.dbg main linked");
	assert_true(has_dwarf("linked"));
	run("mv linked.dbg.fifo linked.dbg");
	assert_false(has_dwarf("linked"));
	/* by checksum, without a build-id */
	run("rm -r linked.dbg && objcopy --remove-section=.note.gnu.build-id \"$SELF\" whole && "
	    "objcopy --only-keep-debug whole linked.dbg && "
	    "objcopy --strip-debug --add-gnu-debuglink=linked.dbg whole linked");
	assert_true(has_dwarf("linked"));
	run("printf x >>linked.dbg");
	assert_false(has_dwarf("linked"));
	dwfl_report_begin(d);
	cleanup_free char *fifo = xasprintf("%s/fifo", folder);

	assert_null(dwarf_report(d, "", fifo));
	dwfl_end(d);
	alarm(0);
}

/* Returns true when the file has the name of this program's static function. */
static bool has_names(const char *root, const char *name)
{
	cleanup_free char *path = xasprintf("%s%s/%s", root, folder, name);
	struct object *o;
	bool found;

	assert_null(object_open(path, &o));
	found = object_find_name(o, "test_neighbours");
	object_free(o);
	return found;
}

/* Names of a file beside an object become breakpoints in the object. So it must belong to the
 * object's owner or to root, and the folder must be this root's. */
static void test_neighbours(void **state)
{
	cleanup_free char *root = xasprintf("/proc/%d/root", (int)getpid());

	run("rm -rf .debug linked.dbg && objcopy --only-keep-debug \"$SELF\" linked.dbg && "
	    "chmod 644 linked.dbg && objcopy --strip-all --add-gnu-debuglink=linked.dbg \"$SELF\" linked");
	assert_true(has_names("", "linked"));
	assert_true(has_dwarf("linked"));
	/* whoever mounted the object into that root may have put the debug file beside it */
	assert_false(has_names(root, "linked"));
	run("chmod 666 linked.dbg");
	assert_false(has_names("", "linked"));
	assert_false(has_dwarf("linked"));
	if (geteuid())
		return;
	run("chmod 644 linked.dbg && chown 65534 linked.dbg");
	assert_false(has_names("", "linked"));
	assert_false(has_dwarf("linked"));
	run("chown 65534 linked");
	assert_true(has_names("", "linked"));
	run("chown 0 linked.dbg");
	assert_true(has_names("", "linked"));
	dwarf_trust_all(true); /* also what belongs to another user */
	assert_true(has_dwarf("linked"));
	dwarf_trust_all(false);
}

/* Opens the file dwz, whose .gnu_debugaltlink names the file alt. Returns true when libdw has alt,
 * also when it asks later. */
static bool has_alt(const char *change_meanwhile)
{
	cleanup_free char *path = xasprintf("%s/dwz", folder);
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&dwarf_callbacks);
	Dwarf *dw = open_file(d, path, &c);
	bool found;

	assert_non_null(dw);
	run(change_meanwhile);
	found = dwarf_getalt(dw);
	dwfl_end(d);
	dwarf_copies_free(&c);
	return found;
}

/* Makes the contents of .gnu_debugaltlink: a path and this program's build id. */
static void make_link(void)
{
	cleanup_free char *path = xasprintf("%s/link", folder);
	FILE *f = fopen(path, "we");
	struct object *self;
	const uint8_t *id;
	uint32_t n;

	assert_non_null(f);
	assert_null(object_open("/proc/self/exe", &self));
	id = object_build_id(self, &n);
	assert_non_null(id);
	fprintf(f, "../%s/alt", strrchr(folder, '/') + 1);
	fputc('\0', f);
	assert_int_equal(fwrite(id, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	object_free(self);
}

/* The file named in .gnu_debugaltlink, a part of debugging information that files share. */
static void test_alt(void **state)
{
	alarm(60);
	make_link();
	run("objcopy --add-section=.gnu_debugaltlink=link \"$SELF\" dwz");
	assert_false(has_alt("true"));
	/* what libdw would open later is no longer what was tested */
	assert_false(has_alt("mkfifo alt"));
	assert_false(has_alt("true"));
	assert_true(has_dwarf("dwz"));
	run("rm alt && ln -s /dev/zero alt");
	assert_false(has_alt("true"));
	run("rm alt && cp \"$SELF\" alt");
	assert_true(has_alt("rm alt && mkfifo alt"));
	/* another file */
	run("rm alt && objcopy --remove-section=.note.gnu.build-id \"$SELF\" alt");
	assert_false(has_alt("true"));
	alarm(0);
}

/* Sections with a claimed size of 3 GB. */
static void test_inflated(void **state)
{
	const uint64_t size = 3ULL << 30;
	cleanup_free char *path = xasprintf("%s/zipped", folder);
	Elf_Scn *s = NULL;
	uint64_t at = 0;
	size_t strings;
	GElf_Shdr h;
	Elf *elf;
	int fd;

	run("objcopy --compress-debug-sections \"$SELF\" zipped");
	assert_true(has_dwarf("zipped"));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &h) && (h.sh_flags & SHF_COMPRESSED) &&
		    !strcmp(elf_strptr(elf, strings, h.sh_name), ".debug_str"))
			at = h.sh_offset;
	elf_end(elf);
	if (!at)
		skip();
	assert_int_equal(pwrite(fd, &size, 8, (off_t)at + 8), 8);
	close(fd);
	assert_false(has_dwarf("zipped"));
}

/* A section of 64 MB of zeros, which needs 64 KB in the file. */
static void test_inflated_much(void **state)
{
	run("head -c 64M /dev/zero >zeros && objcopy --add-section=.debug_macro=zeros "
	    "--set-section-flags=.debug_macro=debug,readonly,contents \"$SELF\" large && "
	    "objcopy --compress-debug-sections large bomb && rm zeros");
	assert_true(has_dwarf("large"));
	assert_false(has_dwarf("bomb"));
}

/* Files that are open together share one budget. */
static void test_inflated_together(void **state)
{
	cleanup_free char *path = xasprintf("%s/zipped", folder);
	struct dwarf_copies a = { 0 }, b = { 0 };
	Dwfl *da = dwfl_begin(&dwarf_callbacks), *db = dwfl_begin(&dwarf_callbacks);

	run("objcopy --compress-debug-sections \"$SELF\" zipped");
	assert_non_null(open_file(da, path, &a));
	assert_int_not_equal(a.bytes, 0);
	dwarf_limit(a.bytes + a.bytes / 2);
	assert_null(open_file(db, path, &b));
	assert_int_equal(b.bytes, 0);
	dwfl_end(da);
	dwarf_copies_free(&a);
	dwfl_end(db);
	dwarf_copies_free(&b);
	dwarf_limit(0);
	assert_true(has_dwarf("zipped"));
}

/* A section of 3 GB at the end of the file, where it would be copied. */
static void test_sparse(void **state)
{
	const uint64_t size = 3ULL << 30;
	cleanup_free char *path = xasprintf("%s/sparse", folder);
	uint64_t n, at = 0, place[2];
	GElf_Ehdr h;
	int fd;

	run("cp \"$SELF\" sparse");
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	n = (uint64_t)lseek(fd, 0, SEEK_END);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *s = NULL;
	GElf_Shdr section;
	size_t strings;

	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &section) &&
		    !strcmp(elf_strptr(elf, strings, section.sh_name), ".debug_str"))
			at = h.e_shoff + elf_ndxscn(s) * sizeof(section);
	elf_end(elf);
	assert_int_not_equal(at, 0);
	place[0] = n;
	place[1] = size;
	assert_int_equal(pwrite(fd, place, 16, (off_t)at + (off_t)offsetof(Elf64_Shdr, sh_offset)),
			 16);
	if (ftruncate(fd, (off_t)(n + size)))
		print_message("no sparse files here\n");
	else
		assert_false(has_dwarf("sparse"));
	close(fd);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	run("rm -rf \"$PWD\"");
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped),        cmocka_unit_test(test_no_nul),
		cmocka_unit_test(test_fifo),          cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_inflated),      cmocka_unit_test(test_alt),
		cmocka_unit_test(test_inflated_much), cmocka_unit_test(test_inflated_together),
		cmocka_unit_test(test_sparse),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
