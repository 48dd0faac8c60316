/* Translates names of other systems in probe descriptions, and explains probes that Linux lacks. */
#include "probe/foreign_probes.h"

#include <ctype.h>
#include <string.h>

#include "base/glob.h"

static const struct {
	const char *there, *here, *system;
} syscalls[] = {
#define FOREIGN(there, here, system) { #there, #here, system },
#include "probe/foreign_probes.def"
#undef FOREIGN
};

/* Functions in which other systems have the probes of these providers. Linux's probes have no
 * function. */
static const struct {
	const char *prov, *func;
} functions[] = {
	{ "io", "bdev_strategy" },   { "io", "biodone" },         { "proc", "proc_exit" },
	{ "proc", "exit1" },         { "proc", "cfork" },         { "sched", "resume" },
	{ "sched", "swtch" },        { "sched", "setbackdq" },    { "sched", "setfrontdq" },
	{ "sched", "cpu_resched" },  { "sysinfo", "read" },       { "sysinfo", "write" },
	{ "sched", "sched_switch" }, { "io", "g_disk_start" },    { "io", "buf_strategy" },
	{ "io", "buf_biodone" },     { "sysinfo", "idle_enter" },
};

/* Counters of mib under the names that older systems gave them, before these counters became 64
 * bits wide or were kept per interface. */
static const struct {
	const char *there, *here;
} counters[] = {
	{ "ipInReceives", "ipIfStatsHCInReceives" },
	{ "ipInOctets", "ipIfStatsHCInOctets" },
	{ "ipOutRequests", "ipIfStatsHCOutRequests" },
	{ "ipOutTransmits", "ipIfStatsHCOutTransmits" },
	{ "ipOutOctets", "ipIfStatsHCOutOctets" },
	{ "udpInDatagrams", "udpHCInDatagrams" },
	{ "udpOutDatagrams", "udpHCOutDatagrams" },
	{ "tcpHCInSegs", "tcpInSegs" },
	{ "tcpHCOutSegs", "tcpOutSegs" },
};

/* Probes of other systems for which Linux has no event that D can reach, and the probe to use
 * instead. */
static const struct {
	const char *prov, *mod, *func, *name; /* patterns, as in a description */
	const char *why;
} missing[] = {
	{ "vfs", "*", "*", "*",
	  "provider vfs is FreeBSD's: fsinfo:::, or fbt::vfs_*:entry where functions of the kernel can be probed" },
	{ "namecache", "*", "*", "*",
	  "Linux has no event for look-ups in its name cache: fbt::lookup_fast:entry where functions of the kernel can be probed" },
	{ "io", "nfs", "*", "*",
	  "requests of NFS are not block I/O here; its tracepoints are sdt:nfs::: when the module is loaded" },
	{ "fbt", "*", "fop_*", "*", "Linux calls these vfs_read, vfs_write, vfs_open ..." },
	{ "hotspot*", "*", "*", "*",
	  "the process has no JVM that was built with probes, as those of Debian and Adoptium are; -c needs the java program itself, not a shell that starts it" },
	{ "node*", "*", "*", "http-server-response",
	  "Node.js ends a response in JavaScript, where descry has no probes; http-server-request and net-stream-end are there" },
	{ "node*", "*", "*", "http-client-request",
	  "Node.js makes a request in JavaScript, where descry has no probes; http-client-response is there" },
	{ "node*", "*", "*", "*",
	  "the process does not run Node.js, or its program lacks the symbol of the function; -c needs the node program itself, not a shell that starts it" },
};

/* System calls that Linux does not have. Their probes never fire, because no program here makes the
 * calls. */
static const char *const never[] = {
	"xstat",       "lxstat",       "fxstat",      "xmknod",      "resolvepath",
	"stime",       "llseek",       "lwp_create",  "lwp_park",    "lwp_sigmask",
	"lwp_suspend", "lwp_continue", "schedctl",    "systeminfo",  "pathconf",
	"fpathconf",   "sysconfig",    "memcntl",     "mmapobj",     "getdents_r",
	"ntp_gettime", "pgrpsys",      "rusagesys",   "tasksys",     "zone",
	"door",        "port",         "autofssys",   "spawn",       "execv",
	"fexecve",     "kevent",       "kqueue",      "thr_new",     "thr_self",
	"issetugid",   "mac_execve",   "posix_spawn", "getattrlist", "bsdthread_create",
	"semsys",      "shmsys",       "msgsys",      "fsat",        "uadmin",
};

bool probe_never_fires(const struct probe_desc *pd)
{
	if (strcmp(pd->prov, "syscall"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (!strcmp(never[i], pd->func))
			return glob_match(pd->name, "entry") || glob_match(pd->name, "return");
	return false;
}

/* Is module a name of the kernel on another system, such as "genunix" or "mach_kernel"? */
static bool foreign_is_kernel(const char *module)
{
	static const char *const names[] = { "genunix", "unix", "mach_kernel", "kernel" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], module))
			return true;
	return false;
}

const char *foreign_syscall(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++)
		if (!strcmp(syscalls[i].there, name))
			return syscalls[i].here;
	return NULL;
}

const char *foreign_names_of(struct probe_set *ps, const char *syscall)
{
	const char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++)
		if (*syscalls[i].here == *syscall && !strcmp(syscalls[i].here, syscall))
			text = arena_printf(&ps->arena, "%s%s%s (%s)", text ? text : "elsewhere ",
					    text ? ", " : "", syscalls[i].there,
					    syscalls[i].system);
	return text;
}

/* Returns true when prov is pid123 or a name of a USDT provider. The modules of these providers are
 * files. */
static bool is_of_process(const char *prov)
{
	size_t n = strlen(prov);

	return n && isdigit((unsigned char)prov[n - 1]);
}

struct probe_desc foreign_translate(const struct probe_desc *pd)
{
	struct probe_desc d = *pd;

	if (foreign_is_kernel(d.mod) && !is_of_process(d.prov))
		d.mod = !strcmp(d.prov, "fbt") ? "vmlinux" : "";
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(functions[i].prov, d.prov) && !strcmp(functions[i].func, d.func))
			d.func = "";
	for (size_t i = 0; i < ARRAY_SIZE(counters) && !strcmp(d.prov, "mib"); i++)
		if (!strcmp(counters[i].there, d.name))
			d.name = counters[i].here;
	return d;
}

const char *probe_missing(const struct probe_desc *pd)
{
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
		if (*pd->prov && glob_match(missing[i].prov, pd->prov) &&
		    glob_match(missing[i].mod, pd->mod) && glob_match(missing[i].func, pd->func) &&
		    glob_match(missing[i].name, pd->name))
			return missing[i].why;
	return NULL;
}
