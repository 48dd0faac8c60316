/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads kernel objects: paths, arguments of a process, files, parents, time on CPU. */

/* Reads a pointer member of a kernel structure. Needs no checks, because a read that fails (as
 * reads near address 0 do) leaves 0. */
INLINE u64 pointer(u64 object, u32 offset)
{
	u64 v;

	bpf_probe_read_kernel(&v, 8, KERNEL(object + offset));
	return v;
}

INLINE u32 member32(u64 object, u32 offset)
{
	u32 v;

	bpf_probe_read_kernel(&v, 4, KERNEL(object + offset));
	return v;
}

/* --- paths: from the file up to the root, over mount points --- */

struct walk {
	const struct wire_offsets *o;
	char *dst; /* NULL in the first pass, which only measures */
	u64 size;
	u64 dentry, vfsmount;
	u64 end; /* second pass: the end of the present name */
	u64 len; /* first pass: bytes of the whole path */
};

enum { PATH_DEPTH = 256 };

/* Returns the length of w->dentry's name, and its address in *ret_name. */
INLINE u64 dentry_name(struct walk *w, u64 *ret_name)
{
	const struct wire_offsets *o = w->o;

	*ret_name = pointer(w->dentry, o->dentry_d_name + o->qstr_name);
	return member32(w->dentry, o->dentry_d_name + o->qstr_len);
}

/* Steps to the parent. Returns 1 at the root. At the root of a mount, steps to the mount point
 * without a name and sets *ret_named to false. */
INLINE long step_up(struct walk *w, u64 *ret_parent)
{
	const struct wire_offsets *o = w->o;
	u64 root = pointer(w->vfsmount, o->vfsmount_mnt_root), mount, up;

	if (w->dentry == root) {
		mount = w->vfsmount - o->mount_mnt;
		up = pointer(mount, o->mount_mnt_parent);
		if (!up || up == mount)
			return 1;
		w->dentry = hidden(pointer(mount, o->mount_mnt_mountpoint));
		w->vfsmount = hidden(up + o->mount_mnt);
		*ret_parent = 0;
		return !w->dentry;
	}
	*ret_parent = pointer(w->dentry, o->dentry_d_parent);
	return !*ret_parent || *ret_parent == w->dentry;
}

CALLBACK measure_step(u32 index, struct walk *w)
{
	u64 parent, name;

	if (step_up(w, &parent))
		return 1;
	if (!parent)
		return 0;
	w->len = hidden(w->len + 1 + dentry_name(w, &name));
	w->dentry = hidden(parent);
	return 0;
}

struct name_copy {
	char *dst;
	u64 size, at, name, len;
};

/* Copies eight bytes of a name. Merges the word with the bytes behind the name, which are there
 * already and stay. */
CALLBACK copy_name_word(u32 index, struct name_copy *c)
{
	u64 done = (u64)index * 8, at = c->at + done, left = c->len - done, mask = ~0ull, shift = 0,
	    w;
	u64 *to;

	if (done >= c->len || at >= c->size || read_word(c->name + done, &w))
		return 1;
	if (left < 8)
		mask = (1ull << (left * 8 & 63)) - 1;
	if (at > c->size - 8) {
		shift = (at - (c->size - 8)) * 8;
		at = c->size - 8;
	}
	OPAQUE(at);
	if (at > c->size - 8)
		return 1;
	to = (u64 *)(c->dst + at);
	*to = (*to & ~(mask << (shift & 63))) | (w & mask) << (shift & 63);
	return 0;
}

CALLBACK write_step(u32 index, struct walk *w)
{
	u64 parent, name, len, at;

	if (step_up(w, &parent))
		return 1;
	if (!parent)
		return 0;
	len = dentry_name(w, &name);
	at = w->end - len;
	if (len >= WIRE_STRING_MAX || len >= w->end)
		return 1;
	if (at <= w->size) {
		struct name_copy c = {
			.dst = w->dst, .size = w->size, .at = at, .name = name, .len = len
		};

		bpf_loop(32, copy_name_word, &c, 0);
	}
	at--;
	w->end = hidden(at);
	OPAQUE(at);
	put_char(w->dst, w->size, at, '/');
	w->dentry = hidden(parent);
	return 0;
}

/* The first bytes of file systems' names, as numbers. */
#define NAME_SOCKFS 0x73666b636f73ull       /* "sockfs" */
#define NAME_SOCKET 0x74656b636f73ull       /* "socket" */
#define NAME_ANON 0x6e6f6e61u               /* "anon" of anon_inodefs */
#define NAME_ANON_INO 0x6f6e695f6e6f6e61ull /* "anon_ino" */
#define NAME_DE 0x3a6564u                   /* "de:" */

