/* Preloaded into bpftrace 0.17, which insists on raising RLIMIT_MEMLOCK. This needs
 * CAP_SYS_RESOURCE, but kernels since 5.11 do not need it. */
#define _GNU_SOURCE
#include <sys/resource.h>

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	(void)resource;
	(void)limit;
	return 0;
}

int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	(void)resource;
	(void)limit;
	return 0;
}
