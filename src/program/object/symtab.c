/* Reads function symbols: from .symtab, or from .dynsym together with the separate debug file (by
 * build-id, debuglink, debuginfod), .gnu_debugdata or Go's own table. Sorts them by address, and
 * looks them up by address and by name. */
#include <elf.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/sorted.h"
#include "program/object/dwarf.h"
#include "program/object/go.h"
#include "program/object/object_private.h"

enum {
	MAX_DEBUGDATA = 256 << 20, /* limit of .gnu_debugdata unpacked, in bytes */
	LZMA_MEMORY = 128 << 20,
	/* In a hostile file names may be ends of each other, so that comparing them takes more time
	 * than the file has bytes. */
	LONGEST_NAME = 64 << 10,
	NAMES_MAX = 512 << 20, /* of all names of an object: these, and */
	NAMES_FEW = 16 << 20,
	NAMES_TIMES = 8,  /* the tables of strings, which some linkers fold */
	ASKED_FEW = 8,    /* values that are looked for in the tables themselves */
	BACK_MAX = 16384, /* limit of symbols that begin before an address and may cover it */
};

typedef void symbol_fn(void *arg, char *name, uint8_t info, uint16_t shndx, uint64_t value,
		       uint64_t size);

/* Calls fn for every symbol of the table. Returns the string table, which holds the names. The
 * caller frees it. Returns NULL when the table cannot be read. */
static char *each_symbol(const struct object *o, const struct section *table, symbol_fn *fn,
			 void *arg, size_t *ret_n)
{
	cleanup_free uint8_t *syms = NULL;
	uint32_t entsize = o->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	size_t n, nstr = 0;
	char *str;

	if (table->link >= o->sections.n)
		return NULL;
	syms = image_section(o, table, &n);
	if (!syms)
		return NULL;
	str = (char *)image_section(o, &o->sections.v[table->link], &nstr);
	if (!str)
		return NULL;
	for (size_t i = 1; i < n / entsize; i++) {
		if (o->is64) {
			Elf64_Sym s;

			memcpy(&s, syms + i * entsize, sizeof(s));
			if (s.st_name < nstr)
				fn(arg, str + s.st_name, s.st_info, s.st_shndx, s.st_value,
				   s.st_size);
		} else {
			Elf32_Sym s;

			memcpy(&s, syms + i * entsize, sizeof(s));
			if (s.st_name < nstr)
				fn(arg, str + s.st_name, s.st_info, s.st_shndx, s.st_value,
				   s.st_size);
		}
	}
	*ret_n = nstr;
	return str;
}

static const struct section *find_table(const struct object *o, uint32_t type)
{
	for (uint32_t i = 0; i < o->sections.n; i++)
		if (o->sections.v[i].type == type)
			return &o->sections.v[i];
	return NULL;
}

uint64_t object_symbols_size(const struct object *o)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct section *t = find_table(o, types[i]);
		const uint64_t n = t ? t->size : 0, names = t && t->link < o->sections.n
								    ? o->sections.v[t->link].size
								    : 0;

		sum = n > UINT64_MAX - sum || names > UINT64_MAX - sum - n ? UINT64_MAX
									   : sum + n + names;
	}
	return sum;
}

struct collect {
	struct object *o; /* the symbols must lie in its text */
	size_t names;     /* bytes so far */
	size_t names_max; /* NAMES_FEW, and more by the size of the tables */
	VEC(struct object_symbol) symbols;
};

/* Returns how many bytes names may have when there is a table of so many bytes, too. */
static size_t names_limit(size_t now, uint64_t table)
{
	return table < (NAMES_MAX - now) / NAMES_TIMES ? now + table * NAMES_TIMES : NAMES_MAX;
}

static void allow_names(struct collect *c, const struct object *src, const struct section *table)
{
	if (table->link < src->sections.n)
		c->names_max = names_limit(c->names_max, src->sections.v[table->link].size);
}

/* Returns a name's length, 0 for a name that is not kept. */
static size_t name_length(struct collect *c, const char *name)
{
	size_t n;

	if (c->names >= NAMES_FEW + c->names_max)
		return 0;
	n = strnlen(name, LONGEST_NAME + 1);
	c->names += n;
	return n > LONGEST_NAME ? 0 : n;
}

