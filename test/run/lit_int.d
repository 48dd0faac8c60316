//@ engine: interp,kernel,inproc
/* Integer and character constants: value and type. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d\n", 42, 052, 0x2a, 0X2A);
	printf("%d %d %d %d\n", sizeof(1), sizeof(1L), sizeof(1LL), sizeof(1U));
	printf("%d %d %d\n", sizeof(2147483647), sizeof(2147483648), sizeof(0xffffffff));
	printf("%d %d\n", 0xffffffff, 4294967295);
	printf("%d %d\n", -1U, -1UL);
	printf("%d %d\n", 18446744073709551615UL, 0xffffffffffffffff);
	printf("%d\n", 9223372036854775807);
	printf("%d %d %d %d\n", 'a', '\n', '\0', '\x41');
	printf("%d %d %d\n", '\101', '\\', '\'');
	printf("%c%c%c\n", 'D', 'T', 'r');
	printf("%d\n", 'a' + 1);
	exit(0);
}
