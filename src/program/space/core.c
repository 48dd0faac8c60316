/* The address space of a process that has ended, from its core file.
 *
 * An ELF file of type ET_CORE: PT_NOTE holds the kernel's facts of the process, PT_LOAD its memory,
 * a segment for each mapping, with p_filesz bytes in the file.
 *
 *	NT_PRSTATUS   registers and thread id, one a thread; the thread that got the signal is the first
 *	NT_PRPSINFO   the process id
 *	NT_AUXV       the auxiliary vector
 *	NT_FILE       mapped files: count, page size, {start, end, offset in pages}..., then their paths
 *
 * Most cores leave out unmodified pages of mapped files, because the files have them. (elf.h; Linux
 * fs/binfmt_elf.c) */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/characters.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/regular.h"
#include "base/sorted.h"
#include "program/object/object.h"
#include "program/space/space.h"

enum {
	/* struct elf_prstatus, struct elf_prpsinfo of x86-64 */
	PRSTATUS_SIGNAL = 12,
	PRSTATUS_TID = 32,
	PRSTATUS_REGS = 112,
	PRPSINFO_PID = 24,
	FIRST_PAGE = 4096,
	NOTES_MAX = 1 << 30, /* bytes: 300,000 threads with all registers have 800 MB */
	HEADERS_MAX = 1 << 24,
};
#define VSYSCALL 0xffffffffff600000ull

/* Bytes of memory in the core. */
struct part {
	uint64_t start, end, at; /* at: offset of start in the core */
};

/* A file that the process had mapped. */
struct core_file {
	const char *path;
	uint64_t base; /* address of its first page; UINT64_MAX: not known */
	bool tried;
	int fd; /* -1: it does not exist, or another file has its path */
};

struct core {
	struct space space; /* first member */
	struct mapped file;
	struct arena text;
	struct mappings mappings;
	VEC(struct core_file) files;
	struct hash paths;      /* path -> index in files */
	VEC(struct part) parts; /* sorted by start, disjoint */
	VEC(struct space_thread) threads;
	VEC(uint64_t) auxv;
	VEC(const char *) remarks;
	int64_t written; /* st_mtime of the core, s */
	uid_t owner;     /* of the core file */
};

static struct core *core_of(struct space *s)
{
	return (struct core *)s;
}

static void remark(struct core *c, const char *text)
{
	vec_push(&c->remarks, text);
}

/* --- headers --- */

struct load {
	uint64_t start, end; /* first members: sort_apart() */
	uint64_t at, filesz;
	uint32_t flags;
};

struct mapped_file {
	uint64_t start, end; /* first members: sort_apart() */
	uint64_t offset;
	uint32_t file; /* index in core.files */
};

/* Used only while the core is read. */
struct reading {
	VEC(struct load) loads;
	VEC(struct mapped_file) files;
	/* bytes of notes that may still be read: those of the whole file, once */
	uint64_t notes;
	bool too_many;
};

static int core_by_start(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return COMPARE(x, y);
}

static void read_prstatus(struct core *c, struct bytes *b)
{
	struct space_thread t = { 0 };
	const void *regs;

	bytes_skip(b, PRSTATUS_SIGNAL);
	t.signal = bytes_u16(b);
	bytes_seek(b, PRSTATUS_TID);
	t.tid = (pid_t)bytes_u32(b);
	bytes_seek(b, PRSTATUS_REGS);
	regs = bytes_take(b, sizeof(t.regs));
	if (!regs)
		return;
	memcpy(&t.regs, regs, sizeof(t.regs));
	vec_push(&c->threads, t);
}

static void read_auxv(struct core *c, struct bytes *b)
{
	while (bytes_left(b) >= 16) {
		uint64_t type = bytes_u64(b), value = bytes_u64(b);

		if (type == AT_NULL)
			break;
		vec_push(&c->auxv, type);
		vec_push(&c->auxv, value);
	}
}