static void add_symbol(void *arg, char *name, uint8_t info, uint16_t shndx, uint64_t value,
		       uint64_t size)
{
	struct collect *c = arg;
	uint8_t type = info & 15, bind = info >> 4;
	size_t len;
	char *at;

	if (shndx == SHN_UNDEF || shndx == SHN_ABS || !name[0])
		return;
	/* STT_NOTYPE: labels of hand-written assembly. "$x" and ".L" mark data and branches, not
	 * functions. */
	if (type != STT_FUNC && type != STT_GNU_IFUNC &&
	    (type != STT_NOTYPE || name[0] == '$' || !strncmp(name, ".L", 2)))
		return;
	if (!object_is_text(c->o, value))
		return;
	len = name_length(c, name);
	if (!len)
		return;
	at = memchr(name, '@', len);
	if (at && at != name)
		*at = 0; /* name@VERSION, name@@VERSION */
	if (size > UINT64_MAX - value)
		size = 0;
	vec_push(&c->symbols, (struct object_symbol){
				      .name = name,
				      .addr = value,
				      .size = size,
				      .is_func = type != STT_NOTYPE,
				      .is_ifunc = type == STT_GNU_IFUNC,
				      .is_global = bind != STB_LOCAL,
			      });
}

/* Notes that src was written to or truncated. Its symbols may then be of any version. */
static void note_change(struct collect *c, const struct object *src)
{
	if (c->o->changed || !object_was_written(src))
		return;
	c->o->changed = xstrdup(src->path);
	changed_add(src->path);
}

static bool collect_from(struct collect *c, const struct object *src, uint32_t type)
{
	const struct section *table = find_table(src, type);
	uint32_t before = c->symbols.n;
	size_t n = 0;
	char *str;

	if (table)
		allow_names(c, src, table);
	str = table ? each_symbol(src, table, add_symbol, c, &n) : NULL;

	if (str) {
		vec_push(&c->o->strings, str);
		c->o->string_bytes += n;
	}
	note_change(c, src);
	return c->symbols.n > before;
}

static bool has_crc(const struct object *o, uint32_t want)
{
	enum { AT_ONCE = 1 << 16 };
	cleanup_free uint8_t *buf = xmalloc(AT_ONCE);
	uLong crc = crc32(0, NULL, 0);
	uint64_t n;

	if (o->size > UINT32_MAX)
		return false;
	for (uint64_t at = 0; at < o->size; at += n) {
		n = o->size - at < AT_ONCE ? o->size - at : AT_ONCE;
		if (!image_read(o, at, n, buf))
			return false;
		crc = crc32(crc, buf, (uInt)n);
	}
	return crc == want;
}

bool image_is_debug_of(const struct object *debug, const uint8_t *id, uint32_t id_len,
		       const uint32_t *crc)
{
	if (id_len && debug->build_id_len)
		return debug->build_id_len == id_len && !memcmp(debug->build_id, id, id_len);
	return crc && has_crc(debug, *crc);
}

bool image_path_is_foreign(const char *path)
{
	return !strncmp(path, "/proc/", 6) && strncmp(path, "/proc/self/", 11) != 0;
}

bool image_trusts_neighbour(const struct stat *main, const struct object *debug)
{
	struct stat st;

	return object_stat(debug, &st) && !(st.st_mode & S_IWOTH) &&
	       (st.st_uid == main->st_uid || !st.st_uid || st.st_uid == geteuid());
}

/* Collects symbols of a separate debug file, if it is this object's by its build-id, or by the
 * checksum in the debuglink. beside: the file is in a folder that need not be root's. */
static bool collect_debug_path(struct collect *c, const char *path, const uint32_t *crc,
			       bool beside)
{
	struct object *o = c->o, *debug;
	struct err *e = object_open(path, &debug);
	struct stat main;
	bool found;

	if (err_drop(e))
		return false;
	found = (!beside || (object_stat(o, &main) && image_trusts_neighbour(&main, debug))) &&
		image_is_debug_of(debug, o->build_id, o->build_id_len, crc) &&
		collect_from(c, debug, SHT_SYMTAB);
	object_free(debug);
	return found;
}

