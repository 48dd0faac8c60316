/* Several routines one after the other on a text that is itself made by two of them: each way through one must not be looked at again
 * for each way through the others. */
//@ c: /bin/busybox echo verifier
//@ engine: kernel
//@ cmd: -q
//@ timeout: 55
//@ sort
syscall::write:entry
/pid == $target/
{
	self->s = strstr(fds[1].fi_dirname, "/") != NULL ? strstr(fds[1].fi_dirname, "nothing") : fds[1].fi_dirname;
	this->n = strstr(fds[1].fi_dirname, "x") == NULL ? 1 : 2;
	self->k = strstr(fds[1].fi_dirname, "ab");
	a[self->k] = fds[1].fi_dirname;
	printf("%d %s\n", this->n, index(fds[1].fi_dirname, "nothing") > 0 ? substr(fds[1].fi_dirname, index(fds[1].fi_dirname, "b")) :
	    basename(curpsinfo->pr_psargs));
}
