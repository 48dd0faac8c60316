/* Says whether a program will load the object that its environment names. The object's constructor
 * takes the variables out of the environment again. A program that does not load it, as a static
 * one, would hand them to all that it executes for as long as it lives: also when the tracer has
 * ended and another process has its number.
 *
 * Always true: only the stack changes, because a child of vfork(2) may call these. A program that
 * cannot be read does not load. */
#include <elf.h>

#include "agent/alloc_private.h"
#include "wire/linker.h"

/* The limit is for code that runs in probes. This code runs in a call of execve(2) and its like,
 * which need a few kilobytes of the stack themselves. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

enum {
	HEAD = 256, /* bytes in which the kernel looks for an interpreter's name */
	HEADERS_MAX = 64,
	ENTRIES = 32,       /* of the dynamic section, which are read at once */
	ENTRIES_MAX = 4096, /* that are looked at */
	DEPTH = 4,          /* of interpreters that are scripts themselves */
	PATH_LENGTH = 1024,
	CURRENT = -100,                         /* AT_FDCWD */
	READ_CLOEXEC = 02000000 | 04000 | 0400, /* O_CLOEXEC, O_NONBLOCK, O_NOCTTY */
	MAY_EXECUTE = 1,
	GET_LOCK = 36, /* F_OFD_GETLK */
	WRITE_LOCK = 1,
	NO_LOCK = 2,
	FORMAT = 0170000,
	REGULAR = 0100000,
	SET_USER = 04000,
	SET_GROUP = 02000,
	NO_ENTRY = -2,
	NO_DIRECTORY = -20,
	BAD_ADDRESS = -14,
};

extern char **environ __attribute__((weak));

static int read_at(uint64_t fd, void *to, uint64_t n, uint64_t offset)
{
	return sys4(SYS_PREAD64, fd, (uintptr_t)to, n, offset) == (int64_t)n;
}

static int read_header(uint64_t fd, const Elf64_Ehdr *h, uint64_t i, Elf64_Phdr *ret)
{
	return i < h->e_phnum && i < HEADERS_MAX &&
	       read_at(fd, ret, sizeof(*ret), h->e_phoff + i * sizeof(*ret));
}

static int header_of(uint64_t fd, const Elf64_Ehdr *h, uint32_t type, Elf64_Phdr *ret)
{
	for (uint64_t i = 0; read_header(fd, h, i, ret); i++)
		if (ret->p_type == type)
			return 1;
	return 0;
}

/* Returns the place in the file of an address of the program, 0: it has none. */
static uint64_t file_offset(uint64_t fd, const Elf64_Ehdr *h, uint64_t addr)
{
	Elf64_Phdr p;

	for (uint64_t i = 0; read_header(fd, h, i, &p); i++)
		if (p.p_type == PT_LOAD && addr - p.p_vaddr < p.p_filesz)
			return addr - p.p_vaddr + p.p_offset;
	return 0;
}

/* Reads entries of the dynamic section from entry `at` on. Returns their number. */
static uint64_t read_dynamic(uint64_t fd, const Elf64_Phdr *dynamic, uint64_t at,
			     Elf64_Dyn entries[ENTRIES])
{
	uint64_t n = dynamic->p_filesz / sizeof(*entries);

	n = n < ENTRIES_MAX ? n : ENTRIES_MAX;
	n = at < n ? n - at : 0;
	n = n < ENTRIES ? n : ENTRIES;
	return read_at(fd, entries, n * sizeof(*entries), dynamic->p_offset + at * sizeof(*entries))
		       ? n
		       : 0;
}

/* Returns true when the program needs the library of AddressSanitizer, which ends it when another
 * library comes before. */
static int needs_asan(uint64_t fd, const Elf64_Ehdr *h)
{
	char name[sizeof(ALLOC_ASAN)] = "";
	Elf64_Dyn entries[ENTRIES];
	uint64_t names = 0, n;
	Elf64_Phdr dynamic;

	if (!header_of(fd, h, PT_DYNAMIC, &dynamic))
		return 0;
	for (uint64_t at = 0; !names && (n = read_dynamic(fd, &dynamic, at, entries)); at += n)
		for (uint64_t i = 0; i < n; i++)
			if (entries[i].d_tag == DT_STRTAB)
				names = file_offset(fd, h, entries[i].d_un.d_ptr);
	for (uint64_t at = 0; names && (n = read_dynamic(fd, &dynamic, at, entries)); at += n)
		for (uint64_t i = 0; i < n; i++)
			if (entries[i].d_tag == DT_NEEDED &&
			    read_at(fd, name, sizeof(name) - 1, names + entries[i].d_un.d_val) &&
			    wire_behind(name, ALLOC_ASAN))
				return 1;
	return 0;
}

/* Returns true for a program that the dynamic linker of the C library begins, and that runs with
 * the object. */
