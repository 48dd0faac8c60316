/* Reads the executable mappings of a process and their unwind images. */
#include <errno.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/hash.h"
#include "base/sorted.h"
#include "program/unwind/unwind.h"

struct unwind_images {
	struct hash by_file; /* struct file_key -> struct unwind_file * */
	struct hash met; /* struct mapped_key of a mapping made in the run -> struct unwind_file * */
	VEC(struct unwind_file *) all;
	uint64_t bytes; /* of all images */
	uint64_t work, work_max;
	uint32_t left_out;
	uint64_t uses; /* the clock of unwind_file.used */
	bool guess;
};

struct mapped_key {
	uint64_t dev, inode, path;
};

struct file_key {
	uint64_t key, path;
};

struct unwind_file_keys {
	struct file_key file;
	struct mapped_key met;
	bool is_met;
};

struct unwind_images *unwind_images_new(void)
{
	struct unwind_images *s = xcalloc(1, sizeof(*s));

	s->work_max = UNWIND_WORK_MAX;
	return s;
}

static void file_free(struct unwind_file *f)
{
	unwind_image_free(f->image);
	object_free(f->object);
	free(f->path);
	free(f->keys);
	free(f);
}

void unwind_images_free(struct unwind_images *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->all.n; i++)
		file_free(s->all.v[i]);
	vec_fini(&s->all);
	hash_fini(&s->by_file);
	hash_fini(&s->met);
	free(s);
}

/* Opens this process's vdso, which is the same in every 64-bit process. */
static struct err *open_vdso(uint64_t size, struct object **ret)
{
	const void *p = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	if (!p)
		return err_new(ENOENT, "no vdso");
	return object_open_memory("[vdso]", p, size, ret);
}

/* Finds the difference between file offsets and link-time addresses of its text. Returns false when
 * it is not the same for all text. */
static bool find_delta(const struct object *o, int64_t *ret)
{
	uint64_t off, n, addr;
	bool found = false;

	for (uint32_t i = 0; object_text_segment(o, i, &off, &n, &addr); i++) {
		int64_t delta = (int64_t)(addr - off);

		if (found && delta != *ret)
			return false;
		*ret = delta;
		found = true;
	}
	return found;
}

/* Returns true for an error that may not happen at the next attempt. */
static bool is_passing(const struct err *e)
{
	return e && (e->code == EMFILE || e->code == ENFILE || e->code == ENOMEM ||
		     e->code == EINTR || e->code == EAGAIN);
}

/* Makes the key of a mapping's file, with the mapping's device and inode if known, because stat()
 * may return others (overlayfs). */
static bool file_key(const struct mapping *m, const char *path, struct file_key *ret)
{
	uint32_t dev = m->dev_major << 20 | m->dev_minor;
	struct stat st;

	if (!path || stat(path, &st))
		return false;
	if (!m->inode)
		dev = major(st.st_dev) << 20 | minor(st.st_dev);
	ret->key = wire_unwind_file_key(dev, m->inode ? m->inode : st.st_ino,
					(uint64_t)st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec);
	return true;
}

/* Returns the file of a mapping, by its identity. Opens a new file. Returns NULL when this failed
 * for now. path opens the file from this process. vdso: the vdso's image, which is taken; NULL:
 * this process's, if the mapping is a vdso. */
