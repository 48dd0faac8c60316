/* Call frame information written by hand -> rows; images of real files: check, cache, and the same
 * answers from the chunks the kernel searches. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "program/unwind/cfi.h"
#include "program/unwind/room.h"

enum { BASE = 0x10000, TEXT = 0x401000 };

struct writer {
	uint8_t b[512];
	uint32_t n;
};

static void put(struct writer *w, const void *p, uint32_t n)
{
	assert_true(w->n + n <= sizeof(w->b));
	memcpy(w->b + w->n, p, n);
	w->n += n;
}

static void put32(struct writer *w, uint32_t v)
{
	put(w, &v, 4);
}

/* A CIE as compilers write it: "zR", code 1, data -8, RA 16, pcrel sdata4, CFA rsp+8, RA at
 * CFA-8. */
static void put_cie(struct writer *w)
{
	static const uint8_t body[] = { 1,    'z',  'R', 0, 1,    0x78, 16, 1,
					0x1b, 0x0c, 7,   8, 0x90, 1,    0,  0 };

	put32(w, 4 + sizeof(body));
	put32(w, 0);
	put(w, body, sizeof(body));
}

static void put_fde(struct writer *w, uint32_t start, uint32_t size, const void *program,
		    uint32_t n)
{
	uint32_t at = w->n;
	uint8_t none = 0;

	put32(w, 4 + 8 + 1 + n);
	put32(w, at + 4); /* distance to the CIE at 0 */
	put32(w, start - (BASE + w->n));
	put32(w, size);
	put(w, &none, 1);
	put(w, program, n);
}

static void expect(const struct cfi *c, uint32_t func, uint32_t i, uint64_t addr, uint32_t rule)
{
	const struct cfi_row *r = &c->rows.v[c->funcs.v[func].first + i];
	char got[80], want[80];

	assert_true(i < c->funcs.v[func].n);
	unwind_rule_format(r->rule, got, sizeof(got));
	unwind_rule_format(rule, want, sizeof(want));
	assert_int_equal(r->addr, addr);
	assert_string_equal(got, want);
	assert_int_equal(r->rule, rule);
}

#define RULE(kind, rbp, off) WIRE_UNWIND_RULE(WIRE_UNWIND_##kind, rbp, off)
enum { SAME = WIRE_UNWIND_SAME };