/* Writes the name of a pipe, a socket or an anonymous inode, which have no path: "pipe:[123]",
 * "anon_inode:[eventfd]" as in /proc/PID/fd. A file without a directory (memfd, deleted tmpfs file)
 * gives "/name". */
INLINE long pseudo_path(char *dst, u64 size, u64 dentry, const struct wire_offsets *o)
{
	u64 type = pointer(pointer(dentry, o->dentry_d_sb), o->super_block_s_type);
	u64 name = pointer(dentry, o->dentry_d_name + o->qstr_name), inode, fs = 0, n;
	struct digits d = { .dst = dst, .size = size, .base = 10, .n = hidden(0) };

	if (read_word(pointer(type, o->file_system_type_name), &fs))
		return NOT_FOUND;
	fs &= text_mask(fs);
	n = mask_bytes(text_mask(fs));
	if (fs == NAME_SOCKFS) {
		*(u64 *)dst = NAME_SOCKET;
		n = 6;
	} else if (char_at(name)) {
		n = 1;
		dst[0] = '/';
		if ((u32)fs == NAME_ANON) {
			*(u64 *)dst = NAME_ANON_INO;
			*(u32 *)(dst + 8) = NAME_DE;
			n = 11;
		}
		OPAQUE(n);
		return n < 12 && bpf_probe_read_kernel_str(dst + n, size - 12, KERNEL(name)) >= 0
			       ? 0
			       : E_FAULT;
	} else {
		/* The file system's name without "fs". */
		n = n > 2 ? n - 2 : 0;
		*(u64 *)dst = fs & ((1ull << ((n * 8) & 63)) - 1);
	}
	OPAQUE(n);
	if (n > 7)
		return NOT_FOUND;
	dst[n] = ':';
	dst[n + 1] = '[';
	inode = pointer(pointer(dentry, o->dentry_d_inode), o->inode_i_ino);
	d.value = inode;
	bpf_loop(64, count_digit, &d, 0);
	d.pos = hidden(n + 2 + d.n);
	put_char(dst, size, d.pos, ']');
	put_char(dst, size, d.pos + 1, 0);
	d.value = inode;
	bpf_loop(64, put_digit, &d, 0);
	return 0;
}

/* Writes the names from dentry up to the root of its mount, and on through the mounts below
 * (vfsmount 0: within its file system only). */
INLINE long write_path(char *dst, u64 size, u64 dentry, u64 vfsmount, const struct wire_offsets *o)
{
	struct walk w = { .o = o, .dst = dst, .size = size, .len = hidden(0) };

	w.dentry = hidden(dentry);
	w.vfsmount = hidden(vfsmount);
	bpf_loop(PATH_DEPTH, measure_step, &w, 0);
	if (!w.len)
		return one_char(dst, '/');
	w.dentry = hidden(dentry);
	w.vfsmount = hidden(vfsmount);
	w.end = hidden(w.len);
	bpf_loop(PATH_DEPTH, write_step, &w, 0);
	put_char(dst, size, w.len, 0);
	dst[size - 1] = 0;
	return 0;
}

ROUTINE long d_path(char *dst, u64 size, u64 path, const struct wire_offsets *o)
{
	u64 dentry, vfsmount;

	dst[0] = 0;
	if (o->path_dentry == WIRE_NO_OFFSET || o->mount_mnt_parent == WIRE_NO_OFFSET ||
	    o->dentry_d_parent == WIRE_NO_OFFSET || o->vfsmount_mnt_root == WIRE_NO_OFFSET)
		return NOT_FOUND;
	if (bpf_probe_read_kernel(&dentry, 8, KERNEL(path + o->path_dentry)) ||
	    bpf_probe_read_kernel(&vfsmount, 8, KERNEL(path + o->path_mnt)))
		return E_FAULT;
	if (!dentry || !vfsmount)
		return NOT_FOUND;
	/* The dentry is its own parent but not the root of its mount, so no path leads to it. */
	if (pointer(dentry, o->dentry_d_parent) == dentry &&
	    pointer(vfsmount, o->vfsmount_mnt_root) != dentry)
		return pseudo_path(dst, size, dentry, o);
	return write_path(dst, size, dentry, vfsmount, o);
}

ROUTINE long d_dentry_path(char *dst, u64 size, u64 dentry, const struct wire_offsets *o)
{
	dst[0] = 0;
	return dentry ? write_path(dst, size, dentry, 0, o) : NOT_FOUND;
}

ROUTINE long d_mount_point(char *dst, u64 size, u64 vfsmount, const struct wire_offsets *o)
{
	u64 root = pointer(vfsmount, o->vfsmount_mnt_root);

	dst[0] = 0;
	return root && o->mount_mnt_parent != WIRE_NO_OFFSET
		       ? write_path(dst, size, root, vfsmount, o)
		       : NOT_FOUND;
}

