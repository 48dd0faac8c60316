/* libiberty's demangler, alone in a file: its header declares an xmemdup() unlike ours. */
#include <libiberty/demangle.h>

char *perf_demangle(const char *name);

/* As perf script prints it: without parameters and return types. malloc()ed; NULL when it is not
 * mangled. */
char *perf_demangle(const char *name)
{
	return cplus_demangle(name, DMGL_NO_OPTS | DMGL_AUTO);
}
