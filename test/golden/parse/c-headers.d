//@ cmd: -d parse
# 1 "/usr/include/one.h" 1
typedef __signed__ char one_s8;
typedef __signed int one_s32;
static inline unsigned short one_swap(unsigned short v)
{
	do { goto out; } while (v = '\'' ? 1 : 0.5);
out:	return (v >> 8) | ({ int w = v; w << 8; });
}
extern __inline__ __attribute__((__gnu_inline__)) double one_half(double v) { return v / 2; }
static __inline int one_max(int, int);
static inline int one_last(void) { if (one_max(1, 2)) { return 3; } return 4; };
typedef one_s8 one_t;
# 2 "script.d" 2
int twice(int n) { return 2 * n; }
one_t one;
BEGIN { trace(twice(2)); }