/* Collects from /usr/lib/debug/.build-id/ab/cdef....debug. */
static bool collect_build_id(struct collect *c)
{
	const struct object *o = c->o;
	char path[64 + 2 * sizeof(o->build_id)];
	int n;

	if (o->build_id_len < 2)
		return false;
	n = sprintf(path, "/usr/lib/debug/.build-id/%02x/", o->build_id[0]);
	for (uint32_t i = 1; i < o->build_id_len; i++)
		n += sprintf(path + n, "%02x", o->build_id[i]);
	strcpy(path + n, ".debug");
	return collect_debug_path(c, path, NULL, false);
}

/* Returns the folder of o's file as its process sees it, without the prefix /proc/PID/root. */
static const char *folder_seen(const struct object *o)
{
	static const char root[] = "/root/";
	const char *p = o->path;

	if (!image_path_is_foreign(p))
		return p;
	p = strchr(p + 6, '/');
	return p && !strncmp(p, root, sizeof(root) - 1) ? p + sizeof(root) - 2 : "";
}

/* Collects by .gnu_debuglink: the name of the debug file, NUL, padding to 4 bytes, its checksum.
 * The file is beside the object, in .debug there, or in the same folder below /usr/lib/debug. In
 * another process's root anybody may have mounted the object beside a file of his own, so that only
 * /usr/lib/debug of this root counts then. */
static bool collect_debuglink(struct collect *c)
{
	const struct section *s = image_find(c->o, ".gnu_debuglink");
	const char *folder = folder_seen(c->o), *slash = strrchr(folder, '/');
	cleanup_free char *link = NULL;
	size_t n, len;
	uint32_t crc;

	if (!s || !slash)
		return false;
	link = (char *)image_section(c->o, s, &n);
	if (!link)
		return false;
	len = strnlen(link, n);
	if (!len || strchr(link, '/') || ((len + 4) & ~(size_t)3) + 4 > n)
		return false;
	memcpy(&crc, link + ((len + 4) & ~(size_t)3), 4);
	for (int i = folder == c->o->path ? 0 : 2; i < 3; i++) {
		cleanup_free char *path = xasprintf("%s%.*s/%s%s", i == 2 ? "/usr/lib/debug" : "",
						    (int)(slash - folder), folder,
						    i == 1 ? ".debug/" : "", link);

		if (strcmp(path, c->o->path) && collect_debug_path(c, path, &crc, i < 2))
			return true;
	}
	return false;
}

/* Collects from a debuginfod server, if the user has set one. libdw queries it, and keeps the
 * files. */
static bool collect_debuginfod(struct collect *c)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *path = NULL;
	struct dwarf_copies copies = { 0 };
	Dwarf_Addr bias;
	Dwfl_Module *m;
	bool found = false;
	Dwfl *d;

	if (!urls || !*urls || c->o->build_id_len < 2)
		return false;
	d = dwfl_begin(&dwarf_callbacks);
	if (!d)
		return false;
	dwfl_report_begin(d);
	m = dwarf_report(d, "", c->o->path);
	dwfl_report_end(d, NULL, NULL);
	if (m && dwarf_of_module(m, &bias, &copies))
		dwfl_module_info(m, NULL, NULL, NULL, NULL, NULL, NULL, &path);
	if (path)
		found = collect_debug_path(c, path, NULL, false);
	dwfl_end(d);
	dwarf_copies_free(&copies);
	return found;
}

static bool collect_debug_file(struct collect *c)
{
	if (c->o->fd < 0)
		return false;
	return collect_build_id(c) || collect_debuglink(c) || collect_debuginfod(c);
}

