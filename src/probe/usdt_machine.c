/* The objects with USDT probes of all processes of the machine, for descriptions that name no
 * process: `sh*:::`.
 *
 * A script may have ten such descriptions, and a machine a thousand processes. So descry reads the
 * machine once for each probe set. It opens a file once, however many processes map it, reads no
 * symbols, closes the file, and keeps the names of its providers. The symbols own the objects of
 * probes, and open those that a description matches. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/procdir.h"
#include "probe/process.h"
#include "probe/usdt.h"

/* The providers of a file that has probes. */
struct file {
	const char **providers;
	uint32_t n;
	pid_t pid; /* the last process that was seen to map it */
};

/* A process that maps such a file, by the first executable mapping of it. */
struct mapper {
	pid_t pid;
	const struct file *file;
	struct mapping mapping;
};

/* In the order of the processes, and of the mappings in each. */
struct usdt_machine {
	struct mapper *mappers;
	uint32_t n;
};

struct reading {
	struct arena *arena;
	pid_t pid;         /* at hand */
	struct hash names; /* "DEV:INODE:PATH" of a mapping -> struct seen */
	struct hash files; /* device and inode -> struct file; NULL: it has no probes */
	VEC(struct mapper) mappers;
};

/* What is known of a file by one of its names. The path may lead nowhere in one process, and to the
 * file in another. */
struct seen {
	bool opened;
	pid_t tried;       /* the last process through which descry tried to open it */
	struct file *file; /* NULL: it has no probes */
};

/* Returns the providers of the file's probes, each once; NULL when it has no probes. */
static struct file *read_providers(struct reading *r, struct object *o)
{
	uint32_t n;
	const struct object_usdt *u = object_usdt_names(o, &n);
	VEC(const char *) list = { 0 };
	struct hash known = { 0 };
	struct file *f = NULL;

	for (uint32_t i = 0; i < n; i++) {
		bool is_new;

		(void)hash_put(&known, u[i].provider, strlen(u[i].provider), &is_new);
		if (is_new)
			vec_push(&list, arena_strdup(r->arena, u[i].provider));
	}
	if (list.n) {
		f = arena_new(r->arena, struct file);
		f->n = list.n;
		f->providers = arena_array(r->arena, const char *, list.n);
		memcpy(f->providers, list.v, list.n * sizeof(*list.v));
	}
	hash_fini(&known);
	vec_fini(&list);
	return f;
}

/* Reads the file at path, unless it was read by another name. Returns false when it is no
 * object. */
static bool read_file(struct reading *r, const char *path, struct file **ret)
{
	struct object *o;
	struct stat st;
	uint64_t *file;
	bool is_new;

	if (err_drop(object_open(path, &o)))
		return false;
	if (!object_stat(o, &st)) {
		object_free(o);
		return false;
	}
	file = hash_put(&r->files, (const uint64_t[]){ st.st_dev, st.st_ino }, 2 * sizeof(uint64_t),
			&is_new);
	if (is_new)
		*file = (uintptr_t)read_providers(r, o);
	object_free(o);
	*ret = (struct file *)(uintptr_t)*file;
	return true;
}

/* Returns the mapped file, or NULL when it has no probes or cannot be read. */
static struct file *file_of(struct reading *r, const struct mapping *m)
{
	cleanup_free char *name = xasprintf("%x:%x:%llx:%s", m->dev_major, m->dev_minor,
					    (unsigned long long)m->inode, m->path);
	cleanup_free char *path = NULL;
	uint64_t *slot = hash_put(&r->names, name, strlen(name), NULL);
	struct seen *seen = (struct seen *)(uintptr_t)*slot;

	if (!seen) {
		seen = arena_new(r->arena, struct seen);
		*slot = (uintptr_t)seen;
	}
	if (seen->opened || seen->tried == r->pid)
		return seen->file;
	path = mapping_open_path(r->pid, m);
	seen->opened = path && read_file(r, path, &seen->file);
	seen->tried = r->pid;
	return seen->file;
}

static void read_process(struct reading *r)
{
	struct mappings maps;

	if (err_drop(mappings_read(r->pid, &maps)))
		return;
	for (uint32_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];
		struct file *f = m->exec && m->path[0] == '/' ? file_of(r, m) : NULL;
		struct mapper *mapper;

		if (!f || f->pid == r->pid)
			continue;
		f->pid = r->pid;
		mapper = vec_add(&r->mappers);
		*mapper = (struct mapper){ .pid = r->pid, .file = f, .mapping = *m };
		mapper->mapping.path = arena_strdup(r->arena, m->path);
	}
	mappings_free(&maps);
}

/* Reads every process that descry may read, except descry itself. Ignores a process that cannot be
 * read, because processes begin and end meanwhile. */
static struct usdt_machine *read_machine(struct arena *arena)
{
	cleanup_dir DIR *dir = opendir("/proc");
	struct usdt_machine *machine = arena_new(arena, struct usdt_machine);
	struct reading r = { .arena = arena };

	while (procdir_next(dir, &r.pid))
		if (r.pid != getpid())
			read_process(&r);
	machine->n = r.mappers.n;
	machine->mappers = arena_array(arena, struct mapper, r.mappers.n);
	if (r.mappers.n)
		memcpy(machine->mappers, r.mappers.v, r.mappers.n * sizeof(*r.mappers.v));
	hash_fini(&r.names);
	hash_fini(&r.files);
	vec_fini(&r.mappers);
	return machine;
}

static bool has_provider(const struct mapper *m, const char *pattern)
{
	for (uint32_t i = 0; i < m->file->n; i++) {
		cleanup_free char *prov = xasprintf("%s%d", m->file->providers[i], (int)m->pid);

		if (glob_match(pattern, prov))
			return true;
	}
	return false;
}

void usdt_machine_match(struct probe_set *ps, const char *prov_pattern,
			void (*found)(void *arg, const struct process_object *po), void *arg)
{
	if (!ps->machine)
		ps->machine = read_machine(&ps->arena);
	for (uint32_t i = 0; i < ps->machine->n; i++) {
		const struct mapper *m = &ps->machine->mappers[i];
		struct process_object po;

		if (has_provider(m, prov_pattern) &&
		    process_object_mapped(ps, m->pid, &m->mapping, &po))
			found(arg, &po);
	}
}
