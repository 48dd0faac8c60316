//@ engine: interp,kernel,inproc
#pragma D option quiet
typedef struct point { int x; int y; } point_t;
struct mixed { char c; long l; char d; short s; };
union both { char c[5]; int i; };
struct bits { unsigned a : 3; unsigned b : 5; int c; };
struct packed_tail { long l; char c; };
enum e { A, B };
char arr[7];
int matrix[3];
string s;

BEGIN
{
	printf("%d %d %d %d %d\n", sizeof(char), sizeof(short), sizeof(int), sizeof(long), sizeof(long long));
	printf("%d %d %d %d\n", sizeof(void *), sizeof(size_t), sizeof(uint8_t), sizeof(int64_t));
	printf("%d %d %d %d\n", sizeof(point_t), sizeof(struct mixed), sizeof(union both), sizeof(struct bits));
	printf("%d %d %d %d\n", sizeof(struct packed_tail), sizeof(enum e), sizeof(arr), sizeof(matrix));
	printf("%d %d %d\n", sizeof(string), sizeof(s), sizeof(matrix[0]));
	printf("%d %d %d %d\n", offsetof(struct mixed, c), offsetof(struct mixed, l), offsetof(struct mixed, d),
	    offsetof(struct mixed, s));
	printf("%d %d\n", offsetof(point_t, y), offsetof(struct bits, c));
	printf("%d %d %d\n", sizeof(int *), sizeof(point_t[4]), sizeof(char[10]));
	printf("%d %d\n", sizeof('a'), sizeof((char)'a'));
	printf("%d %d\n", sizeof(1 + 1L), sizeof(pid));
	exit(0);
}
