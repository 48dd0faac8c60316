/* Raises and restores the limit of open files. */
#include <sys/resource.h>

#include "base/nofile.h"

static struct rlimit given;

void nofile_raise(void)
{
	struct rlimit most;

	if (!given.rlim_cur && getrlimit(RLIMIT_NOFILE, &given))
		return;
	most = given;
	most.rlim_cur = most.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &most);
}

bool nofile_restore(void)
{
	if (given.rlim_cur)
		(void)setrlimit(RLIMIT_NOFILE, &given);
	return given.rlim_cur != 0;
}
