/* Finds the object files of a traced process: the loaded ones, and libraries that it may load
 * later. */
#define _GNU_SOURCE
#include "probe/process.h"
#include "program/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/procmem.h"

enum {
	OBJECTS_MAX =
		4096, /* files of code of a process: their names are compared with each other */
	LINKS_MAX = 300000, /* names that are tried as links, of all files together */
};

struct collect {
	struct probe_set *ps;
	pid_t pid;
	uint64_t main_dev, main_inode;
	bool main_known;
	VEC(struct process_object) list;
};

/* Returns the first word of the command line, if it is a path. */
static const char *started_as(struct collect *c)
{
	cleanup_free char *path = xasprintf("/proc/%d/cmdline", (int)c->pid), *words = NULL;

	err_free(procmem_file(c->pid, path, &words, NULL));
	return words && strchr(words, '/') ? arena_strdup(&c->ps->arena, words) : NULL;
}

/* Adds the file at path unless the list has it already, because /lib and /usr/lib are often the
 * same. */
static void add_object(struct collect *c, const char *path, const char *seen, const char *base,
		       struct object *o)
{
	struct process_object po = { .object = o, .pid = c->pid, .ps = c->ps };
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	for (uint32_t i = 0; i < c->list.n; i++) {
		if (c->list.v[i].dev == st.st_dev && c->list.v[i].inode == st.st_ino)
			return;
	}
	po.dev = st.st_dev;
	po.inode = st.st_ino;
	po.path = arena_strdup(&c->ps->arena, path);
	po.name = arena_strdup(&c->ps->arena, base);
	po.seen = arena_strdup(&c->ps->arena, seen);
	po.is_main = c->main_known ? st.st_dev == c->main_dev && st.st_ino == c->main_inode
				   : object_is_executable(o);
	if (po.is_main)
		po.started = started_as(c);
	vec_push(&c->list, po);
}

static void add_mapping(struct collect *c, const struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	cleanup_free char *path = NULL, *seen = NULL;
	struct object *o = symbols_object(c->ps->symbols, c->pid, m);
	size_t len;

	if (!o)
		return;
	path = mapping_open_path(c->pid, m);
	seen = xstrdup(m->path);
	len = strlen(seen);
	if (len > sizeof(deleted) - 1 && !strcmp(seen + len - (sizeof(deleted) - 1), deleted))
		seen[len - (sizeof(deleted) - 1)] = 0;
	if (path)
		add_object(c, path, seen, path_base(seen), o);
}

static struct err *add_mapped(struct collect *c)
{
	struct mappings maps;
	struct err *e = mappings_read(c->pid, &maps);

	if (e)
		return e;
	for (uint32_t i = 0; i < maps.n && c->list.n <= OBJECTS_MAX; i++)
		if (maps.v[i].exec && maps.v[i].path[0] == '/')
			add_mapping(c, &maps.v[i]);
	if (c->list.n > OBJECTS_MAX) {
		c->list.n = OBJECTS_MAX;
		process_note(c->ps, xasprintf("process %d maps more than %d files of code: those "
					      "at the highest addresses are left out",
					      (int)c->pid, OBJECTS_MAX));
	}
	mappings_free(&maps);
	return NULL;
}

bool process_object_is_linker(const struct process_object *po)
{
	return !strncmp(po->name, "ld-linux", 8) || !strncmp(po->name, "ld-musl", 7) ||
	       !strncmp(po->name, "ld-2.", 5);
}

static void find_main(struct collect *c)
{
	char exe[64];
	struct stat st;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)c->pid);
	if (stat(exe, &st) < 0)
		return;
	c->main_known = true;
	c->main_dev = st.st_dev;
	c->main_inode = st.st_ino;
}

bool process_object_mapped(struct probe_set *ps, pid_t pid, const struct mapping *m,
			   struct process_object *ret)
{
	struct collect c = { .ps = ps, .pid = pid };
	bool found;

	find_main(&c);
	add_mapping(&c, m);
	found = c.list.n;
	if (found)
		*ret = c.list.v[0];
	vec_fini(&c.list);
	return found;
}

/* Returns true when the process has this one's user. The file of a program chooses its dynamic
 * linker, so a command that was started as another user would choose what this process's user
 * runs. */
static bool is_own_user(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &st) && st.st_uid == geteuid();
}