static struct unwind_file *find_file(struct unwind_images *s, const struct mapping *m,
				     const char *path, struct object *vdso)
{
	const bool ours = !vdso && !strcmp(m->path, "[vdso]");
	struct file_key key = { .key = WIRE_UNWIND_KEY_VDSO,
				.path = hash_bytes(m->path, strlen(m->path)) };
	struct unwind_file *f, made = { .guessed = s->guess, .object = vdso };
	struct err *e = NULL;
	const uint8_t *id;
	uint64_t *i;
	uint32_t n;
	bool is_new;

	if (vdso) {
		id = object_build_id(vdso, &n);
		key.key = id ? hash_bytes(id, n) : m->start;
	} else if (!ours && !file_key(m, path, &key)) {
		return NULL;
	}
	i = hash_put(&s->by_file, &key, sizeof(key), &is_new);
	if (!is_new) {
		f = (struct unwind_file *)(uintptr_t)*i;
		f->guessed &= s->guess;
		f->used = ++s->uses;
		object_free(vdso);
		return f;
	}
	if (!vdso)
		e = ours ? open_vdso(m->end - m->start, &made.object)
			 : object_open(path, &made.object);
	if (is_passing(e)) {
		hash_del(&s->by_file, &key, sizeof(key));
		err_free(e);
		return NULL;
	}
	made.key = key.key;
	made.path = xstrdup(m->path);
	if (!e && unwind_images_full(s))
		s->left_out++;
	else if (!e)
		e = unwind_image_open(made.object, &made.image);
	if (made.image) {
		s->bytes += made.image->size;
		s->work += made.image->work;
	}
	if (!e && !find_delta(made.object, &made.delta))
		made.key = 0;
	if (made.object)
		object_close_file(made.object); /* there may be thousands */
	err_free(e);
	made.used = ++s->uses;
	made.index = s->all.n;
	made.keys = xcalloc(1, sizeof(*made.keys));
	made.keys->file = key;
	f = xmemdup(&made, sizeof(made));
	*i = (uintptr_t)f;
	vec_push(&s->all, f);
	return f;
}

void unwind_images_trim(struct unwind_images *s, struct unwind_file *f)
{
	s->bytes -= f->image->size;
	unwind_image_trim(f->image);
	s->bytes += f->image->size;
}

void unwind_images_remove(struct unwind_images *s, struct unwind_file *f)
{
	struct unwind_file *last = *vec_last(&s->all);

	if (f->image) {
		s->bytes -= f->image->size;
		s->work -= f->image->work;
	}
	hash_del(&s->by_file, &f->keys->file, sizeof(f->keys->file));
	if (f->keys->is_met)
		hash_del(&s->met, &f->keys->met, sizeof(f->keys->met));
	last->index = f->index;
	s->all.v[f->index] = last;
	s->all.n--;
	file_free(f);
}

static bool has_image(const struct unwind_file *f)
{
	return f && f->image;
}

bool unwind_images_add_path(struct unwind_images *s, const char *path)
{
	const struct mapping m = { .path = path };
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && has_image(find_file(s, &m, path, NULL));
}

bool unwind_images_add_inode(struct unwind_images *s, pid_t pid, const char *path, uint32_t dev,
			     uint64_t inode)
{
	struct mapping m = {
		.path = path, .dev_major = dev >> 20, .dev_minor = dev & 0xfffff, .inode = inode
	};
	struct mapped_key k = { dev, inode, hash_bytes(path, strlen(path)) };
	uint64_t *known = hash_get(&s->met, &k, sizeof(k));
	cleanup_free char *open_path = NULL;
	struct unwind_file *f;

	/* The key of its contents shows whether it has changed. This is checked for processes that
	 * map it. */
	if (known) {
		((struct unwind_file *)(uintptr_t)*known)->used = ++s->uses;
		return true;
	}
	open_path = mapping_open_path(pid, &m);
	f = find_file(s, &m, open_path, NULL);
	if (f) {
		if (f->keys->is_met)
			hash_del(&s->met, &f->keys->met, sizeof(f->keys->met));
		f->keys->met = k;
		f->keys->is_met = true;
		*hash_put(&s->met, &k, sizeof(k), NULL) = (uintptr_t)f;
	}
	return has_image(f);
}

void unwind_images_guess(struct unwind_images *s, bool guess)
{
	s->guess = guess;
}

bool unwind_images_full(const struct unwind_images *s)
{
	return s->bytes >= UNWIND_IMAGES_MAX || s->work >= s->work_max;
}

