/* libiberty's demangler, alone in a file: its header declares an xmemdup() unlike ours. */
#include <libiberty/demangle.h>

char *symbol_demangle(const char *name);

/* The demangled name, malloc()ed; NULL when it is not mangled. */
char *symbol_demangle(const char *name)
{
	return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}
