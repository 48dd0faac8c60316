/* Names of other systems' kernels that have a meaning here.
 *
 * inline T __TAG__MEMBER[struct TAG *P] defines P->MEMBER, which the kernel's own structure lacks. The same form defines `.MEMBER` of
 * a stand-in for a structure within another. inline T __symbol__NAME defines the kernel variable `NAME.
 */
#pragma D depends_on library types.d
#pragma D depends_on library procfs.d

typedef enum { B_FALSE, B_TRUE } boolean_t;
typedef uint64_t u_longlong_t;
typedef int64_t longlong_t;
typedef int64_t offset_t;
typedef uint64_t diskaddr_t;
typedef uint64_t size64_t;
typedef uint64_t rlim64_t;
typedef id_t lwpid_t;
typedef uint16_t o_mode_t;
typedef struct task_struct kthread_t;
typedef struct task_struct proc_t;
typedef struct task_struct klwp_t;
typedef struct cred cred_t;
typedef struct inode inode_t;

/* kthread_t */
inline struct task_struct *__task_struct__t_procp[struct task_struct *T] = T->group_leader;
inline struct task_struct *__task_struct__t_lwp[struct task_struct *T] = T;
inline int __task_struct__t_pri[struct task_struct *T] = T->prio;
inline id_t __task_struct__t_tid[struct task_struct *T] = T->pid;
inline uint32_t __task_struct__t_state[struct task_struct *T] = T->__state;
inline const struct cred *__task_struct__t_cred[struct task_struct *T] = T->cred;
inline uintptr_t __task_struct__t_stk[struct task_struct *T] = (uintptr_t)T->stack;
inline struct rq *__task_struct__t_cpu[struct task_struct *T] = T->se.cfs_rq->rq;

/* cpu_t and disp_t: the run queue of a CPU */
inline int __rq__cpu_id[struct rq *Q] = Q->cpu;
inline struct rq *__rq__cpu_disp[struct rq *Q] = Q;
/* without the running thread */
inline int __rq__disp_nrunnable[struct rq *Q] = Q->nr_running > 0 ? (int)Q->nr_running - 1 : 0;

/* proc_t and user_t */
inline struct task_struct *__task_struct__p_parent[struct task_struct *T] = T->real_parent;
inline pid_t __task_struct__p_ppid[struct task_struct *T] = T->real_parent->tgid;
inline struct pid *__task_struct__p_pidp[struct task_struct *T] = T->group_leader->thread_pid;
inline pid_t __pid__pid_id[struct pid *P] = P->numbers[0].nr;
inline const struct cred *__task_struct__p_cred[struct task_struct *T] = T->real_cred;
inline uid_t __cred__cr_uid[struct cred *C] = C->euid.val;
inline uid_t __cred__cr_ruid[struct cred *C] = C->uid.val;
inline gid_t __cred__cr_gid[struct cred *C] = C->egid.val;
inline gid_t __cred__cr_rgid[struct cred *C] = C->gid.val;
inline int __task_struct__p_lwpcnt[struct task_struct *T] = T->signal->nr_threads;
inline size_t __task_struct__p_stksize[struct task_struct *T] = T->mm != 0 ? T->mm->stack_vm * 4096 : 0;
inline size_t __task_struct__p_brksize[struct task_struct *T] = T->mm != 0 ? T->mm->brk - T->mm->start_brk : 0;
inline hrtime_t __task_struct__p_mstart[struct task_struct *T] = (hrtime_t)T->group_leader->start_time;
inline uint64_t __task_struct__p_utime[struct task_struct *T] = T->signal->utime + T->utime;
inline uint64_t __task_struct__p_stime[struct task_struct *T] = T->signal->stime + T->stime;
inline struct task_struct *__task_struct__p_user[struct task_struct *T] = T;
inline string __task_struct__u_comm[struct task_struct *T] = stringof(T->comm);
inline struct files_struct *__task_struct__u_finfo[struct task_struct *T] = T->files;
inline string __task_struct__u_psargs[struct task_struct *T] = __psargs(T);
inline struct fs_struct *__task_struct__u_cdir[struct task_struct *T] = T->fs;
inline string __fs_struct__v_path[struct fs_struct *F] = d_path(&F->pwd);

/* uf_info_t, file_t, vnode_t: the table of open files is an array of pointers to struct file. A struct file has the path, so it
 * also stands for its vnode. */
typedef struct uf_entry {
	struct file *uf_file;
} uf_entry_t;
typedef struct file file_t;
typedef struct file vnode_t;
inline uf_entry_t *__files_struct__fi_list[struct files_struct *F] = (uf_entry_t *)F->fdt->fd;
inline int __files_struct__fi_nfiles[struct files_struct *F] = F->fdt->max_fds;
inline struct file *__file__f_vnode[struct file *F] = F;
inline string __file__v_path[struct file *F] = d_path(&F->f_path);
inline int64_t __file__f_offset[struct file *F] = F->f_pos;

/* flags of mmap() that Linux does not have: never set */
inline int MAP_INITDATA = 0;
inline int MAP_TEXT = 0;
inline int MAP_ALIGN = 0;

/* variables; src/compile/bind/lib.c makes those that never change on a machine */
inline uint64_t __symbol__hp_avenrun[int I] = __load(I);
/* in 1/2048, as in Linux */
inline uint64_t __symbol__avenrun[int I] = __load(I) >> 5;
/* memory, in pages */
inline uint64_t __symbol__freemem = __memory(0);
inline uint64_t __symbol__availrmem = __memory(1);
inline uint64_t __symbol__pages_locked = __memory(4);
inline uint64_t __symbol__physinstalled = `physmem;
/* swap space, in pages: Linux reserves none for unwritten memory, and keeps none back */
typedef struct k_anoninfo {
	uint64_t ani_max, ani_free, ani_phys_resv, ani_mem_resv, ani_locked_swap;
} k_anoninfo_t;
translator k_anoninfo_t < int I > {
	ani_max = __memory(2);
	ani_free = __memory(3);
	ani_phys_resv = __memory(2) - __memory(3);
	ani_mem_resv = 0;
	ani_locked_swap = 0;
};
inline k_anoninfo_t __symbol__k_anoninfo = xlate <k_anoninfo_t> (0);
inline uint64_t __symbol__swapfs_minfree = 0;
inline uint64_t __symbol__swapfs_reserve = 0;
/* processes swapped out as a whole: Linux does not do that */
inline int __symbol__nswapped = 0;
inline string __symbol__architecture = "x86_64";
inline string __symbol__platform = "Linux";
/* the last process number */
inline pid_t __symbol__mpid = curthread->nsproxy->pid_ns_for_children->idr.idr_next - 1;
inline int64_t __symbol__lbolt = (int64_t)(timestamp / 10000000);
inline int64_t __symbol__time = (int64_t)(walltimestamp / 1000000000);
inline struct new_utsname *__symbol__utsname = &curthread->nsproxy->uts_ns->name;
