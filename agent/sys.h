/* System calls without a C library. They return the kernel's result, including -errno. */
#ifndef DESCRY_AGENT_SYS_H
#define DESCRY_AGENT_SYS_H

#include <stdint.h>

enum {
	SYS_READ = 0,
	SYS_WRITE = 1,
	SYS_OPEN = 2,
	SYS_CLOSE = 3,
	SYS_STAT = 4,
	SYS_FSTAT = 5,
	SYS_LSEEK = 8,
	SYS_MMAP = 9,
	SYS_MPROTECT = 10,
	SYS_MUNMAP = 11,
	SYS_BRK = 12,
	SYS_RT_SIGACTION = 13,
	SYS_RT_SIGPROCMASK = 14,
	SYS_PREAD64 = 17,
	SYS_PWRITE64 = 18,
	SYS_ACCESS = 21,
	SYS_SCHED_YIELD = 24,
	SYS_MREMAP = 25,
	SYS_MADVISE = 28,
	SYS_GETPID = 39,
	SYS_SOCKET = 41,
	SYS_CONNECT = 42,
	SYS_SENDTO = 44,
	SYS_SENDMSG = 46,
	SYS_RECVMSG = 47,
	SYS_BIND = 49,
	SYS_SETSOCKOPT = 54,
	SYS_CLONE = 56, /* then fork */
	SYS_VFORK = 58,
	SYS_EXECVE = 59,
	SYS_EXIT = 60,
	SYS_WAIT4 = 61,
	SYS_KILL = 62,
	SYS_FCNTL = 72,
	SYS_READLINK = 89,
	SYS_GETUID = 102,
	SYS_GETGID = 104,
	SYS_GETPPID = 110,
	SYS_RT_SIGQUEUEINFO = 129,
	SYS_SIGALTSTACK = 131,
	SYS_MLOCKALL = 151,
	SYS_PRCTL = 157,
	SYS_ARCH_PRCTL = 158,
	SYS_GETTID = 186,
	SYS_TKILL = 200,
	SYS_FUTEX = 202,
	SYS_CLOCK_GETTIME = 228,
	SYS_EXIT_GROUP = 231,
	SYS_TGKILL = 234,
	SYS_OPENAT = 257,
	SYS_RT_TGSIGQUEUEINFO = 297,
	SYS_GETCPU = 309,
	SYS_PROCESS_VM_READV = 310,
	SYS_PROCESS_VM_WRITEV = 311,
	SYS_SECCOMP = 317,
	SYS_EXECVEAT = 322,
	SYS_PIDFD_SEND_SIGNAL = 424,
	SYS_CLONE3 = 435,
};

enum {
	E_PERM = -1,
	E_NOENT = -2,
	E_SRCH = -3,
	E_INTR = -4,
	E_2BIG = -7,
	E_AGAIN = -11,
	E_NOMEM = -12,
	E_FAULT = -14,
	E_BUSY = -16,
	E_EXIST = -17,
	E_INVAL = -22,
	E_NOSYS = -38,
};

static inline int64_t sys6(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			   uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
static inline int64_t sys4(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	register uint64_t r10 __asm__("r10") = d;
	int64_t r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return r;
}
static inline int64_t sys2(long nr, uint64_t a, uint64_t b)
{
	return sys4(nr, a, b, 0, 0);
}

#endif
