/* Calls libiberty's demangler. In a file of its own, because its header declares an xmemdup()
 * unlike descry's. */
#include <libiberty/demangle.h>

char *perf_demangle(const char *name);

/* Demangles a name as perf script prints it, without parameters and return types. The result is
 * malloc()ed; NULL: the name is not mangled. */
char *perf_demangle(const char *name)
{
	return cplus_demangle(name, DMGL_NO_OPTS | DMGL_AUTO);
}