static void test_programs(void **state)
{
	/* push rbp; mov rsp,rbp; ...; leave; ret, twice (remember, restore) */
	static const uint8_t framed[] = { 0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, 6,
					  0x4a, 0x0a, 0xc6, 0x0c, 7, 8,    0x41, 0x0b };
	/* PLT: rsp + 8 + ((rip & 15) >= 11) << 3 */
	static const uint8_t plt[] = { 0x0f, 11,   0x77, 8,    0x80, 0,   0x3f,
				       0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	/* main of a realigned frame: r10, then *(rbp - 8) with rbp at rbp + 0 */
	static const uint8_t realigned[] = { 0x45, 0x0c, 10,   0,    0x49, 0x10, 6,    2,
					     0x76, 0,    0x44, 0x0f, 3,    0x76, 0x78, 0x06 };
	static const uint8_t outermost[] = { 0x07, 16 };
	static const uint8_t vfork[] = { 0x42, 0x0e, 0, 0x09, 16, 5 };
	/* __restore_rt: CFA *(rsp + 160), rip *(rsp + 168), rbp *(rsp + 120) */
	static const uint8_t sigreturn[] = { 0x0f, 4,    0x77, 0xa0, 1,  6, 0x10, 6,    3,
					     0x77, 0xf8, 0,    0x10, 16, 3, 0x77, 0xa8, 1 };
	/* an offset that is no multiple of 8, an unknown register: no form */
	static const uint8_t odd[] = { 0x42, 0x0e, 13, 0x42, 0x0c, 3, 16 };
	static const uint8_t saved_rsp[] = { 0x0f, 6, 0x77, 0x98, 1, 6, 0x23, 8, 0x86, 2 };
	static const uint8_t bad[] = { 0x41, 0x0b };
	struct writer w = { 0 };
	struct cfi c;

	put_cie(&w);
	put_fde(&w, TEXT, 0x20, framed, sizeof(framed));
	put_fde(&w, TEXT + 0x100, 0x40, plt, sizeof(plt));
	put_fde(&w, TEXT + 0x200, 0x40, realigned, sizeof(realigned));
	put_fde(&w, TEXT + 0x300, 0x40, outermost, sizeof(outermost));
	put_fde(&w, TEXT + 0x400, 0x40, vfork, sizeof(vfork));
	put_fde(&w, TEXT + 0x500, 0x40, sigreturn, sizeof(sigreturn));
	put_fde(&w, TEXT + 0x600, 0x40, odd, sizeof(odd));
	put_fde(&w, TEXT + 0x700, 0x40, saved_rsp, sizeof(saved_rsp));
	put_fde(&w, TEXT + 0x800, 0x40, bad, sizeof(bad));
	put32(&w, 0);
	cfi_read(&c, "test", w.b, w.n, BASE, true);
	assert_false(c.bad);
	assert_int_equal(c.funcs.n, 9);
	assert_int_equal(c.funcs.v[0].start, TEXT);
	assert_int_equal(c.funcs.v[0].end, TEXT + 0x20);
	expect(&c, 0, 0, TEXT, RULE(RSP, SAME, 1));
	expect(&c, 0, 1, TEXT + 1, RULE(RSP, -2, 2));
	expect(&c, 0, 2, TEXT + 4, RULE(RBP, -2, 2));
	expect(&c, 0, 3, TEXT + 14, RULE(RSP, SAME, 1));
	expect(&c, 0, 4, TEXT + 15, RULE(RBP, -2, 2));
	expect(&c, 1, 0, TEXT + 0x100, RULE(PLT, SAME, 11));
	expect(&c, 2, 1, TEXT + 0x205, RULE(REG, SAME, WIRE_UNWIND_REG_OFF(10, 0)));
	expect(&c, 2, 3, TEXT + 0x212, RULE(RBP_DEREF, 0, -1));
	expect(&c, 3, 0, TEXT + 0x300, RULE(STOP, 0, 0));
	expect(&c, 4, 1, TEXT + 0x402, RULE(RA_RDI, SAME, 0));
	expect(&c, 5, 0, TEXT + 0x500, RULE(SIGRETURN, 0, 0));
	expect(&c, 6, 0, TEXT + 0x600, RULE(RSP, SAME, 1));
	expect(&c, 6, 1, TEXT + 0x602, 0);
	expect(&c, 7, 0, TEXT + 0x700, RULE(RSP_DEREF8, -2, 19));
	expect(&c, 8, 0, TEXT + 0x800, 0);
	assert_true(c.skipped >= 3);
	cfi_fini(&c);
	/* Cut anywhere, it ends. */
	for (uint32_t n = 0; n < w.n; n++) {
		uint8_t *cut = xmemdup(w.b, n ? n : 1);

		cfi_read(&c, "cut", cut, n, BASE, true);
		cfi_fini(&c);
		cfi_read(&c, "cut", cut, n, BASE, false);
		cfi_fini(&c);
		free(cut);
	}
}

/* A CIE is an entry, not bytes within one. */
static void test_hidden_cie(void **state)
{
	static const uint8_t nops[32] = { 0 };
	struct writer inside = { 0 }, w = { 0 };
	struct cfi c;

	put_cie(&inside);
	put_cie(&w);
	put_fde(&w, TEXT, 0x20, nops, sizeof(nops));
	put_fde(&w, TEXT + 0x20, 0x20, nops, sizeof(nops));
	cfi_read(&c, "plain", w.b, w.n, BASE, true);
	assert_int_equal(c.funcs.n, 2);
	cfi_fini(&c);
	/* in the first function's program, with the second one's pointer to it */
	memcpy(w.b + inside.n + 17, inside.b, inside.n);
	w.b[inside.n + 17 + sizeof(nops) + 4] = 17 + sizeof(nops) + 4 - 17;
	cfi_read(&c, "hidden", w.b, w.n, BASE, true);
	assert_int_equal(c.funcs.n, 1);
	cfi_fini(&c);
}

static void assert_fails(struct err *e)
{
	assert_non_null(e);
	err_free(e);
}

static struct unwind_image *libc_image(struct object **ret)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					     "/usr/lib/libc.so.6" };
	struct unwind_image *u = NULL;

	for (uint32_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct err *e = object_open(paths[i], ret);

		if (e) {
			err_free(e);
			continue;
		}
		assert_null(unwind_image_build(*ret, &u));
		return u;
	}
	skip();
	return NULL;
}

