//@ engine: interp,kernel,inproc
/* The values of built-in variables in BEGIN that are the same on every machine. */
#pragma D option quiet

BEGIN
{
	printf("[%s] [%s] [%s] [%s]\n", probeprov, probemod, probefunc, probename);
	printf("%d %d %d\n", pid > 0, tid > 0, ppid > 0);
	printf("%d %d\n", pid == $pid, tid == pid);
	printf("%d %d %d %d\n", uid >= 0, gid >= 0, $uid == uid, $gid == gid);
	printf("%s\n", execname);
	printf("%d %d\n", timestamp > 0, timestamp == timestamp);
	printf("%d %d\n", walltimestamp > 1600000000000000000, walltimestamp < 4000000000000000000);
	printf("%d %d\n", vtimestamp >= 0, cpu >= 0);
	printf("%d %d\n", epid > 0, id > 0);
	printf("%d\n", curcpu->cpu_id == cpu);
	printf("%d %s %d\n", curpsinfo->pr_pid == pid, curpsinfo->pr_fname, curlwpsinfo->pr_lwpid == tid);
	printf("%d %d\n", stackdepth >= 0, ustackdepth >= 0);
	printf("%d\n", errno);
	printf("%d\n", ipl);
	printf("%d %d\n", curthread != NULL, rand() != rand());
	printf("%d\n", progenyof($pid));
	exit(0);
}