/* Runs `interp --list program` and returns its output, malloc()ed; NULL on failure. The dynamic
 * linker maps the program's libraries by the rules that will apply (RUNPATH, LD_LIBRARY_PATH,
 * ld.so.cache, preloads) and runs none of their code. */
static char *list_libraries(const char *interp, const char *program)
{
	char *argv[] = { (char *)interp, "--list", (char *)program, NULL };
	struct child c = { .file = interp, .argv = argv, .in = CHILD_NULL, .err = CHILD_NULL };
	VEC(char) out = { 0 };
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return NULL;
	c.out = fds[1];
	pid = child_start(&c);
	close(fds[1]);
	while (pid > 0) {
		vec_reserve(&out, 4096);
		n = read(fds[0], out.v + out.n, 4095);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out.n += (uint32_t)n;
	}
	close(fds[0]);
	if (pid > 0)
		child_wait(pid);
	if (!out.n) {
		vec_fini(&out);
		return NULL;
	}
	out.v[out.n] = 0;
	return out.v;
}

/* Adds the objects of the list, whose lines are
 * \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f...)
 * \t/lib64/ld-linux-x86-64.so.2 (0x...) */
static void add_listed(struct collect *c, char *text)
{
	for (char *line = text, *next; line && *line; line = next) {
		char *path, *end;
		struct object *o;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		path = strstr(line, " => ");
		path = path ? path + 4 : line + strspn(line, "\t ");
		end = strstr(path, " (0x");
		if (path[0] != '/' || !end)
			continue;
		*end = 0;
		o = symbols_object_at(c->ps->symbols, path);
		if (o)
			add_object(c, path, path, path_base(path), o);
	}
}

static void add_future(struct collect *c)
{
	for (uint32_t i = 0; i < c->list.n; i++) {
		const struct process_object *po = &c->list.v[i];
		const char *interp = po->is_main ? object_interp(po->object) : NULL;
		cleanup_free char *text = NULL;

		/* Only dynamic linkers, whose names begin with "ld", understand --list. */
		if (!interp || strncmp(path_base(interp), "ld", 2))
			continue;
		text = list_libraries(interp, po->path);
		if (text)
			add_listed(c, text);
		return;
	}
}

struct err *process_objects(struct probe_set *ps, pid_t pid, const struct process_objects **ret)
{
	struct collect c = { .ps = ps, .pid = pid };
	struct probe_target *target = NULL;
	struct process_objects *objects;
	struct err *e;

	for (uint32_t i = 0; i < ps->targets.n; i++) {
		if (ps->targets.v[i].pid == pid)
			target = &ps->targets.v[i];
	}
	if (target && target->objects) {
		*ret = target->objects;
		return NULL;
	}
	find_main(&c);
	e = add_mapped(&c);
	if (e)
		return e;
	if (target && target->is_command && is_own_user(pid))
		add_future(&c);
	objects = arena_new(&ps->arena, struct process_objects);
	objects->n = c.list.n;
	objects->v = arena_array(&ps->arena, struct process_object, c.list.n + 1);
	if (c.list.n)
		memcpy(objects->v, c.list.v, c.list.n * sizeof(*c.list.v));
	vec_fini(&c.list);
	if (target)
		target->objects = objects;
	*ret = objects;
	return NULL;
}

void process_objects_forget(struct probe_set *ps, pid_t pid)
{
	for (uint32_t i = 0; i < ps->targets.n; i++)
		if (ps->targets.v[i].pid == pid)
			ps->targets.v[i].objects = NULL;
}

bool process_unwinds(const struct process_objects *objects)
{
	static const char *const unwinders[] = { "libgcc_s.so", "libunwind.so", "libc++abi.so" };

	for (uint32_t i = 0; i < objects->n; i++) {
		const struct process_object *po = &objects->v[i];
		uint64_t addr;
		size_t n;

		for (size_t k = 0; k < ARRAY_SIZE(unwinders); k++)
			if (!strncmp(po->name, unwinders[k], strlen(unwinders[k])))
				return true;
		if (po->is_main) { /* which may have the unwinder in it */
			cleanup_free uint8_t *handlers =
				object_section(po->object, ".gcc_except_table", &addr, &n);

			if (handlers)
				return true;
		}
	}
	return false;
}

