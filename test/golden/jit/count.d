//@ cmd: -e -d jit
/* The shortest program there is, and all ways into it. */
BEGIN
{
	@ = count();
}
