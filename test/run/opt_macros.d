//@ engine: interp,kernel,inproc
//@ cmd: -q -s %s 42 name "two words"
int first;

BEGIN
{
	first = $1;
	printf("%d %d\n", first, $1 + 1);
	printf("%s %s %s\n", $$1, $$2, $$3);
	printf("%d\n", strlen($$3));
	printf("%d %d %d\n", $pid == pid, $ppid == ppid, $uid == uid);
	printf("%d %d %d\n", $gid == gid, $euid == uid, $egid == gid);
	printf("%s\n", basename($$0));
	exit($1);
}
//@ exit: 42
