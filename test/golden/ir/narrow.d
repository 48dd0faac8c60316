//@ cmd: -d ir
char c;
unsigned short us;

BEGIN
{
	c = us + 1;
	us <<= 3;
	trace((unsigned char)c);
}