/* Unpacks an xz stream. Returns NULL when it is invalid or too large. */
static uint8_t *unpack_xz(const uint8_t *in, size_t n, size_t *ret_n)
{
	lzma_stream z = LZMA_STREAM_INIT;
	size_t cap = n < (MAX_DEBUGDATA >> 3) ? n * 4 + 4096 : MAX_DEBUGDATA;
	uint8_t *out = xmalloc(cap);
	lzma_ret r;

	if (lzma_stream_decoder(&z, LZMA_MEMORY, 0) != LZMA_OK) {
		free(out);
		return NULL;
	}
	z.next_in = in;
	z.avail_in = n;
	z.next_out = out;
	z.avail_out = cap;
	for (;;) {
		r = lzma_code(&z, LZMA_FINISH);
		if (r != LZMA_OK || z.avail_out || cap >= MAX_DEBUGDATA)
			break;
		out = xrealloc(out, cap * 2);
		z.next_out = out + cap;
		z.avail_out = cap;
		cap *= 2;
	}
	*ret_n = (size_t)z.total_out;
	lzma_end(&z);
	if (r == LZMA_STREAM_END)
		return out;
	free(out);
	return NULL;
}

static void collect_debugdata(struct collect *c)
{
	const struct section *s = image_find(c->o, ".gnu_debugdata");
	cleanup_free uint8_t *packed = NULL, *elf = NULL;
	struct object *mini;
	size_t npacked, n;

	if (!s)
		return;
	packed = image_section(c->o, s, &npacked);
	if (!packed)
		return;
	elf = unpack_xz(packed, npacked, &n);
	if (!elf)
		return;
	if (err_drop(object_open_memory(c->o->path, elf, n, &mini)))
		return;
	collect_from(c, mini, SHT_SYMTAB);
	object_free(mini);
}

/* Collects from the table of Go's runtime, which remains after strip(1). */
static void collect_go(struct collect *c)
{
	struct go_table t;

	if (!go_table_read(c->o, &t))
		return;
	c->names_max = names_limit(c->names_max, t.n);
	for (uint32_t i = 0; i < t.functions.n; i++)
		if (name_length(c, t.functions.v[i].name))
			vec_push(&c->symbols,
				 (struct object_symbol){
					 .name = t.functions.v[i].name,
					 .addr = t.functions.v[i].start,
					 .size = t.functions.v[i].end - t.functions.v[i].start,
					 .is_func = true,
				 });
	vec_push(&c->o->strings, (char *)t.data); /* keeps the names */
	note_change(c, c->o);
	t.data = NULL;
	go_table_fini(&t);
}

static int underscores(const char *s)
{
	return (int)strspn(s, "_");
}

/* Compares two names of one address. The name to show comes first. */
static int compare_rank(const struct object_symbol *a, const struct object_symbol *b)
{
	int d;

	if (a->is_func != b->is_func)
		return a->is_func ? -1 : 1;
	if (a->is_global != b->is_global)
		return a->is_global ? -1 : 1;
	d = underscores(a->name) - underscores(b->name);
	if (d)
		return d;
	d = (int)strlen(a->name) - (int)strlen(b->name);
	return d ? d : strcmp(a->name, b->name);
}

static int compare_addr(const void *pa, const void *pb)
{
	const struct object_symbol *a = pa, *b = pb;

	return COMPARE(a->addr, b->addr) ?: compare_rank(a, b);
}

/* Sections of text, by address. */
struct texts {
	VEC(struct section) v;
};

static int compare_section(const void *pa, const void *pb)
{
	const struct section *a = pa, *b = pb;

	return COMPARE(a->addr, b->addr);
}

static void texts_init(struct texts *t, const struct object *o)
{
	for (uint32_t i = 0; i < o->sections.n; i++) {
		const struct section *s = &o->sections.v[i];

		if ((s->flags & SHF_EXECINSTR) && s->size && s->size <= UINT64_MAX - s->addr)
			vec_push(&t->v, *s);
	}
	if (t->v.n)
		qsort(t->v.v, t->v.n, sizeof(*t->v.v), compare_section);
}

/* Returns the end of the section, or else the segment, that holds addr. */
static uint64_t text_end(const struct object *o, const struct texts *t, uint64_t addr)
{
	uint32_t lo = partition_point(t->v.n, i, t->v.v[i].addr <= addr);
	/* Sections do not overlap. */
	if (lo && addr - t->v.v[lo - 1].addr < t->v.v[lo - 1].size)
		return t->v.v[lo - 1].addr + t->v.v[lo - 1].size;
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];

		if (g->type == PT_LOAD && (g->flags & PF_X) && addr >= g->addr &&
		    addr - g->addr < g->memsz && g->memsz <= UINT64_MAX - g->addr)
			return g->addr + g->memsz;
	}
	return addr;
}

