/* Asks a stopped process for the handler of a signal: /proc tells only that there is one. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "program/target/target.h"

enum { PAGE = 4096, SET_SIZE = 8 /* bytes of the kernel's set of signals */ };

static struct err *call_in(struct control *c, const char *what, long nr, const uint64_t args[6],
			   int64_t *ret)
{
	struct err *e = control_syscall(c, nr, args, ret);

	if (!e && *ret < 0 && *ret > -PAGE)
		e = err_errno((int)-*ret, "%s in process %d", what, (int)control_pid(c));
	return e;
}

struct err *control_signal_handler(struct control *c, int signal, uint64_t *ret,
				   uint64_t *ret_flags)
{
	const uint64_t map[6] = {
		0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0
	};
	struct err *e, *unmapped;
	uint64_t action[2] = { 0 }; /* the first words of the kernel's struct sigaction */
	int64_t page, value;

	*ret = 0;
	e = call_in(c, "mmap", SYS_mmap, map, &page);
	if (e)
		return e;
	e = call_in(c, "rt_sigaction", SYS_rt_sigaction,
		    (uint64_t[6]){ (uint64_t)signal, 0, (uint64_t)page, SET_SIZE }, &value);
	e = e ?: control_read(c, (uint64_t)page, action, sizeof(action));
	*ret = action[0];
	if (ret_flags)
		*ret_flags = action[1];
	unmapped = call_in(c, "munmap", SYS_munmap, (uint64_t[6]){ (uint64_t)page, PAGE }, &value);
	if (!e)
		return unmapped;
	err_free(unmapped);
	return e;
}
