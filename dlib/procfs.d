/* Processes and threads in the form of Solaris's proc(5), from the kernel's struct task_struct.
 *
 * D cannot express these values. The compiler has subroutines for them, which programs should not use:
 *
 *	string __psargs(struct task_struct *t)        the argument area of t's process, joined by spaces; comm
 *	                                              for a kernel thread or when it cannot be read
 *	string __dentry_path(struct dentry *d)        d's path within its file system (io.d)
 *	string __mount_point(struct vfsmount *m)      where m is mounted (io.d)
 *	int __cpu_chip(int cpu)                       its socket (sched.d)
 *	int __cpu_node(int cpu)                       its memory node (sched.d)
 *	int __cpu_mhz(int cpu)                        its clock (sched.d)
 *	uint64_t __load(int i), __memory(int i)       the machine's load averages and memory (foreign.d)
 *
 * and d_path(struct path *), which programs may use too. A member without a line in the translator has no counterpart
 * in Linux: using it is an error.
 */
#pragma D depends_on library types.d

typedef struct lwpsinfo {
	int pr_flag;
	id_t pr_lwpid;
	uintptr_t pr_addr;	/* of its task_struct */
	uintptr_t pr_wchan;
	char pr_stype;
	char pr_state;		/* SSLEEP... */
	char pr_sname;		/* its letter */
	char pr_nice;
	short pr_syscall;	/* -1 in user code */
	char pr_oldpri;
	char pr_cpu;
	int pr_pri;
	ushort_t pr_pctcpu;
	timestruc_t pr_start;
	timestruc_t pr_time;
	string pr_clname;	/* as ps -o cls */
	string pr_name;
	processorid_t pr_onpro;
	processorid_t pr_bindpro;
	psetid_t pr_bindpset;
	int pr_lgrp;
} lwpsinfo_t;

typedef struct psinfo {
	int pr_flag;
	int pr_nlwp;
	int pr_nzomb;
	pid_t pr_pid;
	pid_t pr_ppid;
	pid_t pr_pgid;
	pid_t pr_sid;
	uid_t pr_uid;
	uid_t pr_euid;
	gid_t pr_gid;
	gid_t pr_egid;
	uintptr_t pr_addr;	/* of its task_struct */
	size_t pr_size;		/* KB */
	size_t pr_rssize;	/* KB */
	dev_t pr_ttydev;	/* -1: none */
	ushort_t pr_pctcpu;
	ushort_t pr_pctmem;
	timestruc_t pr_start;
	timestruc_t pr_time;
	timestruc_t pr_ctime;
	string pr_fname;
	string pr_psargs;
	int pr_wstat;
	int pr_argc;		/* these three members: of the current process only */
	uintptr_t pr_argv;
	uintptr_t pr_envp;
	char pr_dmodel;
	taskid_t pr_taskid;
	projid_t pr_projid;
	poolid_t pr_poolid;
	zoneid_t pr_zoneid;
	ctid_t pr_contract;
} psinfo_t;

inline char PR_MODEL_ILP32 = 1;
inline char PR_MODEL_LP64 = 2;

inline int PR_STOPPED = 0x00000001;
inline int PR_ISTOP = 0x00000002;
inline int PR_DSTOP = 0x00000004;
inline int PR_IDLE = 0x10000000;

inline char SSLEEP = 1;
inline char SRUN = 2;
inline char SZOMB = 3;
inline char SSTOP = 4;
inline char SIDL = 5;
inline char SONPROC = 6;
inline char SWAIT = 7;

/* execve leaves argc at the top of the stack, argv after it. */
inline int __argc[struct task_struct *T] =
	T->mm != 0 && T->mm == curthread->mm ? *(int *)copyin((uintptr_t)T->mm->start_stack, 4) : 0;

translator psinfo_t < struct task_struct *T > {
	pr_flag = 0;
	pr_nlwp = T->signal->nr_threads;
	pr_nzomb = 0;
	pr_pid = T->tgid;
	pr_ppid = T->real_parent->tgid;
	pr_pgid = T->signal->pids[2]->numbers[0].nr;
	pr_sid = T->signal->pids[3]->numbers[0].nr;
	pr_uid = T->real_cred->uid.val;
	pr_euid = T->real_cred->euid.val;
	pr_gid = T->real_cred->gid.val;
	pr_egid = T->real_cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_ttydev = T->signal->tty != 0 ? (T->signal->tty->driver->major << 20) +
	    T->signal->tty->driver->minor_start + T->signal->tty->index : -1;
	pr_fname = stringof(T->comm);
	pr_psargs = __psargs(T);
	pr_wstat = T->exit_code;
	pr_argc = __argc[T];
	pr_argv = T->mm != 0 ? (uintptr_t)T->mm->start_stack + 8 : 0;
	pr_envp = T->mm != 0 ? (uintptr_t)T->mm->start_stack + 8 * (__argc[T] + 2) : 0;
	pr_dmodel = T->mm != 0 && T->mm->task_size <= 0x100000000 ? PR_MODEL_ILP32 : PR_MODEL_LP64;
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
};

/* States of <linux/sched.h>: 4 and 8 stopped, 0x80 dead, 0x800 new. */
inline char __lwp_state[struct task_struct *T] =
	T->exit_state != 0 || (T->__state & 0x80) != 0 ? SZOMB :
	(T->__state & 0x0c) != 0 ? SSTOP :
	(T->__state & 0x800) != 0 ? SIDL :
	T->__state != 0 ? SSLEEP :
	T->on_cpu != 0 ? SONPROC : SRUN;

translator lwpsinfo_t < struct task_struct *T > {
	pr_flag = (T->__state & 0x0c) != 0 ? PR_STOPPED : T->pid == 0 ? PR_IDLE : 0;
	pr_lwpid = T->pid;
	pr_addr = (uintptr_t)T;
	pr_wchan = 0;		/* Linux does not keep the address for which a thread waits */
	pr_stype = 0;
	pr_state = __lwp_state[T];
	pr_sname = __lwp_state[T] == SZOMB ? 'Z' : __lwp_state[T] == SSTOP ? 'T' :
	    __lwp_state[T] == SIDL ? 'I' : __lwp_state[T] == SSLEEP ? 'S' :
	    __lwp_state[T] == SONPROC ? 'O' : 'R';
	pr_syscall = T == curthread ? (short)uregs[15] : -1;
	pr_pri = T->prio;
	pr_clname = T->policy == 0 ? "TS" : T->policy == 1 ? "FF" : T->policy == 2 ? "RR" : T->policy == 3 ? "B" :
	    T->policy == 5 ? "IDL" : T->policy == 6 ? "DLN" : T->policy == 7 ? "EXT" : "?";
	pr_name = stringof(T->comm);
	pr_onpro = T->thread_info.cpu;
	pr_bindpro = T->nr_cpus_allowed == 1 ? (int)T->thread_info.cpu : -1;
	pr_bindpset = -1;
	pr_lgrp = __cpu_node((int)T->thread_info.cpu);
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
/* For these scripts Linux has one zone, the global one, whose pr_zoneid is 0. */
inline string zonename = "global";
/* as in illumos and FreeBSD: the arguments joined by blanks */
inline string execargs = curpsinfo->pr_psargs;
inline string cwd = d_path(&curthread->fs->pwd);
inline string root = d_path(&curthread->fs->root);
