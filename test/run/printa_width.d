//@ engine: interp,kernel,inproc
//@ cmd: -q
/* A width of * is a key. setopt() takes a string made at run time. */
int n;
BEGIN
{
	@[8, 100] = sum(1); @[-8, 200] = sum(2);
	printa("[%*d] %@d\n", @);
	@v[1] = sum(30); @v[2] = sum(10); @w[1] = sum(1); @w[2] = sum(2);
	setopt("aggsortpos", lltostr(n)); printa("%d %@d %@d\n", @v, @w);
	n++;
	setopt("aggsortpos", lltostr(n)); printa("%d %@d %@d\n", @v, @w);
	@ll = llquantize(320, 10, 0, 5, 5, 8); printa(@ll);
	exit(0);
}