/* Is pattern the name up to ".so", or up to a part of the version behind ".so"? */
static bool is_stem(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	if (!n || strncmp(name, pattern, n))
		return false;
	return !strncmp(name + n, ".so", 3) || (strstr(pattern, ".so") && name[n] == '.');
}

/* Returns true when the process reaches this file by path, which may be another name of it or a
 * link. */
static bool is_same_file(const struct process_object *po, const char *path)
{
	cleanup_free char *there =
		xasprintf("/proc/%d/%s%s", (int)po->pid, path[0] == '/' ? "root" : "cwd/", path);
	struct stat st;

	return !stat(there, &st) && st.st_dev == po->dev && st.st_ino == po->inode;
}

/* Returns true when name is a link to this file: beside the file, or the link by which the process
 * was started. */
static bool is_link_to(const struct process_object *po, const char *name)
{
	const char *slash = strrchr(po->seen, '/');
	cleanup_free char *beside =
		slash ? xasprintf("%.*s/%s", (int)(slash - po->seen), po->seen, name) : NULL;

	if (beside && is_same_file(po, beside))
		return true;
	return po->started && !strcmp(path_base(po->started), name) &&
	       is_same_file(po, po->started);
}

/* Looks once for each file and name. Each of thousands of files may be compared with the names of
 * all others, for each probe. */
static bool is_known_link(const struct process_object *po, const char *name)
{
	enum { NOT_KNOWN, NO, YES };
	cleanup_free char *key = xasprintf("%d:%llx:%llx:%s", (int)po->pid,
					   (unsigned long long)po->dev,
					   (unsigned long long)po->inode, name);
	struct hash *links = &po->ps->links;
	uint64_t *known = hash_get(links, key, strlen(key));

	if (!known && links->n >= LINKS_MAX) {
		process_note(po->ps, xstrdup("too many files and names: links to libraries are "
					     "not looked for"));
		return false;
	}
	known = known ?: hash_put(links, key, strlen(key), NULL);
	if (!*known)
		*known = is_link_to(po, name) ? YES : NO;
	return *known == YES;
}

bool process_object_matches(const struct process_object *po, const char *pattern)
{
	const char *soname = object_soname(po->object);

	if (glob_match(pattern, po->name))
		return true;
	if (po->is_main && glob_match(pattern, "a.out"))
		return true;
	if (pattern[0] == '/')
		return glob_match(pattern, po->seen) || glob_match(pattern, po->path) ||
		       (!glob_is_pattern(pattern) && is_same_file(po, pattern));
	if (glob_is_pattern(pattern))
		return soname && glob_match(pattern, soname);
	if (strchr(pattern, '/'))
		return !strcmp(pattern, po->path);
	return is_stem(po->name, pattern) ||
	       (soname && (!strcmp(soname, pattern) || is_stem(soname, pattern))) ||
	       (*pattern && is_known_link(po, pattern));
}

/* --- libraries that are loaded later --- */

/* Returns the path by which descry opens the process's file: through the process's root when this
 * root is another. malloc()ed; NULL: there is no such file. */
static char *path_in(pid_t pid, const char *path)
{
	char *there = xasprintf("/proc/%d/root%s", (int)pid, path);
	struct stat a, b;

	if (stat(there, &a) || !S_ISREG(a.st_mode)) {
		free(there);
		return NULL;
	}
	if (!stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
		free(there);
		return xstrdup(path);
	}
	return there;
}

/* The most files that one pattern takes. */
enum {
	LIBRARIES_MAX = 4096,
	/* of one search; a process names what it likes in LD_LIBRARY_PATH */
	DIRS_MAX = 1024,
	ENTRIES_MAX = 200000,
};

struct library_search {
	struct probe_set *ps;
	pid_t pid;
	const char *pattern;
	bool all; /* pattern has wildcards, so the search continues after the first file */
	struct process_object found[LIBRARIES_MAX];
	uint32_t n;
	struct library_dir {
		dev_t dev;
		ino_t inode;
	} dirs[DIRS_MAX]; /* that were searched */
	uint32_t ndirs, tried, nentries;
	bool cut; /* a limit ended the search */
};

