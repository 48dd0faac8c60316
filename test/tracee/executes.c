/* Starts programs in every way that there is: tracee_executes WAY. Each way makes 3 malloc(10).
 * The program `tracee_executes leaf N` prints "LD_PRELOAD DESCRY_MALLOC X" of its environment, and
 * makes N + 1 malloc(10).
 *
 *	execve execv execvp execvpe execl execlp execle fexecve execveat
 *	           a forked child executes leaf 100
 *	here       it executes leaf 100 itself
 *	none       a forked child executes what there is not, and then makes 5 malloc(20)
 *	vfork posix_spawn posix_spawnp system popen
 *	           leaf 100 is started by this function
 *	threads    two threads are in system() at one time, and the first to begin ends first; then
 *	           one is in it while setenv(3) is called, and another system() follows. Each one
 *	           starts leaf 100
 *	bare       a forked child executes leaf 100 with an environment of nothing but X=1
 *	family     forks a child that makes 10 malloc(20), frees 3 blocks of its parent, forks a child
 *	           that makes 20 malloc(30), and starts two threads that make 30 malloc(40) each
 *	stays      leaves a child that waits for a byte from standard input, makes 7 malloc(50), and
 *	           then writes "end"
 *	signal     makes 200,000 malloc(10), and forks 100 times in a signal handler meanwhile; each
 *	           child makes one malloc(60), and then leaves the handler and makes one more
 *	filter     a forked child under a filter of system calls makes 10 malloc(20)
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static void *volatile kept[3000];
static char path[4096];
static char *leaf[] = { "tracee_executes", "leaf", "100", NULL };

static void make(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		kept[i] = malloc(size);
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

static void join_child(pid_t pid, int want)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != want)
		exit(1);
}

static void run_leaf(int n)
{
	static const char *const names[] = { "LD_PRELOAD", "DESCRY_MALLOC", "X" };

	for (int i = 0; i < 3; i++) {
		say(getenv(names[i]) ?: "none");
		say(i < 2 ? " " : "\n");
	}
	make(n + 1, 10);
	_exit(9);
}

static void execute(const char *way)
{
	char *const more[] = { "X=2", NULL }, *const bare[] = { "X=1", NULL };

	if (!strcmp(way, "execve"))
		execve(path, leaf, environ);
	if (!strcmp(way, "execv"))
		execv(path, leaf);
	if (!strcmp(way, "execvp"))
		execvp("tracee_executes", leaf);
	if (!strcmp(way, "execvpe"))
		execvpe("tracee_executes", leaf, more);
	if (!strcmp(way, "execl"))
		execl(path, leaf[0], leaf[1], leaf[2], NULL);
	if (!strcmp(way, "execlp"))
		execlp("tracee_executes", leaf[0], leaf[1], leaf[2], NULL);
	if (!strcmp(way, "execle"))
		execle(path, leaf[0], leaf[1], leaf[2], NULL, more);
	if (!strcmp(way, "fexecve"))
		fexecve(open(path, O_RDONLY), leaf, more);
	if (!strcmp(way, "execveat"))
		execveat(AT_FDCWD, path, leaf, more, 0);
	if (!strcmp(way, "bare"))
		execve(path, leaf, bare);
	if (!strcmp(way, "none")) {
		if (execl("/no/such/program", "none", NULL) == 0 || execvp("no-such", leaf) == 0)
			_exit(1);
		make(5, 20);
		_exit(9);
	}
	_exit(1);
}

static void in_child(const char *way)
{
	pid_t pid = fork();

	if (!pid)
		execute(way);
	join_child(pid, 9);
}

static void *in_thread(void *arg)
{
	for (int i = 0; i < 30; i++)
		((void *volatile *)arg)[i] = malloc(40);
	return NULL;
}

static void family(void)
{
	static void *volatile blocks[2][30];
	pid_t pid = fork();
	pthread_t t[2];

	if (pid) {
		join_child(pid, 4);
		return;
	}
	for (int i = 0; i < 3; i++)
		free(kept[i]);
	make(10, 20);
	pid = fork();
	if (!pid) {
		make(20, 30);
		_exit(5);
	}
	join_child(pid, 5);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, in_thread, (void *)blocks[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	_exit(4);
}

static volatile sig_atomic_t is_child;

static void handler(int sig)
{
	const struct itimerval off = { 0 };
	static int count;
	pid_t pid;

	if (++count >= 100)
		setitimer(ITIMER_REAL, &off, NULL);
	pid = fork();
	if (!pid) {
		is_child = 1;
		kept[0] = malloc(60);
		return;
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void by_signal(void)
{
	const struct itimerval often = { { 0, 300 }, { 0, 300 } }, off = { 0 };

	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 200000; i++) {
		void *volatile p = malloc(10);

		if (is_child) {
			kept[1] = malloc(60);
			_exit(0);
		}
		free(p);
	}
	setitimer(ITIMER_REAL, &off, NULL);
}

static void under_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, code };
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(77);
		make(10, 20);
		_exit(6);
	}
	join_child(pid, 6);
}

static void start(const char *way)
{
	char command[5000];
	int status;
	pid_t pid;

	snprintf(command, sizeof(command), "exec '%s' leaf 100", path);
	if (!strcmp(way, "vfork")) {
		pid = vfork();
		if (!pid) {
			execv(path, leaf);
			_exit(1);
		}
		join_child(pid, 9);
	} else if (!strcmp(way, "posix_spawn")) {
		if (posix_spawn(&pid, path, NULL, NULL, leaf, environ))
			exit(1);
		join_child(pid, 9);
	} else if (!strcmp(way, "posix_spawnp")) {
		if (posix_spawnp(&pid, "tracee_executes", NULL, NULL, leaf, environ) ||
		    !posix_spawn(&pid, "/no/such/program", NULL, NULL, leaf, environ))
			exit(1);
		join_child(pid, 9);
	} else if (!strcmp(way, "system")) {
		status = system(command);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
			exit(1);
	} else {
		FILE *f = popen(command, "w");

		status = f ? pclose(f) : -1;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
			exit(1);
	}
}

/* The descriptors that the commands of system() use; a shell takes those of one digit. */
static int begun[2], go[2][2];
static char commands[2][5000];