/* --- processes --- */

struct spaces {
	char *dst;
	u64 size, len;
};

/* Changes NULs in the first len bytes to spaces, and clears the bytes behind. */
CALLBACK space_word(u32 index, struct spaces *s)
{
	u64 at = (u64)index * 8, w, zeros;

	OPAQUE(at);
	if (at >= s->len || at > s->size - 8)
		return 1;
	w = *(u64 *)(s->dst + at);
	zeros = ~(((w & ~(ONES << 7)) + ~(ONES << 7)) | w) & (ONES << 7);
	w |= zeros >> 2; /* 0x80 -> 0x20 */
	if (s->len - at < 8)
		w &= (1ull << ((s->len - at) * 8 & 63)) - 1;
	*(u64 *)(s->dst + at) = w;
	return 0;
}

ROUTINE long d_psargs(char *dst, u64 size, u64 task, const struct wire_offsets *o)
{
	u64 mm = pointer(task, o->task_mm), own = pointer(bpf_get_current_task(), o->task_mm);
	u64 start = pointer(mm, o->mm_arg_start), end = pointer(mm, o->mm_arg_end), n = end - start;
	struct spaces s = { .dst = dst, .size = size };

	dst[0] = 0;
	if (o->mm_arg_start != WIRE_NO_OFFSET && mm && mm == own && start && end > start) {
		if (n > size - 1)
			n = size - 1;
		OPAQUE(n);
		if (n > 0 && n < size && !bpf_probe_read_user(dst, (u32)n, KERNEL(start))) {
			u64 last = n - 1;

			/* The NUL of the last argument ends the text and becomes no space. */
			OPAQUE(last);
			s.len = last < size && !dst[last] ? last : n;
			bpf_loop((u32)(size >> 3), space_word, &s, 0);
			put_char(dst, size, s.len, 0);
			return 0;
		}
	}
	/* The program can read only the current process's arguments, and a kernel thread has
	 * none. */
	if (o->task_comm == WIRE_NO_OFFSET ||
	    bpf_probe_read_kernel_str(dst, 16, KERNEL(task + o->task_comm)) < 0) {
		dst[0] = 0;
		return E_FAULT;
	}
	return 0;
}

ROUTINE u64 d_getfile(s64 fd, const struct wire_offsets *o)
{
	u64 files = pointer(bpf_get_current_task(), o->task_files),
	    table = pointer(files, o->files_fdt);

	if (o->fdtable_fd == WIRE_NO_OFFSET || (u64)fd >= member32(table, o->fdtable_max_fds))
		return 0;
	return pointer(pointer(table, o->fdtable_fd) + (u64)fd * 8, 0);
}

struct ancestors {
	const struct wire_offsets *o;
	u64 task, pid, found;
};

CALLBACK ancestor(u32 index, struct ancestors *a)
{
	u64 parent;

	if (member32(a->task, a->o->task_tgid) == (u32)a->pid) {
		a->found = 1;
		return 1;
	}
	parent = pointer(a->task, a->o->task_real_parent);
	if (!parent || parent == a->task)
		return 1;
	a->task = parent;
	return 0;
}

ROUTINE u64 d_progenyof(u64 pid, const struct wire_offsets *o)
{
	struct ancestors a = { .o = o, .task = bpf_get_current_task(), .pid = pid };

	if (o->task_tgid == WIRE_NO_OFFSET || o->task_real_parent == WIRE_NO_OFFSET)
		return 0;
	bpf_loop(1024, ancestor, &a, 0);
	return a.found;
}

/* --- vtimestamp: the first two words of a thread's storage: on CPU since, time accumulated
 * before --- */

/* Returns the thread's errno, for probes behind the system call. A uretprobe is a system call of
 * its own (335, 336) and sets orig_ax to -1; sigreturn does so too. */
ROUTINE long d_sys_error(void *tls, u64 regs, u64 ret)
{
	struct wire_tls *t;
	u64 nr = pointer(regs, 15 * 8);

	if (nr >= 1024 || nr == 335 || nr == 336)
		return 0;
	t = bpf_task_storage_get(tls, bpf_get_current_task_btf(), 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t)
		t->error = ret >= -4095ull ? -ret : 0;
	return 0;
}

ROUTINE long d_sched_switch(void *tls, void *prev, void *next)
{
	u64 now = bpf_ktime_get_ns();
	u64 *t = bpf_task_storage_get(tls, prev, 0, 0);

	if (t && t[0]) {
		t[1] += now - t[0];
		t[0] = 0;
	}
	t = bpf_task_storage_get(tls, next, 0, 0);
	if (t)
		t[0] = now;
	return 0;
}