static void test_image(void **state)
{
	struct object *o;
	struct unwind_image *u = libc_image(&o), *v;
	const struct object_symbol *s = object_find_name(o, "malloc");
	uint8_t *bytes = xmemdup(u->head, u->size);
	uint32_t good = 0;

	assert_true(u->head->nrows > 1000);
	assert_true(u->head->skipped < u->head->nrows / 100);
	assert_non_null(s);
	assert_int_equal(unwind_image_rule(u, s->addr), RULE(RSP, SAME, 1));
	assert_int_equal(unwind_image_rule(u, 0), 0);
	assert_int_equal(unwind_image_rule(u, UINT64_MAX), 0);
	s = object_find_name(o, "vfork");
	assert_non_null(s);
	assert_null(unwind_image_parse("copy", bytes, u->size, &v));
	unwind_image_free(v);
	/* Damaged: refused, or still safe to search. */
	srandom(1);
	for (uint32_t i = 0; i < 3000; i++) {
		size_t at = i < 64 ? i : (size_t)random() % u->size;
		uint8_t was = bytes[at];
		struct err *e;

		bytes[at] ^= (uint8_t)(1 + random() % 255);
		e = unwind_image_parse("damaged", bytes, u->size, &v);
		err_free(e);
		if (!e) {
			good++;
			for (uint32_t k = 0; k < 20; k++)
				unwind_image_rule(v, (uint64_t)random() % (4u << 20));
			unwind_image_free(v);
		}
		bytes[at] = was;
	}
	assert_true(good < 3000);
	assert_fails(unwind_image_parse("short", bytes, u->size - 4, &v));
	free(bytes);
	unwind_image_free(u);
	object_free(o);
}

/* The image of one file is not that of another one with the same build-id and size. */
static void only_its_file(struct object *o, const char *dir, const char *path)
{
	cleanup_free char *twin = xasprintf("%s/twin", dir), *text = NULL, *image = NULL;
	struct wire_unwind_image *head;
	struct unwind_image *u;
	struct object *other;
	size_t len, n;
	FILE *f;

	assert_null(io_read_file(path, &image, &n));
	head = (struct wire_unwind_image *)(void *)image;
	head->skipped ^= 1 << 20; /* a mark */
	f = fopen(path, "w");
	assert_int_equal(fwrite(image, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_null(io_read_file(object_path(o), &text, &len));
	f = fopen(twin, "w");
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(twin, 0644), 0);
	assert_null(object_open(twin, &other));
	for (int k = 0; k < 2; k++) {
		assert_null(unwind_image_open(k ? other : o, &u));
		assert_int_equal(u->head->skipped == head->skipped, !k);
		unwind_image_free(u);
	}
	object_free(other);
	unlink(twin);
	unlink(path);
	assert_null(unwind_image_open(o, &u)); /* makes the first file's again */
	unwind_image_free(u);
}

/* Root with another user's XDG_CACHE_HOME: that user could give the folder's name to another. */
static void test_cache_of_another(void **state)
{
	char dir[] = "/tmp/descry-cache-XXXXXX";
	struct object *o;
	struct unwind_image *u = libc_image(&o), *v;
	cleanup_free char *sub = NULL;

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(dir));
	sub = xasprintf("%s/descry", dir);
	assert_int_equal(chown(dir, 65534, 65534), 0);
	setenv("XDG_CACHE_HOME", dir, 1);
	assert_null(unwind_image_open(o, &v));
	assert_int_equal(v->size, u->size);
	assert_int_equal(access(sub, F_OK), -1);
	unsetenv("XDG_CACHE_HOME");
	unwind_image_free(v);
	unwind_image_free(u);
	object_free(o);
	rmdir(dir);
}