/* Adds the file at path, if it is an object. Returns true when the search is over. */
static bool take_file(struct library_search *s, const char *path)
{
	cleanup_free char *open_path = s->n < LIBRARIES_MAX ? path_in(s->pid, path) : NULL;
	struct object *o = open_path ? symbols_object_at(s->ps->symbols, open_path) : NULL;
	struct stat st;

	if (!o || stat(open_path, &st))
		return s->n == LIBRARIES_MAX;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->found[i].dev == st.st_dev && s->found[i].inode == st.st_ino)
			return false;
	s->found[s->n++] = (struct process_object){
		.path = arena_strdup(&s->ps->arena, open_path),
		.name = arena_strdup(&s->ps->arena, path_base(path)),
		.seen = arena_strdup(&s->ps->arena, path),
		.pid = s->pid,
		.ps = s->ps,
		.object = o,
		.dev = st.st_dev,
		.inode = st.st_ino,
	};
	return !s->all;
}

/* Returns true when the directory is to be searched: it was not yet, and the limits permit it. */
static bool is_new_dir(struct library_search *s, const char *path)
{
	struct stat st;

	if (s->tried == DIRS_MAX || s->nentries >= ENTRIES_MAX) {
		s->cut = true;
		return false;
	}
	s->tried++;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	for (uint32_t i = 0; i < s->ndirs; i++)
		if (s->dirs[i].dev == st.st_dev && s->dirs[i].inode == st.st_ino)
			return false;
	s->dirs[s->ndirs++] = (struct library_dir){ st.st_dev, st.st_ino };
	return true;
}

static void note_cut(const struct library_search *s)
{
	if (s->cut)
		process_note(
			s->ps,
			xasprintf("process %d: the search for \"%s\" ends after %d directories or "
				  "%d files in them: name the library by its path",
				  (int)s->pid, s->pattern, DIRS_MAX, ENTRIES_MAX));
}

/* Takes the file of that name in a directory, else a file whose stem is the pattern: libz.so.1 for
 * libz. */
static bool search_dir(struct library_search *s, const char *dir, size_t len)
{
	cleanup_free char *exact = xasprintf("%.*s/%s", (int)len, dir, s->pattern), *there = NULL;
	bool over = false;
	struct dirent *d;
	DIR *list;

	if (!len || dir[0] != '/')
		return false;
	there = xasprintf("/proc/%d/root%.*s", (int)s->pid, (int)len, dir);
	if (!is_new_dir(s, there))
		return false;
	if (!s->all && take_file(s, exact))
		return true;
	list = opendir(there);
	while (list && !over && s->nentries < ENTRIES_MAX && (d = readdir(list))) {
		s->nentries++;
		if (s->all ? strstr(d->d_name, ".so") && glob_match(s->pattern, d->d_name)
			   : is_stem(d->d_name, s->pattern)) {
			cleanup_free char *path = xasprintf("%.*s/%s", (int)len, dir, d->d_name);

			over = take_file(s, path);
		}
	}
	if (list)
		closedir(list);
	return over;
}

static bool search_list(struct library_search *s, const char *dirs)
{
	for (size_t n; *dirs; dirs += n + (dirs[n] != 0)) {
		n = strcspn(dirs, ":;");
		if (search_dir(s, dirs, n))
			return true;
	}
	return false;
}

/* Searches the process's LD_LIBRARY_PATH. The environment's entries end in NUL. */
static bool search_environment(struct library_search *s)
{
	static const char name[] = "LD_LIBRARY_PATH=";
	char file[64];
	char *text = NULL;
	bool found = false;
	size_t n = 0;

	snprintf(file, sizeof(file), "/proc/%d/environ", (int)s->pid);
	if (err_drop(procmem_file(s->pid, file, &text, &n)))
		return false;
	for (size_t at = 0; at < n && !found; at += strlen(text + at) + 1)
		if (!strncmp(text + at, name, sizeof(name) - 1)) {
			found = search_list(s, text + at + sizeof(name) - 1);
			break; /* the dynamic linker, too, takes the first */
		}
	free(text);
	return found;
}

static void search(struct library_search *s, const struct process_objects *objects)
{
	static const char usual[] =
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"
		"/usr/local/lib/x86_64-linux-gnu:/usr/local/lib";

	if (search_environment(s) ||
	    (getenv("LD_LIBRARY_PATH") && search_list(s, getenv("LD_LIBRARY_PATH"))))
		return;
	/* Searches the directories of its loaded objects, because plugins often lie beside
	 * libraries or the program. */
	for (uint32_t i = 0; i < objects->n; i++) {
		const char *path = objects->v[i].seen, *slash = strrchr(path, '/');

		if (slash && search_dir(s, path, (size_t)(slash - path)))
			return;
	}
	(void)search_list(s, usual);
}