static uint32_t file_of_path(struct core *c, const char *path)
{
	bool fresh;
	uint64_t *slot = hash_put(&c->paths, path, strlen(path), &fresh);

	if (fresh) {
		*slot = c->files.n;
		vec_push(&c->files, (struct core_file){ .path = arena_strdup(&c->text, path),
							.base = UINT64_MAX,
							.fd = -1 });
	}
	return (uint32_t)*slot;
}

static void read_files(struct core *c, struct reading *r, struct bytes *b)
{
	uint64_t n = bytes_u64(b), page = bytes_u64(b);
	struct bytes paths = *b;

	if (n > bytes_left(b) / 24)
		n = bytes_left(b) / 24;
	bytes_skip(&paths, n * 24);
	for (uint64_t i = 0; i < n; i++) {
		const char *path = bytes_cstr(&paths);
		struct mapped_file f = { .start = bytes_u64(b) };

		f.end = bytes_u64(b);
		f.offset = bytes_u64(b) * page;
		if (!path)
			break;
		if (f.end <= f.start)
			continue;
		f.file = file_of_path(c, path);
		if (!f.offset && c->files.v[f.file].base == UINT64_MAX)
			c->files.v[f.file].base = f.start;
		vec_push(&r->files, f);
	}
}

static void read_notes(struct core *c, struct reading *r, struct bytes *b)
{
	while (bytes_left(b) >= 12) {
		uint32_t nname = bytes_u32(b), ndesc = bytes_u32(b), type = bytes_u32(b);
		const char *name = bytes_take(b, (nname + 3ull) & ~3ull);
		const uint8_t *desc = bytes_take(b, ndesc);
		struct bytes note;

		if (!name || !desc || (!nname && !ndesc && !type)) /* zeros: a hole of the file */
			break;
		bytes_skip(b, -ndesc & 3);
		if (nname != 5 || memcmp(name, "CORE", 5))
			continue;
		note = bytes_of(desc, ndesc, c->space.name);
		switch (type) {
		case NT_PRSTATUS: read_prstatus(c, &note); break;
		case NT_AUXV: read_auxv(c, &note); break;
		case NT_FILE: read_files(c, r, &note); break;
		case NT_PRPSINFO:
			bytes_skip(&note, PRPSINFO_PID);
			c->space.pid = (pid_t)bytes_u32(&note);
			break;
		default: break;
		}
	}
}

/* Returns how many of the n bytes at `at` the file has. */
static uint64_t file_has(const struct core *c, uint64_t at, uint64_t n)
{
	uint64_t left = at < c->file.len ? c->file.len - at : 0;

	return n < left ? n : left;
}

static struct bytes file_bytes(const struct core *c, uint64_t at, uint64_t n)
{
	n = file_has(c, at, n);
	return bytes_of((const uint8_t *)c->file.p + (n ? at : 0), n, c->space.name);
}

static void read_segments(struct core *c, struct reading *r, struct bytes *b, uint32_t n)
{
	for (uint32_t i = 0; i < n && bytes_ok(b); i++) {
		struct load l = { 0 };
		uint32_t type = bytes_u32(b);
		uint64_t size;

		l.flags = bytes_u32(b);
		l.at = bytes_u64(b);
		l.start = bytes_u64(b);
		bytes_u64(b); /* p_paddr */
		l.filesz = bytes_u64(b);
		size = bytes_u64(b);
		bytes_u64(b); /* p_align */
		l.end = l.start + size;
		if (!bytes_ok(b))
			break;
		if (type == PT_LOAD && l.end > l.start) {
			vec_push(&r->loads, l);
		} else if (type == PT_NOTE) {
			const uint64_t has = file_has(c, l.at, l.filesz);
			struct bytes notes = file_bytes(c, l.at, has);

			/* headers may all speak of the same notes */
			if (has > r->notes) {
				r->too_many = true;
				continue;
			}
			r->notes -= has;
			read_notes(c, r, &notes);
		}
	}
}

