/* Opens a process for control, and reads and writes its memory and mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <time.h>

#include "base/clock.h"
#include "base/procmem.h"
#include "base/procstatus.h"
#include "target_private.h"

pid_t control_pid(const struct control *c)
{
	return c->pid;
}

struct err *control_gone(const struct control *c)
{
	return err_new(ESRCH, "process %d (%s) has ended", c->pid, c->name);
}

/* --- open --- */

struct err *control_open_mem(struct control *c)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/mem", c->pid, c->alive);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	/* the kernel gives the file to root when the thread has released its memory */
	if (fd < 0 && (errno == EACCES || errno == EPERM) &&
	    control_without_memory(c->pid, c->alive))
		return control_gone(c);
	if (fd < 0)
		return err_errno(errno, "cannot open the memory of process %d (%s)", c->pid,
				 c->name);
	if (c->mem >= 0)
		close(c->mem);
	c->mem = fd;
	return NULL;
}

struct err *control_new(pid_t pid, struct control **ret)
{
	struct control *c = xcalloc(1, sizeof(*c));

	c->pid = pid;
	c->mem = c->service = c->files = c->their_files = -1;
	c->options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
	c->alive = control_living_thread(pid);
	c->name = control_comm(pid);
	*ret = c;
	return c->alive ? NULL : err_new(ESRCH, "there is no process %d", pid);
}

/* Reads the process's status. First waits a short time while another tracer, or an earlier control
 * of this process, detaches. */
static struct err *read_free_status(struct control *c, char **ret)
{
	uint64_t begun = now_ns();

	for (;;) {
		char *status = NULL;
		struct err *e = control_read_status(c->alive, &status);
		long tracer = e ? 0 : procstatus_number(status, "TracerPid", 0);
		cleanup_free char *who = tracer > 0 ? control_comm((pid_t)tracer) : NULL;

		if (e || !who || now_ns() - begun > control_patience(who)) {
			*ret = status;
			return e;
		}
		free(status);
		(void)control_settle();
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
}

struct err *control_open(pid_t pid, struct control **ret)
{
	cleanup_free char *status = NULL;
	struct control *c;
	struct err *e, *m;

	if (pid <= 0)
		return err_new(EINVAL, "%d is not a process", pid);
	if (pid == getpid())
		return err_new(EINVAL, "descry cannot control itself");
	e = control_new(pid, &c);
	e = e ?: read_free_status(c, &status);
	if (!e && procstatus_number(status, "Tgid", 0) != pid)
		e = err_new(EINVAL, "%d is a thread of process %ld, not a process", pid,
			    procstatus_number(status, "Tgid", 0));
	e = e ?: control_check_status(c, status);
	if (!e) {
		m = control_open_mem(c);
		if (m && (m->code == EACCES || m->code == EPERM))
			e = control_refused(c, status, m->code);
		else if (m)
			e = err_wrap(m, "tracing");
		if (e != m)
			err_free(m);
	}
	e = e ?: control_check_class(c);
	if (e) {
		control_free(c);
		return e;
	}
	*ret = c;
	return NULL;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	if (c->stopped || c->threads.n)
		err_free(control_resume(c));
	if (c->mem >= 0)
		close(c->mem);
	control_serve_end(c);
	vec_fini(&c->threads);
	hash_fini(&c->by_tid);
	mappings_free(&c->maps);
	free(c->auxv);
	free(c->name);
	free(c);
}

/* --- memory --- */

/* Returns the process or thread whose page table can be read. 0: the process serves itself and may
 * not be traced; it is a command of descry's own. */
static pid_t looked_at(const struct control *c)
{
	return c->service >= 0 ? 0 : c->alive;
}

ssize_t control_pread(const struct control *c, void *buf, size_t n, uint64_t addr)
{
	return procmem_pread(looked_at(c), c->mem, buf, n, addr);
}

ssize_t control_pwrite(const struct control *c, const void *buf, size_t n, uint64_t addr)
{
	return procmem_pwrite(looked_at(c), c->mem, buf, n, addr);
}

static const char *held_back(ssize_t r)
{
	return r < 0 && errno == ETIMEDOUT ? ": it holds the page back (userfaultfd, FUSE)" : "";
}

struct err *control_read(struct control *c, uint64_t addr, void *buf, uint32_t n)
{
	ssize_t r = control_pread(c, buf, n, addr);

	if (r == (ssize_t)n)
		return NULL;
	return err_new(r < 0 ? errno : EFAULT, "process %d (%s): cannot read %u bytes at 0x%llx%s",
		       c->pid, c->name, n, (unsigned long long)addr, held_back(r));
}

struct err *control_write(struct control *c, uint64_t addr, const void *buf, uint32_t n)
{
	ssize_t r = control_pwrite(c, buf, n, addr);

	if (r == (ssize_t)n)
		return NULL;
	return err_new(r < 0 ? errno : EFAULT, "process %d (%s): cannot write %u bytes at 0x%llx%s",
		       c->pid, c->name, n, (unsigned long long)addr, held_back(r));
}

struct err *control_maps(struct control *c, const struct mappings **ret)
{
	struct err *e;

	*ret = &c->maps;
	if (c->maps_known && c->stopped)
		return NULL;
	if (!c->stopped)
		c->alive = control_living_thread(c->pid);
	mappings_free(&c->maps);
	e = mappings_read_whole(c->pid, &c->maps);
	c->maps_known = !e;
	return e;
}

uint64_t control_auxv(struct control *c, uint64_t type)
{
	if (!c->auxv) {
		char *text = NULL;
		size_t n = 0;

		err_free(control_proc(c, "auxv", &text, &n));
		c->auxv = (uint64_t *)(void *)text;
		c->nauxv = (uint32_t)(n / 16);
	}
	for (uint32_t i = 0; c->auxv && i < c->nauxv; i++)
		if (c->auxv[2 * i] == type)
			return c->auxv[2 * i + 1];
	return 0;
}