uint32_t unwind_images_left_out(const struct unwind_images *s)
{
	return s->left_out;
}

void unwind_images_limit(struct unwind_images *s, uint64_t work)
{
	s->work_max = work;
}

struct unwind_file *unwind_images_file(const struct unwind_images *s, uint32_t i)
{
	return i < s->all.n ? s->all.v[i] : NULL;
}

uint32_t unwind_images_count(const struct unwind_images *s)
{
	return s->all.n;
}

/* Finds the place of the mapping's bytes in the file's address space. */
static bool find_bias(const struct object *o, const struct mapping *m, uint64_t *ret)
{
	uint64_t addr;

	if (!object_text_mapping_addr(o, m->offset, &addr))
		return false;
	*ret = m->start - addr;
	return true;
}

static struct unwind_file *mapped_file(struct unwind_images *s, struct space *space,
				       const struct mapping *m)
{
	const bool is_vdso = !strcmp(m->path, "[vdso]");
	cleanup_free char *path = is_vdso ? NULL : space_open_path(space, m);
	struct object *vdso = NULL;

	if (is_vdso && space->record)
		err_free(space_object(space, m->start, (uint32_t)(m->end - m->start), &vdso));
	return path || vdso || (is_vdso && !space->record) ? find_file(s, m, path, vdso) : NULL;
}

/* Returns the file of a mapping of a list. seen: the files of the list's mappings before, because
 * many may be of one file, with a path of 4 KB. */
static struct unwind_file *listed_file(struct unwind_images *s, struct space *space,
				       const struct mapping *m, struct hash *seen)
{
	const uint64_t key[] = { (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode,
				 hash_bytes(m->path, strlen(m->path)) };
	struct unwind_file *f;
	uint64_t *known;

	if (m->path[0] != '/' || !m->inode) /* a core or a recording has no inodes */
		return mapped_file(s, space, m);
	known = hash_get(seen, key, sizeof(key));
	if (known)
		return (struct unwind_file *)(uintptr_t)*known;
	f = mapped_file(s, space, m);
	*hash_put(seen, key, sizeof(key), NULL) = (uintptr_t)f;
	return f;
}

struct err *unwind_process_read(struct unwind_images *s, struct space *space, uint64_t time,
				struct unwind_process **ret)
{
	const struct mappings *maps;
	struct unwind_process *p;
	struct hash seen = { 0 };
	struct err *e = space_mappings(space, time, &maps);

	if (e)
		return e;
	p = xcalloc(1, sizeof(*p));
	p->pid = space->pid;
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		struct unwind_range r = { .start = m->start, .end = m->end, .bias = m->start };
		struct unwind_file *f;

		if (!m->exec || !strcmp(m->path, "[vsyscall]"))
			continue;
		f = listed_file(s, space, m, &seen);
		if (has_image(f) && find_bias(f->object, m, &r.bias)) {
			r.image = f->image;
			r.file = f;
		}
		vec_push(&p->ranges, r);
	}
	hash_fini(&seen);
	*ret = p;
	return NULL;
}

struct err *unwind_process_live(struct unwind_images *s, pid_t pid, struct unwind_process **ret)
{
	struct space *space;
	struct err *e = space_live(pid, &space);

	if (e)
		return e;
	e = unwind_process_read(s, space, 0, ret);
	space_free(space);
	return e;
}

void unwind_process_free(struct unwind_process *p)
{
	if (!p)
		return;
	vec_fini(&p->ranges);
	free(p);
}

const struct unwind_range *unwind_process_find(const struct unwind_process *p, uint64_t addr)
{
	uint32_t lo;

	if (p->find)
		return p->find(p->find_arg, addr);
	lo = partition_point(p->ranges.n, i, p->ranges.v[i].end <= addr);
	if (lo < p->ranges.n && addr >= p->ranges.v[lo].start)
		return &p->ranges.v[lo];
	return NULL;
}