/* struct bytes reports "truncated at". A core with truncated headers is of no use. */
static struct err *read_headers(struct core *c, struct reading *r)
{
	struct bytes b = file_bytes(c, 0, c->file.len), table;
	const uint8_t *id = bytes_take(&b, EI_NIDENT);
	uint16_t type = bytes_u16(&b), machine = bytes_u16(&b), entsize;
	uint64_t phoff, shoff;
	uint32_t n;

	if (!id || memcmp(id, ELFMAG, SELFMAG))
		return err_new(ENOEXEC, "%s: not a core file", c->space.name);
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB || machine != EM_X86_64)
		return err_new(ENOEXEC, "%s: not of an x86-64 process", c->space.name);
	if (type != ET_CORE)
		return err_new(ENOEXEC, "%s: an ELF file, but not a core file", c->space.name);
	bytes_skip(&b, 4 + 8); /* version, entry */
	phoff = bytes_u64(&b);
	shoff = bytes_u64(&b);
	bytes_skip(&b, 4 + 2); /* flags, ehsize */
	entsize = bytes_u16(&b);
	n = bytes_u16(&b);
	if (n == PN_XNUM) { /* section 0 has the count */
		struct bytes section = file_bytes(c, shoff, sizeof(Elf64_Shdr));

		bytes_skip(&section, offsetof(Elf64_Shdr, sh_info));
		n = bytes_u32(&section);
	}
	if (!bytes_ok(&b) || (n && entsize != sizeof(Elf64_Phdr)))
		return err_new(EINVAL, "%s: the headers are damaged", c->space.name);
	if (n > HEADERS_MAX)
		return err_new(EFBIG, "%s: it has %u headers, and descry reads %u at most",
			       c->space.name, n, HEADERS_MAX);
	table = file_bytes(c, phoff, (uint64_t)n * entsize);
	if (bytes_left(&table) < (uint64_t)n * entsize)
		return err_new(EINVAL, "%s is cut short within its headers: nothing can be read",
			       c->space.name);
	r->notes = c->file.len < NOTES_MAX ? c->file.len : NOTES_MAX;
	read_segments(c, r, &table, n);
	if (r->too_many)
		remark(c, "some of its notes are left out: they are larger than the file, or "
			  "than 1 GB");
	return NULL;
}

/* --- the list of mappings --- */

/* Sorts n elements of `size` bytes, which begin with their start and end. Removes those that
 * overlap another. Returns how many are left. */
static uint32_t sort_apart(void *v, uint32_t n, size_t size)
{
	uint32_t kept = 0;

	if (n)
		qsort(v, n, size, core_by_start);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *last = kept ? (const void *)((uint8_t *)v + (kept - 1) * size)
					    : NULL;
		uint8_t *next = (uint8_t *)v + i * size;

		if (!last || *(uint64_t *)(void *)next >= last[1])
			memmove((uint8_t *)v + kept++ * size, next, size);
	}
	return kept;
}

static void add_mapping(struct core *c, struct mapping m, const struct mapped_file *f)
{
	m.path = f ? c->files.v[f->file].path : m.start == VSYSCALL ? "[vsyscall]" : "";
	m.offset = f ? m.start - f->start + f->offset : 0;
	vec_push(&c->mappings, m);
}

/* Adds the parts of a mapped file without a segment. Whether they were executable is not known. */
static void add_uncovered(struct core *c, const struct reading *r, const struct mapped_file *f)
{
	uint32_t i = partition_point(r->loads.n, k, r->loads.v[k].end <= f->start);
	struct mapping m = { .start = f->start, .read = true, .exec = true };

	for (; i < r->loads.n && r->loads.v[i].start < f->end; i++) {
		m.end = r->loads.v[i].start;
		if (m.end > m.start)
			add_mapping(c, m, f);
		m.start = r->loads.v[i].end;
	}
	m.end = f->end;
	if (m.end > m.start)
		add_mapping(c, m, f);
}

