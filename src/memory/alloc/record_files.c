/* One file for each process whose allocations are recorded by probes. */
#include "memory/alloc/record_files.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/outfile.h"
#include "memory/alloc/trace_beside.h"

enum {
	FILES_MAX = 4096, /* of a recording */
	OPENED = 256,     /* at a time; beyond them, those of processes that have ended are ended */
	QUIET_NS = 2000000000, /* after the last record of one that has ended */
	LOOK_NS = 100000000,   /* between two looks at all of them: each has 4,096 system calls */
};

void record_files_init(struct record_files *f, const char *path)
{
	*f = (struct record_files){ .path = path, .dir = -1, .room = ALLOC_DEFINED_MAX };
}

static struct record_file *record_file_new(pid_t pid, struct alloc_writer *w)
{
	struct record_file *file = xcalloc(1, sizeof(*file));

	file->pid = pid;
	file->writer = w;
	return file;
}

/* What is known of a file while it is written. */
static void drop_state(struct record_file *file)
{
	hash_fini(&file->threads);
	hash_fini(&file->stacks);
	hash_fini(&file->pcs);
	vec_fini(&file->known);
}

static void record_file_free(struct record_file *file)
{
	if (!file)
		return;
	drop_state(file);
	free(file->path);
	free(file->command);
	free(file);
}

void record_files_begin(struct record_files *f, pid_t pid, struct alloc_writer *w)
{
	f->dir = outfile_folder(f->path);
	f->first = record_file_new(pid, w);
	f->first->command = beside_command(pid);
}

/* Ends an open file, and keeps what there is to say of it. */
static void close_file(struct record_files *f, uint32_t i)
{
	struct record_file *file = f->open.v[i];
	uint64_t events = alloc_writer_events(file->writer);
	struct err *e = alloc_writer_end(file->writer);

	if (f->error)
		err_free(e);
	else
		f->error = e;
	file->writer = NULL;
	f->room += file->used;
	drop_state(file);
	vec_push(&f->done, file);
	vec_push(&f->events, events);
	f->open.v[i] = f->open.v[--f->open.n];
	f->recent = NULL;
}

static void close_ended(struct record_files *f)
{
	f->looks++;
	f->look_at = f->now + LOOK_NS;
	for (uint32_t i = f->open.n; i-- > 0;) {
		const struct record_file *file = f->open.v[i];

		if (f->now > file->now + QUIET_NS && kill(file->pid, 0) && errno == ESRCH)
			close_file(f, i);
	}
}

static bool is_forked(const struct record_files *f, pid_t pid)
{
	/* record_files_executed() has put it there */
	return !hash_get(&f->numbers, &pid, sizeof(pid));
}

/* A forked child runs its parent's program. By now it may have executed another one. */
static char *command_of_parent(const struct record_files *f, pid_t parent)
{
	for (uint32_t i = f->open.n; i-- > 0;)
		if (f->open.v[i]->pid == parent)
			return xstrdup(f->open.v[i]->command);
	return xstrdup(f->first->command);
}

/* Tells the file whose it is. */
static void put_program(struct record_files *f, struct record_file *file, bool forked)
{
	file->parent = beside_parent(file->pid);
	if (forked)
		file->command = command_of_parent(f, file->parent);
	for (uint32_t i = f->programs.n; i-- > 0 && !file->command;) {
		struct record_program *p = &f->programs.v[i];

		if (p->pid != file->pid)
			continue;
		file->command = p->command;
		file->parent = p->parent;
		*p = f->programs.v[--f->programs.n];
	}
	file->command = file->command ?: beside_command(file->pid);
	file->parent = file->parent ?: f->first->pid;
}

static void keep_program(struct record_files *f, pid_t pid)
{
	struct record_program p = { pid, beside_parent(pid), beside_command(pid) };

	if (f->programs.n < FILES_MAX)
		vec_push(&f->programs, p);
	else
		free(p.command);
}

static struct record_file *open_file(struct record_files *f, pid_t pid)
{
	bool forked = is_forked(f, pid);
	struct record_file *file;
	struct alloc_writer *w;
	char *path, number[32];
	struct err *e;

	/* a child in another name space has no number yet */
	if (pid <= 0 || f->done.n + f->open.n >= FILES_MAX)
		return NULL;
	path = beside_path(&f->numbers, f->dir, f->path, pid);
	e = beside_open(f->dir, path, &w);
	if (e) {
		free(path);
		if (f->error)
			err_free(e);
		else
			f->error = e;
		return NULL;
	}
	file = record_file_new(pid, w);
	file->path = path;
	put_program(f, file, forked);
	snprintf(number, sizeof(number), "%d", (int)pid);
	alloc_writer_info(w, "pid", number);
	alloc_writer_info(w, "command", file->command);
	alloc_writer_info(w, "attached", "no");
	beside_infos(w, file->parent, forked, f->path);
	vec_push(&f->open, file);
	return file;
}

struct record_file *record_file_of(struct record_files *f, pid_t pid)
{
	struct record_file *file;

	if (f->recent && f->recent->pid == pid)
		return f->recent;
	file = pid == f->first->pid && !f->first_over ? f->first : NULL;
	for (uint32_t i = f->open.n; i-- > 0 && !file;)
		if (f->open.v[i]->pid == pid)
			file = f->open.v[i];
	if (!file && f->open.n >= OPENED && f->now >= f->look_at)
		close_ended(f);
	file = file ?: open_file(f, pid);
	f->refused += !file;
	f->recent = file;
	return file;
}

void record_files_executed(struct record_files *f, pid_t pid)
{
	(void)hash_put(&f->numbers, &pid, sizeof(pid), NULL);
	keep_program(f, pid);
	if (pid == f->first->pid)
		f->first_over = true;
	f->recent = NULL;
	for (uint32_t i = f->open.n; i-- > 0;)
		if (f->open.v[i]->pid == pid)
			close_file(f, i);
}

struct err *record_files_end(struct record_files *f)
{
	struct err *e = NULL;

	while (f->open.n)
		close_file(f, f->open.n - 1);
	for (uint32_t i = 0; i < f->done.n; i++) {
		const struct record_file *d = f->done.v[i];

		beside_list(f->first->writer, &(struct beside){ d->pid, d->parent, f->events.v[i],
								0, d->path, d->command });
	}
	e = alloc_writer_end(f->first->writer);
	f->first->writer = NULL;
	return e;
}

void record_files_fini(struct record_files *f)
{
	for (uint32_t i = 0; i < f->done.n; i++)
		record_file_free(f->done.v[i]);
	record_file_free(f->first);
	for (uint32_t i = 0; i < f->programs.n; i++)
		free(f->programs.v[i].command);
	vec_fini(&f->programs);
	vec_fini(&f->done);
	vec_fini(&f->open);
	vec_fini(&f->events);
	hash_fini(&f->numbers);
	if (f->dir >= 0)
		close(f->dir);
	err_free(f->error);
	err_free(f->not_before);
}
