//@ engine: interp,kernel,inproc
/* Kernel types through BTF: curthread in BEGIN is descry itself. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", curthread->pid == tid, curthread->tgid == pid);
	printf("%s %d\n", stringof(curthread->comm), curthread->comm == execname);
	printf("%d\n", sizeof(curthread->comm));
	printf("%d\n", curthread->group_leader->tgid == curthread->tgid);
	printf("%d\n", &curthread->pid == (pid_t *)((char *)curthread + offsetof(struct task_struct, pid)));
	printf("%d\n", *(&curthread->pid) == tid);
	this->t = (struct task_struct *)curthread;
	printf("%d\n", this->t->real_parent->tgid == ppid);
	printf("%d %d\n", sizeof(struct list_head), offsetof(struct list_head, prev));
	printf("%d\n", ((struct task_struct *)curthread)->signal->group_exit_code);
	printf("%d\n", curthread->cred->uid.val == uid);
	exit(0);
}
