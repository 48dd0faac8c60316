/* Fields of /proc/PID/status: of a text, of this process and of its threads. */
#include "unit.h"

#include <unistd.h>

#include "base/mem.h"
#include "base/procstatus.h"

static const char text[] = "Name:\tUid:\t7\n"
			   "State:\tS (sleeping)\n"
			   "Pid:\t41\n"
			   "PPid:\t40\n"
			   "Uid:\t1000\t1001\t1002\t1003\n"
			   "Groups:\t4 24 27 \n"
			   "NSpid:\t41\t7\n"
			   "VmLck:\t       12 kB\n"
			   "Empty:\t\n"
			   "SigCgt:\t8000000000004002\n";

static void fields(void **state)
{
	(void)state;
	assert_int_equal(*procstatus_field(text, "State"), 'S');
	/* a field's name within a line, or at the end of another's, is not that field */
	assert_int_equal(procstatus_number(text, "Uid", 0), 1000);
	assert_int_equal(procstatus_number(text, "id", 0), -1);
	assert_int_equal(procstatus_number(text, "Pid", 0), 41);
	assert_string_equal(procstatus_field(text, "None"), "");
	assert_string_equal(procstatus_field(NULL, "Pid"), "");
}

static void numbers(void **state)
{
	(void)state;
	assert_int_equal(procstatus_number(text, "Uid", 3), 1003);
	assert_int_equal(procstatus_number(text, "Uid", 4), -1);
	assert_int_equal(procstatus_number(text, "NSpid", PROCSTATUS_LAST), 7);
	assert_int_equal(procstatus_number(text, "Pid", PROCSTATUS_LAST), 41);
	assert_int_equal(procstatus_number(text, "Groups", 2), 27);
	assert_int_equal(procstatus_number(text, "Groups", PROCSTATUS_LAST), 27);
	assert_int_equal(procstatus_number(text, "VmLck", 0), 12);
	assert_int_equal(procstatus_number(text, "VmLck", 1), -1);
	/* the numbers of the next line are not this line's */
	assert_int_equal(procstatus_number(text, "Empty", 0), -1);
	assert_int_equal(procstatus_number(text, "Empty", PROCSTATUS_LAST), -1);
	assert_int_equal(procstatus_number(NULL, "Pid", 0), -1);
	assert_true(procstatus_mask(text, "SigCgt") == 0x8000000000004002);
	assert_true(procstatus_mask(text, "SigIgn") == 0);
}

static void processes(void **state)
{
	(void)state;
	cleanup_free char *own = procstatus_read(getpid());
	cleanup_free char *thread = procstatus_read_thread(getpid(), getpid());

	assert_int_equal(procstatus_number(own, "PPid", 0), getppid());
	assert_int_equal(procstatus_number(own, "Uid", 1), geteuid());
	assert_int_equal(procstatus_number(thread, "Tgid", 0), getpid());
	assert_int_equal(procstatus_of(getpid(), "Pid", 0), getpid());
	assert_null(procstatus_read(0x3fffffff));
	assert_int_equal(procstatus_of(0x3fffffff, "Pid", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(numbers),
		cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
