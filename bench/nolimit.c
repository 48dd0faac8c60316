/* Preloaded into bpftrace 0.17: it insists on raising RLIMIT_MEMLOCK, which needs CAP_SYS_RESOURCE
 * and which kernels since 5.11 do not ask for. */
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