/* Searches the directories where the java launcher finds its JVM, from that of the program, the
 * first len bytes of path. */
static void search_jvm(struct library_search *s, const char *path, size_t len)
{
	static const char *const dirs[] = { "lib/server", "lib/amd64/server",
					    "jre/lib/amd64/server" };

	if (len < 4 || strncmp(path + len - 4, "/bin", 4))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *dir = xasprintf("%.*s%s", (int)(len - 3), path, dirs[i]);

		(void)search_dir(s, dir, strlen(dir));
	}
}

/* Searches the places of a program's own plugins: LD_LIBRARY_PATH, the program's directory, and its
 * working directory. */
static void search_near(struct library_search *s, const struct process_objects *objects)
{
	cleanup_free char *link = xasprintf("/proc/%d/cwd", (int)s->pid);
	char dir[4096];
	ssize_t n = readlink(link, dir, sizeof(dir));

	if (search_environment(s) ||
	    (getenv("LD_LIBRARY_PATH") && search_list(s, getenv("LD_LIBRARY_PATH"))))
		return;
	for (uint32_t i = 0; i < objects->n; i++) {
		const char *path = objects->v[i].seen, *slash = strrchr(path, '/');

		if (!objects->v[i].is_main || !slash)
			continue;
		if (search_dir(s, path, (size_t)(slash - path)))
			return;
		search_jvm(s, path, (size_t)(slash - path));
	}
	if (n > 0)
		(void)search_dir(s, dir, (size_t)n);
}

void process_libraries_near(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
			    void (*found)(void *arg, const struct process_object *po), void *arg)
{
	struct library_search *s = xcalloc(1, sizeof(*s));

	*s = (struct library_search){ .ps = ps, .pid = pid, .pattern = "*.so*", .all = true };
	search_near(s, objects);
	note_cut(s);
	for (uint32_t i = 0; i < s->n; i++)
		found(arg, &s->found[i]);
	free(s);
}

void process_libraries(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
		       const char *pattern,
		       void (*found)(void *arg, const struct process_object *po), void *arg)
{
	struct library_search *s;
	const char *slash = strrchr(pattern, '/');

	if (!*pattern || (slash && pattern[0] != '/') ||
	    (!slash && strncmp(pattern, "lib", 3) && !strstr(pattern, ".so")))
		return;
	s = xcalloc(1, sizeof(*s));
	*s = (struct library_search){ .ps = ps,
				      .pid = pid,
				      .pattern = slash ? slash + 1 : pattern,
				      .all = glob_is_pattern(pattern) };
	if (!slash)
		search(s, objects);
	else if (!s->all)
		(void)take_file(s, pattern);
	else if (!glob_is_pattern(arena_strndup(&ps->arena, pattern, (size_t)(slash - pattern))))
		(void)search_dir(s, pattern, (size_t)(slash - pattern));
	note_cut(s);
	for (uint32_t i = 0; i < s->n; i++)
		found(arg, &s->found[i]);
	free(s);
}

static bool is_place(const struct probe *p, const struct process_object *po, uint64_t offset)
{
	return p->offset == offset && p->object && !strcmp(p->object, po->path);
}

struct probe *process_add_probe(struct probe_set *ps, const struct provider *pv, pid_t pid,
				const struct process_object *po, const char *prov, const char *func,
				const char *name, enum attach_kind kind, uint64_t offset,
				bool *ret_new)
{
	struct probe *first = probe_add(ps, pv, 0, prov, po->name, func, name, ret_new), *p = first;

	if (!*ret_new && !is_place(first, po, offset)) {
		cleanup_free char *key = xasprintf("%s:%s:%s:%s\1%llx\1%s", prov, po->name, func,
						   name, (unsigned long long)offset, po->path);
		uint64_t *slot = hash_put(&ps->by_key, key, strlen(key), ret_new);

		if (!*ret_new)
			return ps->all.v[*slot - 1];
		p = arena_new(&ps->arena, struct probe);
		p->id = PROBE_ID_DYNAMIC + ps->ndynamic++;
		p->provider = pv;
		p->prov = first->prov;
		p->mod = first->mod;
		p->func = first->func;
		p->name = first->name;
		p->thread_arg = -1;
		vec_push(&ps->all, p);
		*slot = ps->all.n;
	}
	if (*ret_new) {
		p->kind = kind;
		p->object = po->path;
		p->file = po->object;
		p->offset = offset;
		p->pid = pid;
	}
	return p;
}

