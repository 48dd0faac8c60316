//@ cmd: -d bind
uint8_t b;
int64_t wide;
BEGIN
{
	trace(b + 1);
	trace(wide < 1u);
	trace(b << 3);
	trace((char)wide);
	trace(wide ? b : 1);
	trace(-b);
	b /= 300;
	b += wide;
	b >>= 2;
	trace(wide == NULL);
	trace(1 - 2u);
	trace(sizeof(wide) * 2);
}
