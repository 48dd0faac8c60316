//@ cmd: -d bind
BEGIN
{
	trace(curpsinfo->pr_pid);
	trace(curpsinfo->pr_psargs);
	trace(curlwpsinfo->pr_lwpid);
	trace(uregs[R_RIP]);
}
