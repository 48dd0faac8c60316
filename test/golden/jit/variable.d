//@ cmd: -e -d jit
/* No call, and no result: what it changes is one register. */
BEGIN
{
	n++;
}
