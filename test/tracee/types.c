/* Types that only this program has, for D programs. */
#include <unistd.h>

enum color { RED, GREEN = 5 };

struct inner {
	int x, y;
};

typedef struct shape {
	char name[16];
	long n;
	struct inner in;
	struct shape *next;
	enum color color;
	unsigned int low : 3, high : 5;
	union {
		int as_int;
		unsigned char as_bytes[4];
	};
	const char *text;
	struct inner grid[2][2];
} shape_t;

static int constructed;

__attribute__((noinline)) void look_at(shape_t *s)
{
	__asm__ volatile("" : : "r"(s) : "memory");
}

__attribute__((noinline)) void construct(void)
{
	__asm__ volatile("" : : : "memory");
}

__attribute__((constructor)) static void at_start(void)
{
	construct();
	constructed = 1;
}

int main(void)
{
	shape_t last = { .name = "second", .n = 43 };
	shape_t first = { .name = "first",
			  .n = 42,
			  .in = { 1, 2 },
			  .next = &last,
			  .color = GREEN,
			  .low = 2,
			  .high = 9,
			  .as_int = 0x04030201,
			  .text = "a text",
			  .grid = { { { 0 } }, { { 0 }, { 7, 8 } } } };

	for (int i = 0; i < 3; i++) {
		look_at(&first);
		usleep(1000);
	}
	return !constructed;
}