/* Sorts, drops duplicates, and extends symbols without a size to the next symbol. */
static void settle(struct object *o, struct object_symbol *s, uint32_t n)
{
	uint32_t m = 0;
	uint64_t next = UINT64_MAX, end = 0;
	struct texts texts = { 0 };

	if (n)
		qsort(s, n, sizeof(*s), compare_addr);
	for (uint32_t i = 0; i < n; i++) {
		struct object_symbol *last = m ? &s[m - 1] : NULL;

		if (!s[i].name[0])
			continue; /* it began at the '@' where a longer name was cut */
		if (last && last->addr == s[i].addr && !strcmp(last->name, s[i].name)) {
			if (!last->size)
				last->size = s[i].size;
			continue;
		}
		s[m++] = s[i];
	}
	texts_init(&texts, o);
	for (uint32_t i = m; i--;) {
		if (i + 1 < m && s[i + 1].addr != s[i].addr)
			next = s[i + 1].addr;
		if (s[i].size)
			continue;
		end = text_end(o, &texts, s[i].addr);
		s[i].size = (next < end ? next : end) - s[i].addr;
	}
	vec_fini(&texts.v);
	/* the list has up to twice the room, which no budget would know of */
	if (m)
		s = xrealloc(s, m * sizeof(*s));
	o->symbols = s;
	o->nsymbols = m;
	o->max_end = xcalloc(m + 1, sizeof(*o->max_end));
	end = 0;
	for (uint32_t i = 0; i < m; i++) {
		if (s[i].addr + s[i].size > end)
			end = s[i].addr + s[i].size;
		o->max_end[i] = end;
	}
}

const struct object_symbol *object_symbols(struct object *o, uint32_t *ret_n)
{
	struct collect c = { .o = o };

	if (!o->symbols_read) {
		o->symbols_read = true;
		if (!collect_from(&c, o, SHT_SYMTAB)) {
			collect_from(&c, o, SHT_DYNSYM);
			if (!collect_debug_file(&c)) {
				collect_debugdata(&c);
				collect_go(&c);
			}
		}
		settle(o, c.symbols.v, o->changed ? 0 : c.symbols.n);
	}
	*ret_n = o->nsymbols;
	return o->symbols;
}

const struct object_symbol *object_find_addr(struct object *o, uint64_t addr)
{
	const struct object_symbol *found = NULL;
	uint32_t n, lo;
	const struct object_symbol *s = object_symbols(o, &n);

	lo = partition_point(n, i, s[i].addr <= addr);
	/* s[lo - 1] is the last that starts at or before addr. Functions nest (cold parts,
	 * assembly). Choose the innermost that covers addr, of its aliases the first by rank, and a
	 * function before a label. */
	for (uint32_t i = lo; i-- && lo - i <= BACK_MAX && o->max_end[i] > addr;) {
		if (found && found->is_func && s[i].addr != found->addr)
			break;
		if (addr - s[i].addr >= s[i].size)
			continue;
		if (!found || (!found->is_func && s[i].is_func) ||
		    (s[i].addr == found->addr && s[i].is_func == found->is_func))
			found = &s[i];
	}
	return found;
}

static int compare_name(const void *pa, const void *pb)
{
	const struct object_symbol *a = *(const struct object_symbol *const *)pa;
	const struct object_symbol *b = *(const struct object_symbol *const *)pb;
	int d = strcmp(a->name, b->name);

	if (d)
		return d;
	d = compare_rank(a, b);
	return d ? d : (a->addr > b->addr) - (a->addr < b->addr);
}

const struct object_symbol *const *object_find_names(struct object *o, const char *name,
						     uint32_t *ret_n)
{
	uint32_t n, lo, end;
	const struct object_symbol *s = object_symbols(o, &n);

	if (!o->by_name) {
		o->by_name = xcalloc(n + 1, sizeof(*o->by_name));
		for (uint32_t i = 0; i < n; i++)
			o->by_name[i] = &s[i];
		if (n)
			qsort(o->by_name, n, sizeof(*o->by_name), compare_name);
	}
	lo = partition_point(n, i, strcmp(o->by_name[i]->name, name) < 0);
	/* thousands may have the name, and whoever asks may ask for each of them */
	end = partition_point(n, i, strcmp(o->by_name[i]->name, name) <= 0);
	*ret_n = end - lo;
	return o->by_name + lo;
}

