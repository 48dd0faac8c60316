/* What the C library's dynamic linker does instead of running a program (ld.so(8)): descry
 * (src/memory/alloc/shim_start.c) and its preloaded library (agent/alloc_exec.c) leave it alone
 * then, because it would name the library as one of the program's. */
#ifndef DESCRY_WIRE_LINKER_H
#define DESCRY_WIRE_LINKER_H

#define WIRE_LINKER "ld-linux-x86-64.so.2"

/* Returns the text behind a prefix, or a null pointer. */
static inline const char *wire_behind(const char *text, const char *prefix)
{
	for (; *prefix; prefix++, text++)
		if (*text != *prefix)
			return 0;
	return text;
}

/* Returns true for the path of the dynamic linker. */
static inline int wire_is_linker(const char *path)
{
	const char *name = 0, *end = 0;

	for (; path && *path; path++)
		if (*path == '/')
			name = path + 1;
	end = name ? wire_behind(name, WIRE_LINKER) : 0;
	return end && !*end;
}

/* Returns true when the dynamic linker, started as a program, only lists or checks something. */
static inline int wire_linker_lists(char *const *argv)
{
	/* those that have their value in the next argument */
	static const char with_value[][24] = {
		"--library-path",         "--inhibit-rpath",    "--audit", "--preload", "--argv0",
		"--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"
	};
	/* --list, --list-tunables, --list-diagnostics */
	static const char lists[][12] = { "--list", "--verify", "--help", "--version" };

	for (argv += argv && *argv; argv && *argv && wire_behind(*argv, "--"); argv++) {
		int has_value = 0;

		for (unsigned i = 0; i < sizeof(lists) / sizeof(*lists); i++)
			if (wire_behind(*argv, lists[i]))
				return 1;
		for (unsigned i = 0; i < sizeof(with_value) / sizeof(*with_value); i++) {
			const char *end = wire_behind(*argv, with_value[i]);

			has_value |= end && !*end;
		}
		argv += has_value && argv[1];
	}
	return 0;
}

/* Returns true when the dynamic linker only lists or checks the libraries of each program that is
 * executed with this environment, as ldd(1) has it do. */
static inline int wire_environment_lists(char *const *env)
{
	for (; env && *env; env++)
		if (wire_behind(*env, "LD_TRACE_LOADED_OBJECTS=") ||
		    wire_behind(*env, "LD_VERIFY="))
			return 1;
	return 0;
}

#endif
