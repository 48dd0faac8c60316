//@ cmd: -d parse
BEGIN
{
	a = b = c += d -= 1;
	x = a || b ^^ c && d | e ^ f & g == h != i < j <= k << l >> m + n - o * p / q % r;
	x = -a - -b + +c - --d + e++ - f--;
	x = !a && ~b & *c & &d;
	x = a ? b : c ? d : e, f;
	x = (a, b);
	x = a ? b ? 1 : 2 : 3;
	x <<= 1; x >>= 2; x &= 3; x ^= 4; x |= 5; x %= 6; x *= 7; x /= 8;
	x = a - b - c;
	x = a->b.c->d[1, 2][3].e++;
	x = -a[0]->b;
	x = *p++ + (*p)++ + ++*p;
	x = 5 > 4 > 3;
}
