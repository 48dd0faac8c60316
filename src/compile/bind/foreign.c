/* Holds the hints for words of other tracers. See foreign.h. */
#include "compile/bind/foreign.h"

#include <string.h>

#include "base/mem.h"

struct foreign {
	const char *name, *hint;
};

// clang-format off
static const struct foreign words[] = {
	/* bpftrace: variables */
	{ "cgroup", "the cgroup of bpftrace has no name in D; /progenyof($target)/ keeps a process and its children apart" },
	{ "comm", "comm of bpftrace is execname in D" },
	{ "curtask", "curtask of bpftrace is curthread in D: curthread->comm" },
	{ "elapsed", "elapsed of bpftrace: keep timestamp in BEGIN, as in BEGIN { t = timestamp; }, and take timestamp - t" },
	{ "kstack", "kstack of bpftrace is stack() in D" },
	{ "nsecs", "nsecs of bpftrace is timestamp in D; the wall clock is walltimestamp" },
	{ "retval", "retval of bpftrace is arg1 in the return probe of a function, and arg0 in that of a system call" },
	{ "username", "username of bpftrace is uid in D: the number" },
	/* bpftrace: functions */
	{ "buf", "buf(p, n) of bpftrace is tracemem(copyin(p, n), n) in D" },
	{ "delete", "delete(@x[k]) of bpftrace: assign 0 to the element of an array, x[k] = 0; clear(@a) and trunc(@a) are for whole aggregations" },
	{ "hist", "hist() of bpftrace is quantize() in D: @ = quantize(n)" },
	{ "join", "join() of bpftrace: curpsinfo->pr_psargs has the arguments of the process" },
	{ "kaddr", "kaddr(\"name\") of bpftrace is &`name in D" },
	{ "ksym", "ksym() of bpftrace is func() or sym() in D" },
	{ "lhist", "lhist() of bpftrace is lquantize() in D: @ = lquantize(n, low, high, step)" },
	{ "ntop", "ntop() of bpftrace is inet_ntoa(), inet_ntoa6() or inet_ntop() in D" },
	{ "reg", "reg(\"ip\") of bpftrace is uregs[R_PC] in D" },
	{ "stats", "stats() of bpftrace is three aggregations in D: count(), avg(), sum()" },
	{ "str", "str(p) of bpftrace is copyinstr(p) for memory of a program, stringof(p) for the kernel's" },
	{ "strftime", "strftime() of bpftrace is printf(\"%Y\", walltimestamp) in D" },
	{ "time", "time() of bpftrace is printf(\"%Y\", walltimestamp) in D" },
	{ "uptr", "uptr() of bpftrace is copyin() or copyinto() in D" },
	{ "zero", "zero(@a) of bpftrace is clear(@a) in D" },
	/* SystemTap */
	{ "backtrace", "backtrace() of SystemTap is stack() or ustack() in D" },
	{ "gettimeofday_ns", "gettimeofday_ns() of SystemTap is walltimestamp in D" },
	{ "gettimeofday_us", "gettimeofday_us() of SystemTap is walltimestamp / 1000 in D" },
	{ "print_backtrace", "print_backtrace() of SystemTap is stack() in D" },
	{ "print_ubacktrace", "print_ubacktrace() of SystemTap is ustack() in D" },
	{ "println", "println() of SystemTap is printf(\"...\\n\") in D" },
	{ "user_string", "user_string(p) of SystemTap is copyinstr(p) in D" },
};

static const struct foreign probes[] = {
	/* bpftrace */
	{ "fentry", "fentry:NAME of bpftrace is fbt::NAME:entry in D" },
	{ "fexit", "fexit:NAME of bpftrace is fbt::NAME:return in D" },
	{ "hardware", "hardware:EVENT:COUNT of bpftrace is cpc:::EVENT-all-COUNT in D" },
	{ "interval", "interval:s:1 of bpftrace is tick-1s in D" },
	{ "kfunc", "kfunc:NAME of bpftrace is fbt::NAME:entry in D" },
	{ "kprobe", "kprobe:NAME of bpftrace is fbt::NAME:entry in D" },
	{ "kretfunc", "kretfunc:NAME of bpftrace is fbt::NAME:return in D" },
	{ "kretprobe", "kretprobe:NAME of bpftrace is fbt::NAME:return in D" },
	{ "profile", "profile:hz:99 of bpftrace is profile-99 in D" },
	{ "rawtracepoint", "rawtracepoint:NAME of bpftrace is sdt:::NAME in D" },
	{ "software", "software:EVENT:COUNT of bpftrace is cpc:::EVENT-all-COUNT in D" },
	{ "tracepoint", "tracepoint:GROUP:NAME of bpftrace is sdt:GROUP::NAME in D; "
	  "tracepoint:syscalls:sys_enter_NAME is syscall::NAME:entry, and sys_exit_NAME syscall::NAME:return" },
	{ "uprobe", "uprobe:FILE:FUNCTION of bpftrace is pid123:FILE:FUNCTION:entry in D, or pid$target with -p or -c; "
	  "FILE is the last part of its path" },
	{ "uretprobe", "uretprobe:FILE:FUNCTION of bpftrace is pid123:FILE:FUNCTION:return in D, or pid$target with -p or -c; "
	  "FILE is the last part of its path" },
	{ "usdt", "usdt:FILE:PROVIDER:NAME of bpftrace is PROVIDER123:::NAME in D, or PROVIDER$target with -p or -c" },
	/* perf */
	{ "raw_syscalls", "raw_syscalls:sys_enter of perf is syscall:::entry in D" },
	{ "syscalls", "syscalls:sys_enter_NAME of perf is syscall::NAME:entry in D, and sys_exit_NAME syscall::NAME:return" },
	{ "cycles", "cycles of perf is profile-997 in D, or cpc:::cycles-all-COUNT where the machine has counters" },
	/* SystemTap */
	{ "begin", "begin of SystemTap is BEGIN in D" },
	{ "global", "global of SystemTap: a variable of D is global as it is, and made by its first assignment" },
	{ "probe", "probe POINT { } of SystemTap is POINT { } in D, without the word probe" },
};
// clang-format on

static const char *foreign_find(const struct foreign *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].name, name))
			return table[i].hint;
	return NULL;
}

const char *foreign_word(const char *name)
{
	return foreign_find(words, ARRAY_SIZE(words), name);
}

/* D counts fields from the right. So the other tracer's first word is the leftmost field that is
 * not empty. */
const char *foreign_probe(const struct probe_desc *pd)
{
	const char *first = *pd->prov   ? pd->prov
			    : *pd->mod  ? pd->mod
			    : *pd->func ? pd->func
					: pd->name;

	return foreign_find(probes, ARRAY_SIZE(probes), first);
}
