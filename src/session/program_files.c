/* Sorts and compares the files of programs. See program_files.h. */
#include "session/program_files.h"

static int file_order(const void *pa, const void *pb)
{
	const struct program_file *a = pa, *b = pb;

	return a->dev != b->dev ? COMPARE(a->dev, b->dev) : COMPARE(a->inode, b->inode);
}

void program_files_init(struct program_files *f, const struct mappings *maps)
{
	uint32_t n = 0;

	*f = (struct program_files){ 0 };
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (m->exec && m->inode)
			vec_push(&f->v,
				 ((struct program_file){
					 (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode }));
	}
	if (!f->v.n)
		return;
	qsort(f->v.v, f->v.n, sizeof(*f->v.v), file_order);
	for (uint32_t i = 0; i < f->v.n; i++)
		if (!i || file_order(&f->v.v[n - 1], &f->v.v[i]))
			f->v.v[n++] = f->v.v[i];
	f->v.v = xrealloc(f->v.v, n * sizeof(*f->v.v));
	f->v.n = f->v.cap = n;
}

void program_files_fini(struct program_files *f)
{
	vec_fini(&f->v);
}

bool program_files_cover(const struct program_files *all, const struct program_files *f)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < f->v.n; i++) {
		while (k < all->v.n && file_order(&all->v.v[k], &f->v.v[i]) < 0)
			k++;
		if (k == all->v.n || file_order(&all->v.v[k], &f->v.v[i]))
			return false;
	}
	return true;
}
