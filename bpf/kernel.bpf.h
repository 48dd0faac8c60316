/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel objects: paths, arguments of a process, files, parents, time on CPU. */

/* A member of a kernel structure; false when it cannot be read or this kernel does not have it. */
INLINE bool member(u64 object, u32 offset, void *ret, u32 size)
{
	return object && offset != WIRE_NO_OFFSET && !bpf_probe_read_kernel(ret, size, KERNEL(object + offset));
}

INLINE u64 pointer(u64 object, u32 offset)
{
	u64 v = 0;

	return member(object, offset, &v, 8) ? v : 0;
}

/* --- paths: from the file up to the root, over mount points --- */

struct walk {
	const struct wire_offsets *o;
	char *dst;                   /* NULL in the first pass, which only measures */
	u64 size;
	u64 dentry, vfsmount;
	u64 end;                     /* second pass: where the name looked at ends */
	u64 len;                     /* first pass: bytes of the whole path */
	long error;
};

enum { PATH_DEPTH = 256 };

/* The name of w->dentry: its length, and where it is. */
INLINE u64 dentry_name(struct walk *w, u64 *ret_name)
{
	const struct wire_offsets *o = w->o;
	u32 len = 0;

	*ret_name = pointer(w->dentry, o->dentry_d_name + o->qstr_name);
	if (!member(w->dentry, o->dentry_d_name + o->qstr_len, &len, 4))
		w->error = E_FAULT;
	return len;
}

