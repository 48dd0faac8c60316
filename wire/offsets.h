/* Offsets in the kernel structures that bpf/ routines read. The compiler takes them from BTF and
 * puts them into MAP_RODATA. X(field, "struct", "member"): field is the byte offset of
 * struct.member. It is WIRE_NO_OFFSET when BTF lacks the member; a routine then returns its result
 * for a missing object. */
#ifndef DESCRY_WIRE_OFFSETS_H
#define DESCRY_WIRE_OFFSETS_H

#include "wire/wire_record.h"

#define WIRE_OFFSETS(X) \
	X(path_mnt, "path", "mnt") \
	X(path_dentry, "path", "dentry") \
	X(vfsmount_mnt_root, "vfsmount", "mnt_root") \
	X(mount_mnt, "mount", "mnt") \
	X(mount_mnt_parent, "mount", "mnt_parent") \
	X(mount_mnt_mountpoint, "mount", "mnt_mountpoint") \
	X(dentry_d_parent, "dentry", "d_parent") \
	X(dentry_d_name, "dentry", "d_name") \
	X(dentry_d_inode, "dentry", "d_inode") \
	X(dentry_d_sb, "dentry", "d_sb") \
	X(qstr_len, "qstr", "len") \
	X(qstr_name, "qstr", "name") \
	X(inode_i_ino, "inode", "i_ino") \
	X(super_block_s_type, "super_block", "s_type") \
	X(file_system_type_name, "file_system_type", "name") \
	X(task_mm, "task_struct", "mm") \
	X(task_files, "task_struct", "files") \
	X(task_real_parent, "task_struct", "real_parent") \
	X(task_tgid, "task_struct", "tgid") \
	X(task_comm, "task_struct", "comm") \
	X(mm_arg_start, "mm_struct", "arg_start") \
	X(mm_arg_end, "mm_struct", "arg_end") \
	X(files_fdt, "files_struct", "fdt") \
	X(fdtable_max_fds, "fdtable", "max_fds") \
	X(fdtable_fd, "fdtable", "fd") \
	X(pt_regs_orig_ax, "pt_regs", "orig_ax")

enum { WIRE_NO_OFFSET = 0xffff };

struct wire_offsets {
#define X(field, s, m) uint32_t field;
	WIRE_OFFSETS(X)
#undef X
};

_Static_assert(sizeof(struct wire_offsets) == 26 * 4, "offsets");

#endif
