/* Asks for its parent number N times, and handles SIGUSR1: `stay` returns from the handler, `jump`
 * leaves it by siglongjmp(3), `exit` by exit(3). Prints how often the handler ran, the call was
 * made, and the call was left. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t handled;
static char how;

static void handle(int sig)
{
	handled++;
	if (how == 'j')
		siglongjmp(back, 1);
	if (how == 'e')
		exit(7);
}

int main(int argc, char **argv)
{
	volatile long calls = 0, left = 0, i = 0;

	if (argc != 3)
		return 2;
	how = argv[1][0];
	signal(SIGUSR1, handle);
	for (; i < atol(argv[2]); i++) {
		if (sigsetjmp(back, 1)) {
			left++;
			continue;
		}
		calls++;
		(void)getppid();
	}
	printf("handled %d calls %ld left %ld\n", (int)handled, calls, left);
	return 0;
}
