//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN
{
	x = int;
	static int y;
}
