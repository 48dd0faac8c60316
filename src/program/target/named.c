/* Starts, finds, watches and drops the processes of -c and -p. */
#define _GNU_SOURCE
#include "program/target/named.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/mem.h"
#include "program/object/object.h"
#include "program/target/target.h"

/* Splits a command line into words. Blanks separate words, '...' and "..." keep blanks, and a
 * backslash keeps the next character as it is. */
static char **split(const char *s, char **ret_buf)
{
	char *out = xmalloc(strlen(s) + 1), *w = out;
	VEC(char *) words = { 0 };

	*ret_buf = out;
	while (*s) {
		char quote = 0;

		while (*s == ' ' || *s == '\t' || *s == '\n')
			s++;
		if (!*s)
			break;
		vec_push(&words, w);
		for (; *s && (quote || !strchr(" \t\n", *s)); s++) {
			if (quote ? *s == quote : *s == '\'' || *s == '"')
				quote = quote ? 0 : *s;
			else if (*s == '\\' && s[1] && quote != '\'')
				*w++ = *++s;
			else
				*w++ = *s;
		}
		*w++ = '\0';
	}
	vec_push(&words, NULL);
	return words.v;
}

struct err *target_start(const char *command, int output, const char *user, struct target *ret)
{
	struct child_user *as_user = user ? child_user_new(user) : NULL;
	const struct control_as as = { .output = output, .user = as_user };
	cleanup_free char *buf = NULL;
	cleanup_free char **words = split(command, &buf);
	struct control *c;
	struct err *e;

	if (!words[0])
		e = err_new(EINVAL, "-c wants a command");
	else if (user && !as_user)
		e = err_new(EINVAL, "there is no user %s", user);
	else
		e = control_start(words, false, &as, &c);
	child_user_free(as_user);
	if (e)
		return e;
	*ret = (struct target){
		.pid = control_pid(c), .command = true, .stopped = true, .control = c, .pidfd = -1
	};
	return NULL;
}

struct err *target_grab(pid_t pid, struct target *ret)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno == ESRCH)
		return err_new(ESRCH, "there is no process %d", (int)pid);
	if (fd < 0 && kill(pid, 0) < 0 && errno == ESRCH)
		return err_new(ESRCH, "there is no process %d", (int)pid);
	*ret = (struct target){ .pid = pid, .pidfd = fd };
	return NULL;
}

/* Finds a stripped program's main(), which is the first argument that the C library's _start passes
 * to __libc_start_main(). Returns 0 when it is not found.
 *
 *	48 8d 3d disp    lea disp(%rip),%rdi        48 c7 c7 addr    mov $addr,%rdi        bf addr    mov $addr,%edi
 */
static uint64_t main_of_start(const struct object *o, uint64_t start)
{
	uint8_t code[96]; /* musl continues in a second function */
	uint32_t n = object_read(o, start, code, sizeof(code));

	for (uint32_t i = 0; i + 7 <= n && code[i] != 0xf4 /* hlt, behind the call */; i++) {
		uint64_t addr = 0;
		int32_t v;

		memcpy(&v, code + i + (code[i] == 0xbf ? 1 : 3), sizeof(v));
		if (code[i] == 0x48 && code[i + 1] == 0x8d && code[i + 2] == 0x3d)
			addr = start + i + 7 + (uint64_t)(int64_t)v;
		else if (code[i] == 0xbf ||
			 (code[i] == 0x48 && code[i + 1] == 0xc7 && code[i + 2] == 0xc7))
			addr = (uint32_t)v;
		if (addr && object_is_text(o, addr))
			return addr;
	}
	return 0;
}

/* Finds main()'s address: its symbol's value, shifted like the entry point. */
static struct err *main_function(const struct target *t, uint64_t *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/exe", (int)t->pid);
	struct object *o = NULL;
	uint64_t value = 0;
	Elf64_Ehdr head;
	struct err *e = NULL;
	FILE *f = fopen(path, "re");

	if (!f || fread(&head, sizeof(head), 1, f) != 1)
		e = err_errno(errno, "%s", path);
	if (f)
		fclose(f);
	if (e)
		return e;
	e = object_open(path, &o);
	if (e)
		return e;
	if (!object_symbol_value(o, "main", &value))
		value = main_of_start(o, head.e_entry);
	if (!value)
		e = err_new(
			ENOENT,
			"evaltime: the program has no symbol \"main\", and its entry point does "
			"not name it; evaltime=preinit stops there");
	object_free(o);
	*ret = control_auxv(t->control, AT_ENTRY) - head.e_entry + value;
	return e;
}

static struct err *run_to(struct target *t, uint64_t address)
{
	struct err *e = control_run_to(t->control, address);

	t->at_entry = !e;
	return e;
}

struct err *target_to_entry(struct target *t)
{
	uint64_t entry;

	if (!t->control || t->at_entry)
		return NULL;
	entry = control_auxv(t->control, AT_ENTRY);
	return entry ? run_to(t, entry)
		     : err_new(ENOENT, "process %d has no entry point", (int)t->pid);
}

struct err *target_to_main(struct target *t)
{
	struct err *e;
	uint64_t address;

	if (!t->control || t->at_entry)
		return NULL;
	e = main_function(t, &address);
	return e ? e : run_to(t, address);
}

void target_release(struct target *t)
{
	if (!t->stopped)
		return;
	/* If it was killed, target_gone() will notice. */
	err_free(control_resume(t->control));
	control_free(t->control);
	t->control = NULL;
	t->stopped = false;
}

bool target_gone(struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	if (t->gone)
		return true;
	if (t->command)
		t->gone = control_ended(t->pid, &t->status);
	else if (t->pidfd >= 0)
		t->gone = poll(&p, 1, 0) > 0;
	else
		t->gone = kill(t->pid, 0) < 0 && errno == ESRCH;
	return t->gone;
}

char *target_end(const struct target *t)
{
	const char *name = WIFSIGNALED(t->status) ? sigabbrev_np(WTERMSIG(t->status)) : NULL;

	if (name)
		return xasprintf("terminated by SIG%s", name);
	if (WIFSIGNALED(t->status))
		return xasprintf("terminated by signal %d", WTERMSIG(t->status));
	if (WEXITSTATUS(t->status))
		return xasprintf("exited with status %d", WEXITSTATUS(t->status));
	return xstrdup("has exited");
}

void target_drop(struct target *t, bool end)
{
	if (t->command && !t->gone && (t->stopped || end)) {
		kill(t->pid, t->stopped ? SIGKILL : SIGTERM);
		if (t->stopped)
			waitpid(t->pid, NULL, 0);
	}
	control_free(t->control);
	t->control = NULL;
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}