static void *in_system(void *command)
{
	int status = system(command);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
		exit(1);
	return NULL;
}

/* Starts a thread, and waits until its command runs. */
static pthread_t begin_system(int i)
{
	pthread_t t;
	char c;

	if (pthread_create(&t, NULL, in_system, commands[i]) || read(begun[0], &c, 1) != 1)
		exit(1);
	return t;
}

static void end_system(pthread_t t, int i)
{
	if (write(go[i][1], "\n", 1) != 1 || pthread_join(t, NULL))
		exit(1);
}

static void in_threads(void)
{
	char **before = environ;
	pthread_t t[2];

	/* the commands end when this process does */
	if (pipe(begun) || pipe(go[0]) || pipe(go[1]) || go[1][1] > 9 ||
	    fcntl(go[0][1], F_SETFD, FD_CLOEXEC) || fcntl(go[1][1], F_SETFD, FD_CLOEXEC))
		exit(77);
	for (int i = 0; i < 2; i++)
		snprintf(commands[i], sizeof(commands[i]),
			 "printf x >&%d; read y <&%d; exec '%s' leaf 100", begun[1], go[i][0],
			 path);
	for (int i = 0; i < 2; i++)
		t[i] = begin_system(i);
	end_system(t[0], 0);
	end_system(t[1], 1);
	if (environ != before)
		say("another environment\n");
	if (getenv("LD_PRELOAD") || getenv("DESCRY_MALLOC"))
		say("descry's variables\n");

	t[0] = begin_system(0);
	setenv("X", "3", 1);
	end_system(t[0], 0);
	snprintf(commands[1], sizeof(commands[1]), "exec '%s' leaf 100", path);
	in_system(commands[1]);
	if (strcmp(getenv("X") ?: "", "3"))
		say("setenv() is lost\n");
	/* setenv() has copied them */
	unsetenv("LD_PRELOAD");
	unsetenv("DESCRY_MALLOC");
}

static void stays(void)
{
	char c;

	if (fork())
		return;
	if (read(0, &c, 1) != 1)
		_exit(1);
	make(7, 50);
	say("end\n");
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return 1;
	if (!strcmp(way, "leaf"))
		run_leaf(atoi(argv[2]));
	make(3, 10);
	if (!strcmp(way, "here"))
		execute("execv");
	else if (!strcmp(way, "family"))
		family();
	else if (!strcmp(way, "stays"))
		stays();
	else if (!strcmp(way, "signal"))
		by_signal();
	else if (!strcmp(way, "threads"))
		in_threads();
	else if (!strcmp(way, "filter"))
		under_filter();
	else if (!strncmp(way, "exec", 4) || !strcmp(way, "fexecve") || !strcmp(way, "bare") ||
		 !strcmp(way, "none"))
		in_child(way);
	else
		start(way);
	if (getenv("LD_PRELOAD") || getenv("DESCRY_MALLOC"))
		say("the environment has descry's variables\n");
	_exit(0);
}
