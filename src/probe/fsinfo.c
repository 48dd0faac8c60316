/* Provider fsinfo: operations on open files, taken from system calls. args[0] is the file, args[1]
 * the number of bytes.
 *
 * The system call's registers give the descriptor: sys_enter(regs, number), sys_exit(regs, result).
 * The provider misses bytes that the kernel reads or writes without a call that names the file:
 * page faults, exec, write-back, sendfile.
 */
#include "probe/event.h"

// clang-format off
#define REGS "((struct pt_regs *)arg0)"
#define CALL REGS "->orig_ax"
#define DONE "(int64_t)arg1 >= 0"
#define READS "(" CALL " == 0 || " CALL " == 17 || " CALL " == 19 || " CALL " == 295 || " CALL " == 327)"
#define WRITES "(" CALL " == 1 || " CALL " == 18 || " CALL " == 20 || " CALL " == 296 || " CALL " == 328)"
#define FILE_OF(fd) \
	"((int)" fd " >= 0 && (int)" fd " < curthread->files->fdt->max_fds ? " \
	"curthread->files->fdt->fd[(int)" fd "] : (struct file *)0)"
#define FILE_ARGS(fd, bytes) \
	ARGS({ .type = "struct file *", .xlate = "fileinfo_t *", .expr = FILE_OF(fd) }, { .type = "int", .expr = bytes })
#define ON_EXIT(name_, test, fd, bytes, note_) \
	EVENT(name_, "sys_exit", .min_params = 2, .filter = DONE " && " test, FILE_ARGS(fd, bytes), .note = note_)
#define ON_FD(name_, test, note_) ON_EXIT(name_, test, REGS "->di", "0", note_)
#define PATH(name_, calls) NO_EVENT(name_, "the call names a path and no open file: " calls)
#define NONE(name_) NO_EVENT(name_, "no system call corresponds to it: fbt:::entry of the file system, where functions can be probed")

/* syscalls.def has the numbers of the system calls. */
static const struct event events[] = {
	ON_EXIT("open", "(" CALL " == 2 || " CALL " == 257 || " CALL " == 437 || " CALL " == 85)", "arg1", "0",
		"open(2), openat(2), openat2(2), creat(2)"),
	EVENT("close", "sys_enter", .min_params = 2, .filter = "arg1 == 3", FILE_ARGS(REGS "->di", "0"),
	      .note = "close(2); not those that exit(2) and execve(2) make"),
	ON_EXIT("read", READS, REGS "->di", "(int)arg1", "read(2), pread(2), readv(2) and similar calls, pipes and sockets too"),
	ON_EXIT("write", WRITES, REGS "->di", "(int)arg1", "write(2), pwrite(2), writev(2) and similar calls, pipes and sockets too"),
	ON_EXIT("readdir", "(" CALL " == 78 || " CALL " == 217)", REGS "->di", "(int)arg1", "getdents(2)"),
	ON_FD("ioctl", CALL " == 16", NULL),
	ON_FD("fsync", "(" CALL " == 74 || " CALL " == 75)", "fsync(2), fdatasync(2)"),
	ON_FD("seek", CALL " == 8", "lseek(2)"),
	ON_FD("space", "(" CALL " == 77 || " CALL " == 285)", "ftruncate(2), fallocate(2)"),
	ON_FD("frlock", CALL " == 72 && " REGS "->si >= 5 && " REGS "->si <= 7", "locks of fcntl(2)"),
	ON_FD("getattr", "(" CALL " == 5 || (" CALL " == 262 && (" REGS "->r10 & 0x1000) != 0))",
	      "of an open file; stat(2) and others that name a path are syscall::*stat*:"),
	ON_FD("setattr", "(" CALL " == 91 || " CALL " == 93)", "fchmod(2), fchown(2); those that name a path are syscall::*ch*:"),
	/* 0x20 is MAP_ANONYMOUS. As signed numbers, user addresses are above 0. */
	ON_EXIT("map", CALL " == 9 && (" REGS "->r10 & 0x20) == 0", REGS "->r8", "(int)" REGS "->si", "mmap(2) of a file; args[1] is its length"),
	PATH("access", "syscall::*access*:"), PATH("create", "syscall::open*:, syscall::creat:"), PATH("link", "syscall::link*:"),
	PATH("lookup", "syscall::open*:, syscall::*stat*:"), PATH("mkdir", "syscall::mkdir*:"), PATH("readlink", "syscall::readlink*:"),
	PATH("remove", "syscall::unlink*:"), PATH("rename", "syscall::rename*:"), PATH("rmdir", "syscall::rmdir:, syscall::unlinkat:"),
	PATH("symlink", "syscall::symlink*:"),
	NONE("addmap"), NONE("delmap"), NONE("getpage"), NONE("inactive"), NONE("poll"), NONE("putpage"), NONE("rwlock"), NONE("rwunlock"),
};
// clang-format on

const struct provider provider_fsinfo =
	EVENTS("fsinfo", 19900, 19999, events,
	       "operations on open files, by the system calls that ask for them");