/* Names a mapping as /proc/PID/maps does, unless it has a name. */
static void name_mapping(struct core *c, uint64_t addr, const char *name)
{
	uint32_t i = mappings_from(&c->mappings, addr);

	if (i < c->mappings.n && addr >= c->mappings.v[i].start && !*c->mappings.v[i].path)
		c->mappings.v[i].path = name;
}

static void name_special(struct core *c)
{
	uint64_t vdso = space_auxv(&c->space, AT_SYSINFO_EHDR);

	if (vdso)
		name_mapping(c, vdso, "[vdso]");
	for (uint32_t i = 0; i < c->threads.n; i++)
		if (c->threads.v[i].tid == c->space.pid)
			name_mapping(c, c->threads.v[i].regs.rsp, "[stack]");
}

static void make_mappings(struct core *c, struct reading *r)
{
	uint64_t missing = 0, first = 0;

	for (uint32_t i = 0; i < r->loads.n; i++) {
		const struct load *l = &r->loads.v[i];
		struct mapping m = { .start = l->start,
				     .end = l->end,
				     .read = l->flags & PF_R,
				     .write = l->flags & PF_W,
				     .exec = l->flags & PF_X };
		uint32_t k = partition_point(r->files.n, j, r->files.v[j].end <= l->start);
		const struct mapped_file *f = k < r->files.n ? &r->files.v[k] : NULL;
		uint64_t n = l->filesz < l->end - l->start ? l->filesz : l->end - l->start;
		uint64_t have = file_has(c, l->at, n);

		add_mapping(c, m, f && f->start <= l->start ? f : NULL);
		if (have)
			vec_push(&c->parts, (struct part){ l->start, l->start + have, l->at });
		if (have < n && !missing)
			first = l->start + have;
		missing += n - have;
	}
	for (uint32_t i = 0; i < r->files.n; i++)
		add_uncovered(c, r, &r->files.v[i]);
	if (c->mappings.n)
		qsort(c->mappings.v, c->mappings.n, sizeof(*c->mappings.v), core_by_start);
	name_special(c);
	if (missing)
		remark(c,
		       arena_printf(&c->text,
				    "it is cut short: %llu bytes of memory are missing, the first "
				    "at 0x%llx",
				    (unsigned long long)missing, (unsigned long long)first));
	if (!c->threads.n)
		remark(c, "it holds no thread's registers");
	if (!c->files.n)
		remark(c, "it does not record which files were mapped");
}

/* --- its files --- */

/* Returns true when the file was not written to after the core. This is the only test for a file
 * of which the core has no first page. */
static bool is_older(const struct core *c, const struct stat *st)
{
	return st->st_mtim.tv_sec <= c->written;
}

/* Returns a path by which a descriptor's file can be opened again. */
static const char *path_of_fd(int fd, char buf[32])
{
	snprintf(buf, 32, "/proc/self/fd/%d", fd);
	return buf;
}

enum proof { PROVED, REFUTED, NO_PROOF };

/* Compares an ELF file with the first page that the core has of it: their build ids or, without
 * one, all bytes of the page. Reads memory, which comes from the core alone: f is not open yet. */
static enum proof compare_first_page(struct core *c, const struct core_file *f, int fd)
{
	uint8_t page[FIRST_PAGE], now[FIRST_PAGE] = { 0 }; /* zeros follow a file's end */
	struct object *was = NULL, *is = NULL;
	const uint8_t *id = NULL, *id_now = NULL;
	uint32_t n = 0, n_now = 0;
	char path[32];
	bool same;