const struct object_symbol *object_find_name(struct object *o, const char *name)
{
	uint32_t n;
	const struct object_symbol *const *s = object_find_names(o, name, &n);

	return n ? s[0] : NULL;
}

/* The dynamic table is far smaller, and has what a program exports. */
static const uint32_t value_tables[] = { SHT_DYNSYM, SHT_SYMTAB };

static bool has_value(uint8_t info, uint16_t shndx)
{
	uint8_t type = info & 15;

	return shndx != SHN_UNDEF && type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

struct wanted {
	const char *name;
	size_t len;
	uint64_t addr;
	bool found;
};

static void match_value(void *arg, char *name, uint8_t info, uint16_t shndx, uint64_t value,
			uint64_t size)
{
	struct wanted *w = arg;

	if (w->found || !has_value(info, shndx))
		return;
	if (strncmp(name, w->name, w->len) || (name[w->len] && name[w->len] != '@'))
		return;
	w->addr = value;
	w->found = true;
}

static void add_value(struct object *o, const char *name, size_t n, uint64_t addr)
{
	vec_push(&o->values, (struct symbol_value){ hash_bytes(name, n), addr, o->values.n });
}

/* Lists a symbol by its name, and by the part before its version. */
static void list_value(void *arg, char *name, uint8_t info, uint16_t shndx, uint64_t value,
		       uint64_t size)
{
	struct collect *c = arg;
	const size_t n = has_value(info, shndx) ? name_length(c, name) : 0;
	const char *at = memchr(name, '@', n);

	if (n)
		add_value(c->o, name, n, value);
	if (at && at != name)
		add_value(c->o, name, (size_t)(at - name), value);
}

static int compare_value(const void *pa, const void *pb)
{
	const struct symbol_value *a = pa, *b = pb;

	return COMPARE(a->name, b->name) ?: COMPARE(a->order, b->order);
}

static void list_values(struct object *o)
{
	struct collect c = { .o = o };
	size_t n;

	for (uint32_t i = 0; i < ARRAY_SIZE(value_tables); i++) {
		const struct section *table = find_table(o, value_tables[i]);

		if (!table)
			continue;
		allow_names(&c, o, table);
		free(each_symbol(o, table, list_value, &c, &n));
	}
	if (o->values.n)
		qsort(o->values.v, o->values.n, sizeof(*o->values.v), compare_value);
}

/* Finds a value in the list. A hostile file may ask for a hundred thousand, in arguments of its
 * probes, and V8's reader asks for hundreds. */
static bool listed_value(struct object *o, const char *name, uint64_t *ret_addr)
{
	const uint64_t hash = hash_bytes(name, strlen(name));
	uint32_t i;

	if (!o->values_listed && !object_is_open(o))
		return false;
	if (!o->values_listed)
		list_values(o);
	o->values_listed = true;
	i = partition_point(o->values.n, k, o->values.v[k].name < hash);
	if (i == o->values.n || o->values.v[i].name != hash)
		return false;
	*ret_addr = o->values.v[i].addr;
	return true;
}

bool object_symbol_value(struct object *o, const char *name, uint64_t *ret_addr)
{
	struct wanted w = { .name = name, .len = strlen(name) };
	size_t n;

	if (o->values_asked == ASKED_FEW)
		return listed_value(o, name, ret_addr);
	o->values_asked++;
	for (uint32_t i = 0; i < ARRAY_SIZE(value_tables) && !w.found; i++) {
		const struct section *table = find_table(o, value_tables[i]);

		if (table)
			free(each_symbol(o, table, match_value, &w, &n));
	}
	if (w.found)
		*ret_addr = w.addr;
	return w.found;
}

void image_symbols_fini(struct object *o)
{
	for (uint32_t i = 0; i < o->strings.n; i++)
		free(o->strings.v[i]);
	vec_fini(&o->strings);
	free(o->symbols);
	free(o->max_end);
	free(o->by_name);
	vec_fini(&o->values);
}
