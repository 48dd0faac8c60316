//@ cmd: -d parse
typedef struct __attribute__((packed)) header {
	unsigned char kind __attribute__((aligned(4)));
	int size;
} __attribute__((packed)) header_t;
extern int gone(int) __attribute__((noreturn));
__extension__ typedef unsigned long long wide_t;
char *__restrict cursor;