	if (f->base == UINT64_MAX ||
	    space_read_some(&c->space, f->base, page, sizeof(page)) < sizeof(page) ||
	    memcmp(page, ELFMAG, SELFMAG))
		return NO_PROOF;
	err_free(space_object(&c->space, f->base, 0, &was));
	if (was)
		id = object_build_id(was, &n);
	if (id)
		err_free(object_open(path_of_fd(fd, path), &is));
	if (is)
		id_now = object_build_id(is, &n_now);
	same = id ? n_now == n && !memcmp(id, id_now, n)
		  : pread(fd, now, sizeof(now), 0) > 0 && !memcmp(page, now, sizeof(now));
	object_free(was);
	object_free(is);
	return same ? PROVED : REFUTED;
}

/* Returns true when every user may search all folders above the file. */
static bool is_reachable(int fd)
{
	char link[32];
	cleanup_free char *real = realpath(path_of_fd(fd, link), NULL);
	struct stat st;

	if (!real)
		return false;
	for (char *slash; (slash = strrchr(real, '/')) && slash != real;) {
		*slash = '\0';
		if (stat(real, &st) || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

/* Returns true when the core's owner could read the file without the core. root may get a core from
 * any user, so the fact that root owns a core does not prove that its maker may read the file: all
 * users must be able to read it. For files that root owns and all may read, their folder does not
 * matter, because a JVM may be in /root. */
static bool is_readable_by_owner(const struct core *c, int fd, const struct stat *st)
{
	bool own = st->st_uid == c->owner;

	if (own && c->owner)
		return true;
	return (st->st_mode & S_IROTH) && (own || is_reachable(fd));
}

/* Returns why the file is not used, or NULL. The core names the path, and may be forged: the memory
 * that is shown must not be that of a file which the core's maker could not read. */
static const char *refusal(struct core *c, const struct core_file *f, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return "it cannot be opened";
	switch (compare_first_page(c, f, fd)) {
	case PROVED: return NULL;
	case REFUTED: return "another file is there now";
	case NO_PROOF: break;
	}
	if (!is_readable_by_owner(c, fd, &st))
		return "the core does not prove that this file was mapped, and the core's owner "
		       "may not read it (if you trust the core, chown it to the file's owner)";
	return is_older(c, &st) ? NULL : "another file is there now";
}

/* Opens a file when its bytes are first needed. */
static void open_file(struct core *c, struct core_file *f)
{
	int fd = *f->path == '/' ? regular_open(f->path) : -1;
	const char *why;
	char *shown;

	f->tried = true; /* compare_first_page() reads memory too, but not from this file */
	why = refusal(c, f, fd);
	if (!why) {
		f->fd = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
	shown = arena_strdup(&c->text, f->path);
	characters_show(shown, strlen(shown));
	remark(c, arena_printf(&c->text, "the mapped part of %s is missing: %s", shown, why));
}

static struct core_file *file_at(struct core *c, const struct mapping *m)
{
	uint64_t *i = hash_get(&c->paths, m->path, strlen(m->path));
	struct core_file *f = i ? &c->files.v[*i] : NULL;

	if (f && !f->tried)
		open_file(c, f);
	return f && f->fd >= 0 ? f : NULL;
}

/* --- the operations of a space --- */

static struct err *core_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	(void)time; /* only the state at the end is known */
	*ret = &core_of(s)->mappings;
	return NULL;
}

static uint32_t core_read(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	struct core *c = core_of(s);
	uint32_t i = partition_point(c->parts.n, k, c->parts.v[k].end <= addr);
	const struct part *p = i < c->parts.n ? &c->parts.v[i] : NULL;

	if (p && addr < p->start && p->start - addr < *ret_gap)
		*ret_gap = (uint32_t)(p->start - addr);
	if (!p || addr < p->start)
		return 0;
	if (n > p->end - addr)
		n = (uint32_t)(p->end - addr);
	memcpy(buf, (const uint8_t *)c->file.p + p->at + (addr - p->start), n);
	return n;
}

static uint32_t files_read(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	struct core *c = core_of(s);
	const struct mapping *m = mappings_find(&c->mappings, addr);
	const struct core_file *f = m ? file_at(c, m) : NULL;
	ssize_t got;

	(void)ret_gap; /* this is the lowest layer */
	if (!f)
		return 0;
	if (n > m->end - addr)
		n = (uint32_t)(m->end - addr);
	got = pread(f->fd, buf, n, (off_t)(m->offset + (addr - m->start)));
	return got > 0 ? (uint32_t)got : 0;
}

static struct err *core_threads(struct space *s, const struct space_thread **ret, uint32_t *ret_n)
{
	*ret = core_of(s)->threads.v;
	*ret_n = core_of(s)->threads.n;
	return NULL;
}

static struct err *core_auxv(struct space *s, const uint64_t **ret, uint32_t *ret_n)
{
	*ret = core_of(s)->auxv.v;
	*ret_n = core_of(s)->auxv.n / 2;
	return NULL;
}

static struct err *core_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	struct core *c = core_of(s);
	uint32_t i = partition_point(c->parts.n, k, c->parts.v[k].end <= in.start);

	for (; i < c->parts.n && c->parts.v[i].start < in.end; i++) {
		struct space_range r = { c->parts.v[i].start, c->parts.v[i].end };

		r.start = r.start > in.start ? r.start : in.start;
		r.end = r.end < in.end ? r.end : in.end;
		vec_push(ret, r);
	}
	return NULL;
}

static char *core_open_path(struct space *s, const struct mapping *m)
{
	struct core_file *f = file_at(core_of(s), m);

	return f ? xstrdup(f->path) : NULL;
}

static void core_free(struct space *s)
{
	struct core *c = core_of(s);

	for (uint32_t i = 0; i < c->files.n; i++)
		if (c->files.v[i].fd >= 0)
			close(c->files.v[i].fd);
	mapped_close(&c->file);
	mappings_free(&c->mappings);
	vec_fini(&c->files);
	hash_fini(&c->paths);
	vec_fini(&c->parts);
	vec_fini(&c->threads);
	vec_fini(&c->auxv);
	vec_fini(&c->remarks);
	arena_fini(&c->text);
	free(c);
}

static const struct space_ops core_ops = {
	.mappings = core_mappings,
	.memory = { { "the core", core_read }, { "the files that were mapped", files_read } },
	.threads = core_threads,
	.auxv = core_auxv,
	.resident = core_resident,
	.open_path = core_open_path,
	.free = core_free,
};

struct err *space_core(const char *path, struct space **ret)
{
	struct core *c = xcalloc(1, sizeof(*c));
	struct reading r = { 0 };
	struct err *e = mapped_open(path, &c->file);
	struct stat st;

	if (e) {
		free(c);
		return e;
	}
	c->space = (struct space){ .ops = &core_ops,
				   .name = xasprintf("core %s", path),
				   .record = true };
	arena_init(&c->text);
	if (!fstat(c->file.fd, &st)) {
		c->written = st.st_mtim.tv_sec;
		c->owner = st.st_uid;
	}
	e = read_headers(c, &r);
	if (!e) {
		r.loads.n = sort_apart(r.loads.v, r.loads.n, sizeof(*r.loads.v));
		r.files.n = sort_apart(r.files.v, r.files.n, sizeof(*r.files.v));
		make_mappings(c, &r);
		if (!c->space.pid && c->threads.n)
			c->space.pid = c->threads.v[0].tid;
	}
	vec_fini(&r.loads);
	vec_fini(&r.files);
	if (e)
		space_free(&c->space);
	else
		*ret = &c->space;
	return e;
}

const char *space_core_remark(const struct space *s, uint32_t i)
{
	const struct core *c = (const struct core *)s;

	return s->ops == &core_ops && i < c->remarks.n ? c->remarks.v[i] : NULL;
}
