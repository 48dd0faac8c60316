//@ engine: interp,kernel,inproc
/* The library's translators: psinfo_t and lwpsinfo_t of the current thread. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", curpsinfo->pr_pid == pid, curpsinfo->pr_ppid == ppid, curlwpsinfo->pr_lwpid == tid);
	printf("%s %d\n", curpsinfo->pr_fname, curpsinfo->pr_fname == execname);
	printf("%d %d\n", curpsinfo->pr_uid == uid, curpsinfo->pr_gid == gid);
	printf("%d\n", xlate <psinfo_t *>(curthread)->pr_pid == pid);
	printf("%d %d\n", execargs == curpsinfo->pr_psargs, strlen(execargs) >= strlen(execname));
	printf("%d\n", curpsinfo->pr_addr == (uintptr_t)curthread);
	exit(0);
}
