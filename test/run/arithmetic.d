//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN
{
	x = 7; y = -3; u = (unsigned int)4294967295;
	printf("%d %d %d %d\n", x + y, x - y, x * y, -x);
	printf("%d %d %d %d\n", x / 2, x % 4, y / 2, y % 2);
	printf("%d %d %d %d\n", x & 3, x | 8, x ^ 5, ~x);
	printf("%d %d %d\n", 1ll << 40, -16 >> 2, 0xff >> 4);
	printf("%u %d\n", u, (char)200);
	printf("%d %d %d %d\n", x > y, x < y, x == 7, x != 7);
	printf("%d %d %d %d\n", x && 0, x || 0, 1 ^^ 1, !x);
	printf("%d %d\n", x > 5 ? 10 : 20, x < 5 ? 10 : 20);
	printf("%d %d %d\n", x++, ++x, x--);
	x += 10; printf("%d ", x); x -= 1; printf("%d ", x); x *= 3; printf("%d ", x);
	x /= 2; printf("%d ", x); x %= 5; printf("%d ", x); x <<= 3; printf("%d\n", x);
	printf("%x %o %c %5d|%-5d|%05d\n", 255, 8, 'A', 42, 42, 42);
	exit(0);
}