static int elf_loads(uint64_t fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;
	char name[HEAD];

	return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_machine == EM_X86_64 &&
	       h->e_phentsize == sizeof(p) && header_of(fd, h, PT_INTERP, &p) && p.p_filesz &&
	       p.p_filesz <= sizeof(name) && read_at(fd, name, p.p_filesz, p.p_offset) &&
	       !name[p.p_filesz - 1] && wire_is_linker(name) && !needs_asan(fd, h);
}

/* Ends the name of the interpreter behind "#!" with a zero. Returns it. */
static const char *interpreter(char *head)
{
	char *name = head + 2, *end;

	while (*name == ' ' || *name == '\t')
		name++;
	for (end = name; *end && *end != ' ' && *end != '\t' && *end != '\n'; end++)
		;
	*end = 0;
	return name;
}

/* Closes a file, unless that would end a lock which this process has of it (fcntl(2)). It is closed
 * by execve(2) then. */
static void close_unlocked(uint64_t fd)
{
	struct {
		int16_t type, whence;
		int64_t start, length;
		int32_t pid;
	} lock = { .type = WRITE_LOCK };

	if (sys4(SYS_FCNTL, fd, GET_LOCK, (uintptr_t)&lock, 0) || lock.type == NO_LOCK ||
	    lock.pid != (int32_t)sys2(SYS_GETPID, 0, 0))
		sys2(SYS_CLOSE, fd, 0);
}

/* Nothing is loaded into a program that gets another user or group than it had. */
static int is_privileged(const uint64_t *status)
{
	/* struct stat: st_mode, st_uid, st_gid */
	return (status[3] & SET_USER && status[3] >> 32 != (uint64_t)sys2(SYS_GETUID, 0, 0)) ||
	       (status[3] & SET_GROUP && (uint32_t)status[4] != (uint64_t)sys2(SYS_GETGID, 0, 0));
}

static int file_loads(int dir, const char *path, uint32_t depth)
{
	union {
		Elf64_Ehdr elf;
		char text[HEAD + 1];
	} head;
	uint64_t status[32];
	int64_t fd = sys4(SYS_OPENAT, (uint64_t)dir, (uintptr_t)path, READ_CLOEXEC, 0), n = 0;
	int loads = 0;

	/* it cannot be executed either */
	if (fd == NO_ENTRY || fd == NO_DIRECTORY || fd == BAD_ADDRESS)
		return 1;
	if (fd < 0)
		return 0;
	if (!sys2(SYS_FSTAT, (uint64_t)fd, (uintptr_t)status) && (status[3] & FORMAT) == REGULAR &&
	    !is_privileged(status))
		n = sys4(SYS_PREAD64, (uint64_t)fd, (uintptr_t)&head, HEAD, 0);
	head.text[n > 0 ? n : 0] = 0;
	if (n >= (int64_t)sizeof(head.elf) && *(uint32_t *)&head == 0x464c457f)
		loads = elf_loads((uint64_t)fd, &head.elf) || wire_is_linker(path);
	close_unlocked((uint64_t)fd);
	if (n <= 0 || *(uint32_t *)&head == 0x464c457f)
		return loads;
	if (depth == DEPTH)
		return 0;
	if (head.text[0] == '#' && head.text[1] == '!')
		return file_loads(CURRENT, interpreter(head.text), depth + 1);
	return file_loads(CURRENT, "/bin/sh", DEPTH); /* execvp(3) runs it with the shell */
}

int alloc_loads(int dir, const char *path)
{
	return file_loads(dir, path, 0);
}

/* Returns the environment's PATH. */
static const char *search_path(void)
{
	for (char **v = environ; v && *v; v++)
		if ((*v)[0] == 'P' && (*v)[1] == 'A' && (*v)[2] == 'T' && (*v)[3] == 'H' &&
		    (*v)[4] == '=')
			return *v + 5;
	return "/bin:/usr/bin";
}

/* The first program of this name is executed. */
int alloc_loads_name(const char *name)
{
	char path[PATH_LENGTH];

	for (const char *p = name; p && *p; p++)
		if (*p == '/')
			return file_loads(CURRENT, name, 0);
	for (const char *dir = search_path(); name && *name;) {
		uint64_t status[32], n = 0;

		while (*dir && *dir != ':' && n + 2 < sizeof(path))
			path[n++] = *dir++;
		if (n)
			path[n++] = '/';
		for (const char *p = name; *p && n + 1 < sizeof(path); p++)
			path[n++] = *p;
		path[n] = 0;
		if (n + 1 == sizeof(path))
			return 0;
		if (!sys2(SYS_ACCESS, (uintptr_t)path, MAY_EXECUTE) &&
		    !sys2(SYS_STAT, (uintptr_t)path, (uintptr_t)status) &&
		    (status[3] & FORMAT) == REGULAR)
			return file_loads(CURRENT, path, 0);
		if (*dir != ':')
			break;
		dir++;
	}
	return 1;
}
