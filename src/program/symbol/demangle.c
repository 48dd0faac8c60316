/* Calls libiberty's demanglers. In a file of its own, because its header declares an xmemdup()
 * unlike descry's.
 *
 * A mangled name may refer to its own parts, so a hostile name of 300 characters can stand for
 * terabytes. The demanglers write through a callback. When a name does not fit, the callback does
 * not return to them. They hold no memory while they write (dlang_demangle() does, but its names
 * may refer back only a few times). */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

char *symbol_demangle(const char *name);
char *symbol_demangle_short(const char *name);

enum {
	MANGLED_MAX = 8192,
	TEXT_MAX = 16384,
	DLANG_REFERENCES_MAX = 12, /* each may double the text */
};

struct text {
	jmp_buf too_long;
	size_t n;
	char v[TEXT_MAX];
};

static void demangle_take(const char *s, size_t n, void *arg)
{
	struct text *t = arg;

	if (n > TEXT_MAX - t->n)
		longjmp(t->too_long, 1);
	if (n) /* they also write nothing, from NULL */
		memcpy(t->v + t->n, s, n);
	t->n += n;
}

static char *demangle_d(const char *name)
{
	int references = 0;

	for (const char *p = name; (p = strchr(p, 'Q')); p++)
		if (++references > DLANG_REFERENCES_MAX)
			return NULL;
	return dlang_demangle(name, DMGL_PARAMS);
}

static char *demangle(const char *name, int options)
{
	struct text t;

	t.n = 0;
	if (strnlen(name, MANGLED_MAX) == MANGLED_MAX || setjmp(t.too_long))
		return NULL;
	/* The name of a crate may be empty. */
	if (rust_demangle_callback(name, options, demangle_take, &t) && t.n)
		return strndup(t.v, t.n);
	t.n = 0;
	if (cplus_demangle_v3_callback(name, options, demangle_take, &t) && t.n)
		return strndup(t.v, t.n);
	return NULL;
}

/* Returns the demangled name, malloc()ed, or NULL when the name is not mangled or its text is too
 * long. */
char *symbol_demangle(const char *name)
{
	char *text = demangle(name, DMGL_PARAMS | DMGL_ANSI);

	if (text || name[0] != '_' || name[1] != 'D' || strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return text;
	return demangle_d(name);
}

/* The same without parameters and return types, as perf script prints names. */
char *symbol_demangle_short(const char *name)
{
	return demangle(name, DMGL_NO_OPTS | DMGL_AUTO);
}
