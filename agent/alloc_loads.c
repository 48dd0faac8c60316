/* Says whether a program will load the object that its environment names. The object's constructor
 * takes the variables out of the environment again. A program that does not load it, as a static
 * one, would hand them to all that it executes for as long as it lives: also when the tracer has
 * ended and another process has its number.
 *
 * Always true: only the stack changes, because a child of vfork(2) may call these. A program that
 * cannot be read does not load. */
#include <elf.h>

#include "agent/alloc_private.h"

/* The limit is for code that runs in probes. This code runs in a call of execve(2) and its like,
 * whose caller in alloc_exec.c copies an environment to the stack. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

#define LINKER "ld-linux-x86-64.so.2"
#define SANITIZER "libasan.so"

enum {
	HEAD = 256, /* bytes in which the kernel looks for an interpreter's name */
	HEADERS_MAX = 64,
	DYNAMIC_MAX = 1000,
	DEPTH = 4, /* of interpreters that are scripts themselves */
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

static uint64_t length(const char *text)
{
	uint64_t n = 0;

	while (text[n])
		n++;
	return n;
}

/* Returns true for the dynamic linker's path, of n bytes with the zero at its end. */
static int is_linker(const char *path, uint64_t n)
{
	const char *name = LINKER;
	const uint64_t bytes = sizeof(LINKER) - 1;

	if (n < bytes + 2 || path[n - 1] || path[n - bytes - 2] != '/')
		return 0;
	for (uint64_t i = 0; i < bytes; i++)
		if (path[n - 1 - bytes + i] != name[i])
			return 0;
	return 1;
}

/* Returns true when a text of the file begins so. */
static int has_text(uint64_t fd, uint64_t at, const char *begins, uint64_t bytes)
{
	char text[32];

	if (sys4(SYS_PREAD64, fd, (uintptr_t)text, bytes, at) != (int64_t)bytes)
		return 0;
	for (uint64_t i = 0; i < bytes; i++)
		if (text[i] != begins[i])
			return 0;
	return 1;
}

/* Returns the place of an address in the file, 0: it has none. */
static uint64_t place_of(uint64_t fd, const Elf64_Ehdr *h, uint64_t addr)
{
	Elf64_Phdr p;

	for (uint64_t i = 0; i < h->e_phnum && i < HEADERS_MAX; i++)
		if (sys4(SYS_PREAD64, fd, (uintptr_t)&p, sizeof(p), h->e_phoff + i * sizeof(p)) ==
			    sizeof(p) &&
		    p.p_type == PT_LOAD && addr - p.p_vaddr < p.p_filesz)
			return addr - p.p_vaddr + p.p_offset;
	return 0;
}

/* Returns true for a program with AddressSanitizer as a library, which ends when another object is
 * loaded in front of it. */
static int has_sanitizer(uint64_t fd, const Elf64_Ehdr *h, const Elf64_Phdr *dynamic)
{
	uint64_t n = dynamic->p_filesz / sizeof(Elf64_Dyn), names = 0;
	Elf64_Dyn d;

	for (int turn = 0; turn < 2; turn++) {
		for (uint64_t i = 0; i < n && i < DYNAMIC_MAX; i++) {
			if (sys4(SYS_PREAD64, fd, (uintptr_t)&d, sizeof(d),
				 dynamic->p_offset + i * sizeof(d)) != sizeof(d) ||
			    d.d_tag == DT_NULL)
				break;
			if (!turn && d.d_tag == DT_STRTAB)
				names = place_of(fd, h, d.d_un.d_ptr);
			else if (turn && d.d_tag == DT_NEEDED &&
				 has_text(fd, names + d.d_un.d_val, SANITIZER,
					  sizeof(SANITIZER) - 1))
				return 1;
		}
		if (!names)
			return 0;
	}
	return 0;
}

/* Returns true for a program that the dynamic linker of the C library begins. */
static int elf_loads(uint64_t fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;
	char name[HEAD];
	int begins = 0;

	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != EM_X86_64 ||
	    h->e_phentsize != sizeof(p))
		return 0;
	for (uint64_t i = 0; i < h->e_phnum && i < HEADERS_MAX; i++) {
		if (sys4(SYS_PREAD64, fd, (uintptr_t)&p, sizeof(p), h->e_phoff + i * sizeof(p)) !=
		    sizeof(p))
			return 0;
		if (p.p_type == PT_DYNAMIC && has_sanitizer(fd, h, &p))
			return 0;
		if (p.p_type == PT_INTERP)
			begins = p.p_filesz <= sizeof(name) &&
				 sys4(SYS_PREAD64, fd, (uintptr_t)name, p.p_filesz, p.p_offset) ==
					 (int64_t)p.p_filesz &&
				 is_linker(name, p.p_filesz);
	}
	return begins;
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
		loads = elf_loads((uint64_t)fd, &head.elf) || alloc_is_linker(path);
	close_unlocked((uint64_t)fd);
	if (n <= 0 || *(uint32_t *)&head == 0x464c457f)
		return loads;
	if (depth == DEPTH)
		return 0;
	if (head.text[0] == '#' && head.text[1] == '!')
		return file_loads(CURRENT, interpreter(head.text), depth + 1);
	return file_loads(CURRENT, "/bin/sh", DEPTH); /* execvp(3) runs it with the shell */
}

int alloc_is_linker(const char *path)
{
	return is_linker(path, length(path) + 1);
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