const char *process_price(enum uprobe_class class, enum attach_kind kind)
{
	bool ret = kind == ATTACH_URETPROBE;

	switch (class) {
	case UPROBE_EMULATED:
		return ret ? "kernel uretprobe, entry emulated: about 0.83 us a hit"
			   : "kernel uprobe, emulated: about 0.53 us a hit";
	case UPROBE_NOP5:
		return ret ? "kernel uretprobe on a 5-byte nop: about 0.53 us a hit where the kernel turns it into a call"
			   : "kernel uprobe on a 5-byte nop: about 0.26 us a hit where the kernel turns it into a call";
	case UPROBE_STEPPED:
		return ret ? "kernel uretprobe, entry single-stepped: about 4.1 us a hit"
			   : "kernel uprobe, single-stepped: about 3.8 us a hit";
	case UPROBE_REFUSED: break;
	}
	return NULL;
}

void process_add_event(struct process_match *m, const struct process_object *po,
		       const struct object_symbol *f, const struct process_event *ev)
{
	const char *reason = NULL;
	enum uprobe_class class;
	struct probe *p;
	uint64_t offset;
	uint8_t code[16];
	uint32_t len;
	bool is_new;

	if (!glob_match(m->pd->func, f->name) ||
	    !object_addr_to_offset(po->object, f->addr, &offset))
		return;
	p = process_add_probe(m->ps, m->pv, m->pid, po, m->prov, f->name, ev->name, ev->kind,
			      offset, &is_new);
	if (is_new) {
		class = uprobe_classify(code, object_read(po->object, f->addr, code, sizeof(code)),
					&len, &reason);
		p->addr = f->addr;
		p->priv = ev->priv;
		p->filter = ev->filter;
		if (class == UPROBE_REFUSED)
			p->unavailable = reason;
		p->note = ev->note ? arena_printf(&m->ps->arena, "%s; %s",
						  process_price(class, ev->kind), ev->note)
				   : process_price(class, ev->kind);
	}
	m->found(m->arg, p);
}

struct text *process_text(struct probe_set *ps, struct object *o)
{
	struct probe_text *at = &ps->texts[ps->next_text];

	for (uint32_t i = 0; i < PROBE_TEXTS; i++)
		if (ps->texts[i].object == o)
			return ps->texts[i].text;
	ps->next_text = (ps->next_text + 1) % PROBE_TEXTS;
	text_free(at->text);
	*at = (struct probe_text){ .object = o };
	(void)err_drop(text_open(o, &at->text));
	return at->text;
}

void process_note(struct probe_set *ps, char *text)
{
	if (remarks_take(&ps->remarks, text))
		vec_push(&ps->notes, text);
	else
		free(text);
}

struct err *process_match_each(struct process_match *m, struct err *(*one)(struct process_match *m))
{
	const int letters = (int)strlen(m->pv->name);
	const char *pattern = m->pd->prov;
	const char *digits = pattern + strcspn(pattern, "0123456789");
	const char *number = glob_is_pattern(pattern)            ? digits
			     : strlen(pattern) > (size_t)letters ? pattern + letters
								 : "";
	struct err *e = NULL;

	if (*number && !number[strspn(number, "0123456789")]) {
		unsigned long pid = strtoul(number, NULL, 10);

		if (pid == 0 || pid > INT32_MAX)
			return err_new(ESRCH, "no process %s", number);
		m->pid = (pid_t)pid;
		snprintf(m->prov, sizeof(m->prov), "%.*s%d", letters, m->pv->name, (int)pid);
		return one(m);
	}
	for (uint32_t i = 0; i < m->ps->targets.n && !e; i++) {
		m->pid = m->ps->targets.v[i].pid;
		snprintf(m->prov, sizeof(m->prov), "%.*s%d", letters, m->pv->name, (int)m->pid);
		if (glob_match(pattern, m->prov))
			e = one(m);
	}
	return e;
}
