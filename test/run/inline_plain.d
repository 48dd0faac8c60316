//@ engine: interp,kernel,inproc
#pragma D option quiet
inline int LIMIT = 10;
inline int DOUBLE = LIMIT * 2;
inline string NAME = "descry";
inline int sum_of[int a, int b] = a + b;
inline string label[int n] = n > 0 ? "positive" : n < 0 ? "negative" : "zero";
inline int is_self[int p] = p == pid;
inline uint8_t NARROW = 300;
int n;

BEGIN
{
	n = 5;
	printf("%d %d %s %d\n", LIMIT, DOUBLE, NAME, strlen(NAME));
	printf("%d %d\n", sum_of[n, 2], sum_of[sum_of[1, 2], sum_of[3, 4]]);
	printf("%s %s %s\n", label[n], label[-n], label[n - 5]);
	printf("%d %d\n", is_self[pid], is_self[0]);
	printf("%d\n", n < LIMIT);
	printf("%d\n", sum_of[n++, 1]);
	exit(0);
}
BEGIN /LIMIT == 11/ { printf("not reached\n"); }