static void test_cache(void **state)
{
	char dir[] = "/tmp/descry-cache-XXXXXX";
	struct object *o;
	struct unwind_image *u = libc_image(&o), *v;
	cleanup_free char *sub = NULL, *path = NULL, *text = NULL, *other = NULL, *old = NULL,
			  *half = NULL;
	struct dirent *d;
	size_t len;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CACHE_HOME", dir, 1);
	assert_null(unwind_image_open(o, &v));
	assert_int_equal(v->size, u->size);
	unwind_image_free(v);
	sub = xasprintf("%s/descry", dir);
	int swept;
	DIR *list = opendir(sub);
	assert_non_null(list);
	while ((d = readdir(list)))
		if (d->d_name[0] != '.') {
			assert_null(path);
			path = xasprintf("%s/%s", sub, d->d_name);
		}
	closedir(list);
	assert_non_null(path);
	assert_null(io_read_file(path, &text, &len));
	assert_true(len > u->size);
	assert_memory_equal(text, u->head, u->size);
	assert_null(unwind_image_open(o, &v));
	assert_memory_equal(v->head, u->head, u->size);
	unwind_image_free(v);
	only_its_file(o, dir, path);
	/* Truncated: made again. */
	assert_int_equal(truncate(path, (off_t)len / 2), 0);
	assert_null(unwind_image_open(o, &v));
	assert_int_equal(v->size, u->size);
	unwind_image_free(v);
	/* Writable by others: not trusted, nor written to. */
	assert_int_equal(chmod(sub, 0777), 0);
	assert_null(unwind_image_open(o, &v));
	assert_int_equal(v->size, u->size);
	unwind_image_free(v);
	unlink(path);
	/* The build-id of a file that others can write is not trusted: its image is not kept. */
	assert_int_equal(chmod(sub, 0755), 0);
	cleanup_free char *copy = xasprintf("%s/copy", dir);
	FILE *f = fopen(copy, "w");

	assert_null(io_read_file(object_path(o), &other, &len));
	assert_int_equal(fwrite(other, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	object_free(o);
	for (int open = 1; open >= 0; open--) {
		assert_int_equal(chmod(copy, open ? 0666 : 0644), 0);
		assert_null(object_open(copy, &o));
		assert_null(unwind_image_open(o, &v));
		assert_int_equal(v->size, u->size);
		unwind_image_free(v);
		object_free(o);
		assert_int_equal(access(path, F_OK), open ? -1 : 0);
	}
	/* Written to while it is read: no tables, and none are kept. */
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	struct err *changed;

	unlink(path);
	assert_null(object_open(copy, &o));
	assert_int_equal(utimensat(AT_FDCWD, copy, times, 0), 0);
	changed = unwind_image_open(o, &v);
	assert_non_null(changed);
	assert_int_equal(changed->code, ESTALE);
	err_free(changed);
	assert_int_equal(access(path, F_OK), -1);
	object_free(o);
	assert_null(object_open(copy, &o));
	assert_null(unwind_image_open(o, &v));
	unwind_image_free(v);
	object_free(o);
	unlink(copy);
	/* Old files of other versions are removed. */
	old = xasprintf("%s/unwind1-00", sub);
	half = xasprintf("%s/unwind%d-00.abcdef", sub, (int)WIRE_UNWIND_VERSION);
	assert_int_equal(close(creat(old, 0600)), 0);
	assert_int_equal(close(creat(half, 0600)), 0);
	swept = open(sub, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(swept >= 0);
	unwind_cache_sweep(swept, time(NULL));
	assert_int_equal(access(old, F_OK), 0);
	assert_int_equal(access(half, F_OK), 0);
	unwind_cache_sweep(swept, time(NULL) + 2 * 24 * 60 * 60);
	assert_int_equal(access(old, F_OK), 0);
	assert_int_equal(access(half, F_OK), -1);
	unwind_cache_sweep(swept, time(NULL) + 31 * 24 * 60 * 60);
	close(swept);
	assert_int_equal(access(old, F_OK), -1);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	rmdir(sub);
	rmdir(dir);
	unsetenv("XDG_CACHE_HOME");
	unwind_image_free(u);
}

/* Makes a file of `size` bytes in one section named .eh_frame, all of it a hole. */
static void sparse_frames(const char *path, uint64_t size)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr text;
		Elf64_Shdr sections[3];
		char names[sizeof(names)];
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
	f.h.e_shnum = 3;
	f.h.e_shstrndx = 2;
	f.text = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	f.sections[1] = (Elf64_Shdr){ .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = 0x10000,
				      .sh_offset = 4096,
				      .sh_size = size };
	f.sections[2] = (Elf64_Shdr){ .sh_name = 11,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(__typeof__(f), names),
				      .sh_size = sizeof(names) };
	memcpy(f.names, names, sizeof(names));
	assert_int_equal(fwrite(&f, sizeof(f), 1, out), 1);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(truncate(path, (off_t)(4096 + size)), 0);
}

/* A hole of 500 MB is no .eh_frame, and the tables of many files are not read. */
static void test_work(void **state)
{
	enum { FILES = 5, SIZE = 1 << 20 };
	char dir[] = "/tmp/descry-frames-XXXXXX", path[64];
	struct unwind_images *s = unwind_images_new();
	struct unwind_image *u;
	struct object *o;
	uint64_t addr;
	size_t n;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/large", dir);
	sparse_frames(path, 500 << 20);
	assert_null(object_open(path, &o));
	assert_null(object_eh_frame(o, &addr, &n));
	assert_null(unwind_image_build(o, &u));
	assert_int_equal(u->work, 0);
	unwind_image_free(u);
	object_free(o);
	unlink(path);
	unwind_images_limit(s, 3 * SIZE);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		sparse_frames(path, SIZE);
		assert_int_equal(unwind_images_add_path(s, path), i < 3);
		unlink(path);
	}
	assert_true(unwind_images_full(s));
	assert_int_equal(unwind_images_left_out(s), FILES - 3);
	/* the work of files that are gone does not count */
	unwind_images_remove(s, unwind_images_file(s, 0));
	assert_false(unwind_images_full(s));
	unwind_images_free(s);
	rmdir(dir);
}

/* Without .eh_frame: .debug_frame, plain and compressed, gives the same rules as .eh_frame does. */
static void test_debug_frame(void **state)
{
	static const char *const flags[] = { "-gz=none", "-gz=zlib", "-gz=zstd" };
	char dir[] = "/tmp/descry-debug-frame-XXXXXX";
	struct unwind_image *with;
	struct object *o;
	uint32_t compared = 0;

	assert_non_null(mkdtemp(dir));
	cleanup_free char *src = xasprintf("%s/x.c", dir);
	FILE *f = fopen(src, "w");
	fputs("volatile int v; int f(int n) { int a[40]; for (int i = 0; i < 40; i++) a[i] = n + v;"
	      " return n ? f(n - 1) + a[n & 31] : a[3]; } int g(int n) { return f(n) + f(v); }",
	      f);
	fclose(f);
	cleanup_free char *eh = xasprintf("cc -O2 -shared -fPIC -o %s/eh.so %s", dir, src);
	cleanup_free char *eh_path = xasprintf("%s/eh.so", dir);
	assert_int_equal(system(eh), 0);
	assert_null(object_open(eh_path, &o));
	assert_null(unwind_image_build(o, &with));
	const struct object_symbol *fs = object_find_name(o, "f"), *gs = object_find_name(o, "g");
	assert_true(fs && gs);
	for (uint32_t i = 0; i < ARRAY_SIZE(flags); i++) {
		cleanup_free char *cmd =
			xasprintf("cc -O2 -g %s -fno-asynchronous-unwind-tables -fno-unwind-tables "
				  "-shared -fPIC -nostdlib -o %s/d.so %s 2>/dev/null",
				  flags[i], dir, src);
		cleanup_free char *path = xasprintf("%s/d.so", dir);
		struct unwind_image *u;
		struct object *d;

		if (system(cmd)) /* an older toolchain without zstd */
			continue;
		assert_null(object_open(path, &d));
		assert_null(unwind_image_build(d, &u));
		const struct object_symbol *fd = object_find_name(d, "f");
		assert_true(fd && u->head->npages);
		for (uint64_t k = 0; k < fs->size && k < fd->size; k++)
			assert_int_equal(unwind_image_rule(u, fd->addr + k),
					 unwind_image_rule(with, fs->addr + k));
		compared++;
		unwind_image_free(u);
		object_free(d);
		unlink(path);
	}
	assert_true(compared >= 2);
	unwind_image_free(with);
	object_free(o);
	unlink(eh_path);
	unlink(src);
	rmdir(dir);
}

/* CFA in a register that only the innermost frame knows, and OpenSSL's expression with one. */
static void test_registers(void **state)
{
	static const uint8_t reg[] = { 0x0c, 0, 16, 0x41, 0x0c, 3, 0x18 };
	static const uint8_t index[] = { 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 6, 0x23, 8 };
	static const uint8_t cut[] = { 0x0f, 6, 0x77, 8, 0x79, 0, 0x38, 0x1e };
	struct writer w = { .n = 0 };
	struct cfi c;
	char text[80];

	put_cie(&w);
	put_fde(&w, TEXT, 0x40, reg, sizeof(reg));
	put_fde(&w, TEXT + 0x40, 0x40, index, sizeof(index));
	put_fde(&w, TEXT + 0x80, 0x40, cut, sizeof(cut));
	cfi_read(&c, "registers", w.b, w.n, BASE, true);
	expect(&c, 0, 0, TEXT, RULE(REG, SAME, WIRE_UNWIND_REG_OFF(0, 2)));
	expect(&c, 0, 1, TEXT + 1, RULE(REG, SAME, WIRE_UNWIND_REG_OFF(3, 3)));
	expect(&c, 1, 0, TEXT + 0x40, RULE(INDEX, SAME, WIRE_UNWIND_REG_OFF(9, 1)));
	expect(&c, 2, 0, TEXT + 0x80, 0);
	unwind_rule_format(RULE(INDEX, SAME, WIRE_UNWIND_REG_OFF(9, 1)), text, sizeof(text));
	assert_string_equal(text, "CFA=*(rsp+reg9*8+8)+8");
	cfi_fini(&c);
}

static bool read_own(void *arg, uint64_t addr, uint64_t *ret)
{
	memcpy(ret, (const void *)(uintptr_t)addr, 8);
	return true;
}

static void test_walk_bounds(void **state)
{
	struct unwind_process none = { .pid = getpid() };
	struct unwind_regs regs = { .pc = 0x1234, .sp = 0x1000, .bp = 0 };
	uint64_t pcs[4];
	enum wire_unwind_end end;

	assert_int_equal(unwind_walk(&none, &regs, read_own, NULL, pcs, NULL, 4, &end), 1);
	assert_int_equal(end, WIRE_UNWIND_END_NO_TABLE);
	assert_int_equal(unwind_walk(&none, &regs, read_own, NULL, pcs, NULL, 0, &end), 0);
	assert_int_equal(end, WIRE_UNWIND_END_DEEP);
	assert_string_equal(unwind_end_text(WIRE_UNWIND_END_ROOT), "complete");
}

/* A function that was not called: it stands at the top of its stack, where it would return to 0. */
static void test_walk_fiber(void **state)
{
	uint64_t stack[4] = { 0 }, pcs[4];
	struct unwind_regs regs = { .pc = (uintptr_t)dlsym(RTLD_DEFAULT, "getppid"),
				    .sp = (uintptr_t)stack };
	struct unwind_images *images = unwind_images_new();
	struct unwind_process *p;
	enum wire_unwind_end end;

	assert_null(unwind_process_live(images, getpid(), &p));
	assert_int_equal(unwind_walk(p, &regs, read_own, NULL, pcs, NULL, 4, &end), 1);
	assert_int_equal(end, WIRE_UNWIND_END_ROOT);
	assert_true(pcs[0] == regs.pc);
	stack[0] = 8; /* in no mapping */
	assert_int_equal(unwind_walk(p, &regs, read_own, NULL, pcs, NULL, 4, &end), 2);
	assert_int_equal(end, WIRE_UNWIND_END_NO_TABLE);
	unwind_process_free(p);
	unwind_images_free(images);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_hidden_cie),
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_of_another),
		cmocka_unit_test(test_walk_bounds),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_walk_fiber),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