/* To the parent: 1 at the root. Stepping over the root of a mount leaves the name as it is, *ret_named false. */
INLINE long step_up(struct walk *w, u64 *ret_parent)
{
	const struct wire_offsets *o = w->o;
	u64 root = pointer(w->vfsmount, o->vfsmount_mnt_root), mount, up;

	if (w->dentry == root) {
		mount = w->vfsmount - o->mount_mnt;
		up = pointer(mount, o->mount_mnt_parent);
		if (!up || up == mount)
			return 1;
		w->dentry = pointer(mount, o->mount_mnt_mountpoint);
		w->vfsmount = up + o->mount_mnt;
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
	w->len += 1 + dentry_name(w, &name);
	w->dentry = parent;
	return w->error != 0;
}

struct name_copy {
	char *dst;
	u64 size, at, name, len;
};

/* Eight bytes of a name: whole words where there is room on both sides, the rest byte by byte, so that the name behind
 * it, which is there already, stays. */
CALLBACK copy_name_word(u32 index, struct name_copy *c)
{
	u64 done = (u64)index * 8, at = c->at + done, w;

	if (done >= c->len)
		return 1;
	if (read_word(c->name + done, &w))
		return 1;
	OPAQUE(at);
	if (c->len - done >= 8) {
		put_word(c->dst, c->size, at, w);
		return 0;
	}
#pragma clang loop unroll(full)
	for (int i = 0; i < 7; i++) {
		if (done + i >= c->len || at >= c->size)
			return 1;
		c->dst[at] = (char)w;
		w >>= 8;
		at++;
		OPAQUE(at);
	}
	return 1;
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
	if (w->error || len >= WIRE_STRING_MAX || len >= w->end)
		return 1;
	if (at <= w->size) {
		struct name_copy c = { .dst = w->dst, .size = w->size, .at = at, .name = name, .len = len };

		bpf_loop(32, copy_name_word, &c, 0);
	}
	w->end = at - 1;
	at--;
	OPAQUE(at);
	put_char(w->dst, w->size, at, '/');
	w->dentry = parent;
	return 0;
}

/* Pipes, sockets, anonymous inodes have no path: "pipe:[123]" as in /proc/PID/fd. */
INLINE long pseudo_path(char *dst, u64 size, u64 dentry, const struct wire_offsets *o)
{
	u64 type = pointer(pointer(dentry, o->dentry_d_sb), o->super_block_s_type);
	u64 fs = pointer(type, o->file_system_type_name), name = pointer(dentry, o->dentry_d_name + o->qstr_name);
	u64 word = 0, prefix, n;
	char c = 0;

	if (!fs || read_word(fs, &word))
		return NOT_FOUND;
	bpf_probe_read_kernel(&c, 1, KERNEL(name));
	if (c) {
		/* "anon_inode:[eventpoll]", "/memfd:name" */
		*(u64 *)dst = 0x6f6e695f6e6f6e61ull;             /* anon_ino */
		*(u32 *)(dst + 8) = 0x003a6564;                  /* de: */
		if (word != 0x646f6e695f6e6f61ull && (u32)word != 0x6e6f6e61) {
			dst[0] = '/';                            /* shmem and the like: a deleted file */
			return bpf_probe_read_kernel_str(dst + 1, size - 1, KERNEL(name)) < 0 ? E_FAULT : 0;
		}
		return bpf_probe_read_kernel_str(dst + 11, size - 11, KERNEL(name)) < 0 ? E_FAULT : 0;
	}
	/* sockfs is called socket, others by their name without "fs". */
	word &= text_mask(word);
	if (word == 0x73666b636f73ull) {
		prefix = 0x74656b636f73ull;
		n = 6;
	} else {
		n = mask_bytes(text_mask(word));
		n = n > 2 ? n - 2 : 0;
		prefix = word & ((1ull << ((n * 8) & 63)) - 1);
	}
	struct digits d = { .dst = dst, .size = size, .base = 10, .n = hidden(0) };
	u64 inode = pointer(pointer(dentry, o->dentry_d_inode), o->inode_i_ino);

	*(u64 *)dst = prefix;
	if (n > 7)
		return NOT_FOUND;
	dst[n] = ':';
	dst[n + 1] = '[';
	d.value = inode;
	bpf_loop(64, count_digit, &d, 0);
	d.pos = hidden(n + 2 + d.n);
	put_char(dst, size, d.pos, ']');
	put_char(dst, size, d.pos + 1, 0);
	d.value = inode;
	bpf_loop(64, put_digit, &d, 0);
	return 0;
}

/* The whole name of dentry, seen through vfsmount (0: within its file system). */
INLINE long write_path(char *dst, u64 size, u64 dentry, u64 vfsmount, const struct wire_offsets *o)
{
	struct walk w = { .o = o, .dst = dst, .size = size, .dentry = dentry, .vfsmount = vfsmount };

	bpf_loop(PATH_DEPTH, measure_step, &w, 0);
	if (w.error)
		return w.error;
	if (!w.len)
		return one_char(dst, '/');
	w.dentry = dentry;
	w.vfsmount = vfsmount;
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
	if (o->path_dentry == WIRE_NO_OFFSET || o->mount_mnt_parent == WIRE_NO_OFFSET)
		return NOT_FOUND;
	if (bpf_probe_read_kernel(&dentry, 8, KERNEL(path + o->path_dentry)) ||
	    bpf_probe_read_kernel(&vfsmount, 8, KERNEL(path + o->path_mnt)))
		return E_FAULT;
	if (!dentry || !vfsmount)
		return NOT_FOUND;
	/* Its own parent, but not the root of its mount: nothing leads to it. */
	if (pointer(dentry, o->dentry_d_parent) == dentry && pointer(vfsmount, o->vfsmount_mnt_root) != dentry)
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
	return root && o->mount_mnt_parent != WIRE_NO_OFFSET ? write_path(dst, size, root, vfsmount, o) : NOT_FOUND;
}

/* --- processes --- */

struct spaces {
	char *dst;
	u64 size, len;
};

/* NUL to space in the first len bytes; what follows becomes NUL. */
CALLBACK space_word(u32 index, struct spaces *s)
{
	u64 at = (u64)index * 8, w, zeros;

	if (at >= s->len || at > s->size - 8)
		return 1;
	w = *(u64 *)(s->dst + at);
	zeros = ~(((w & ~(ONES << 7)) + ~(ONES << 7)) | w) & (ONES << 7);
	w |= zeros >> 2;                                 /* 0x80 -> 0x20 */
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
	if (mm && mm == own && start && end > start) {
		if (n > size - 1)
			n = size - 1;
		OPAQUE(n);
		if (n > 0 && n < size && !bpf_probe_read_user(dst, (u32)n, KERNEL(start))) {
			s.len = n;
			/* The NUL that ends the last argument is the end, not a space. */
			if (n <= size - 1 && !dst[n - 1])
				s.len = n - 1;
			bpf_loop((u32)(size >> 3), space_word, &s, 0);
			put_char(dst, size, s.len, 0);
			return 0;
		}
	}
	/* Another's memory cannot be read from here; a kernel thread has none. */
	if (o->task_comm == WIRE_NO_OFFSET || bpf_probe_read_kernel_str(dst, 16, KERNEL(task + o->task_comm)) < 0) {
		dst[0] = 0;
		return E_FAULT;
	}
	return 0;
}

ROUTINE u64 d_getfile(s64 fd, const struct wire_offsets *o)
{
	u64 files = pointer(bpf_get_current_task(), o->task_files), table = pointer(files, o->files_fdt);
	u32 max = 0;

	if (!table || !member(table, o->fdtable_max_fds, &max, 4) || (u64)fd >= max)
		return 0;
	return pointer(pointer(table, o->fdtable_fd) + (u64)fd * 8, 0);
}

struct ancestors {
	const struct wire_offsets *o;
	u64 task, pid, found;
};

CALLBACK ancestor(u32 index, struct ancestors *a)
{
	u32 tgid = 0;
	u64 parent;

	if (!member(a->task, a->o->task_tgid, &tgid, 4))
		return 1;
	if (tgid == (u32)a->pid) {
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

	bpf_loop(1024, ancestor, &a, 0);
	return a.found;
}

/* --- vtimestamp: the first two words of a thread's storage: on CPU since, time accumulated before --- */

/* Threads that have no storage have not asked for their time: nothing is kept for them. */
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
