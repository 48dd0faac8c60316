//@ engine: interp,kernel,inproc
//@ cmd: -q -s %s
//@ covers: agghist
#pragma D option agghist
BEGIN
{
	@["read"] = sum(40);
	@["write"] = sum(10);
	@["back"] = sum(-20);
	@n[1] = count();
	@n[2] = count();
	@n[2] = count();
	exit(0);
}
