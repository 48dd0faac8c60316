/* The consumer over a fake engine: order, late strings, speculations, aggregation actions,
 * drops. */
#include "unit.h"

#include <time.h>

#include "consume/consume_private.h"
#include "image_make.h"

static struct make m;
static struct fake f;
static struct consumer *c;
static uint32_t probe, other;

static int setup(void **state)
{
	make_init(&m, sink_text_new());
	fake_init(&f, &m);
	probe = make_probe(&m, 177, "syscall", "vmlinux", "read", "entry");
	other = make_probe(&m, 178, "syscall", "vmlinux", "write", "entry");
	m.options.v[OPT_QUIET].num = 1;
	return 0;
}

static int teardown(void **state)
{
	consumer_free(c);
	c = NULL;
	make_fini(&m);
	fake_fini(&f);
	return 0;
}

static void start(void)
{
	c = consumer_new(&f.e, m.sink, &m.options);
	assert_null(consumer_begin(c));
}

static void pass(void)
{
	assert_null(consumer_pass(c));
}

static void finish(void)
{
	assert_null(consumer_finish(c, false, false));
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* printf("N ") of one int */
static struct segment *printing(uint32_t clause, const char *format)
{
	struct segment *s = make_segment(&m, clause);

	make_action_of(&m, s, ACT_PRINTF, make_field(s, FIELD_INT, 4, T_INT))->format =
		make_format(&m, format);
	return s;
}

static struct wire_record *one(struct segment *s, uint64_t time, uint32_t cpu, int v)
{
	struct wire_record *r = make_record(&m, s, time, cpu, probe);

	put_int(s, r, 0, v);
	return r;
}

/* A segment with one aggregation action. */
static struct segment *acting(enum action_kind kind, uint32_t agg, const char *format)
{
	struct segment *s = make_segment(&m, m.img.nsegments);
	struct action *a = make_action(&m, s, kind);

	a->aggs[a->naggs++] = agg;
	if (format)
		a->format = make_format(&m, format);
	return s;
}

static void test_order(void **state)
{
	struct segment *s = printing(0, "%d ");

	start();
	fake_queue(&f, one(s, 30, 1, 3), false);
	fake_queue(&f, one(s, 10, 0, 1), false);
	fake_queue(&f, one(s, 20, 0, 2), true);
	fake_queue(&f, one(s, 40, 0, 4), false);
	pass();
	assert_string_equal(make_text(&m), "1 2 3 4 ");
	m.options.v[OPT_TEMPORAL].num = 0;
	fake_queue(&f, one(s, 30, 1, 3), false);
	pass();
	assert_string_equal(make_text(&m), "3 ");
}

/* Records of one firing in both rings: program order, not ring order; a fault after its clause's
 * records. */
static void test_firing_order(void **state)
{
	struct segment *a = printing(0, "a%d "), *b = printing(1, "b%d "), *d = printing(2, "c%d ");

	start();
	fake_queue(&f, one(b, 10, 0, 2), true);
	fake_queue(&f, one(a, 10, 0, 1), false);
	fake_queue(&f, one(d, 10, 0, 3), false);
	pass();
	assert_string_equal(make_text(&m), "a1 b2 c3 ");
}

static void test_young_records_wait(void **state)
{
	struct segment *s = printing(0, "%d ");

	start();
	fake_queue(&f, one(s, now() + 50000000, 0, 2), false);
	fake_queue(&f, one(s, 5, 0, 1), false);
	pass();
	assert_string_equal(make_text(&m), "1 ");
	pass();
	assert_string_equal(make_text(&m), "");
	finish();
	assert_string_equal(make_text(&m), "2 \n");
}

static void test_line_rules(void **state)
{
	struct segment *s = make_segment(&m, 0), *commit = make_segment(&m, 1);
	struct wire_record *r;
	int status = -1;

	m.options.v[OPT_QUIET].num = 0;
	make_action_of(&m, s, ACT_EXIT, make_field(s, FIELD_INT, 4, T_INT));
	make_action_of(&m, commit, ACT_COMMIT, make_field(commit, FIELD_INT, 4, T_INT));
	start();
	assert_false(consumer_exited(c, &status));
	r = make_record(&m, s, 1, 0, probe);
	put_int(s, r, 0, 3);
	fake_queue(&f, make_record(&m, commit, 1, 0, probe), true);
	fake_queue(&f, r, true);
	pass();
	finish();
	assert_string_equal(make_text(&m), "CPU     ID                    FUNCTION:NAME\n"
					   "  0    177                       read:entry \n"
					   "\n");
	assert_true(consumer_exited(c, &status));
	assert_int_equal(status, 3);
}

/* --- late strings --- */

static struct wire_record *late(uint32_t number, uint64_t time, uint32_t offset, const char *text)
{
	struct wire_late *l = arena_new(&m.a, struct wire_late);

	l->head = (struct wire_record){ .time = time, .segment = WIRE_SEG_LATE, .late = number };
	l->offset = offset;
	strcpy(l->text, text);
	return &l->head;
}

static void test_late(void **state)
{
	struct segment *s = make_segment(&m, 0), *n = printing(1, "%d\n");
	struct action *a = make_action(&m, s, ACT_PRINTF);
	struct wire_record *r;
	uint64_t t = now() - 10000000;

	a->fields[a->nfields++] = make_field(s, FIELD_STRING, 16, T_STRING);
	a->fields[a->nfields++] = make_field(s, FIELD_STRING, 8, T_STRING);
	a->format = make_format(&m, "%s %s\n");
	start();
	r = make_record(&m, s, t, 0, probe);
	r->late = 7;
	put_str(s, r, 1, "here");
	fake_queue(&f, r, false);
	fake_queue(&f, one(n, t + 1, 0, 1), false);
	pass();
	assert_string_equal(make_text(&m), "");
	fake_queue(&f, late(7, t + 2, s->fields[0].offset, "/etc/passwd"), false);
	pass();
	assert_string_equal(make_text(&m), "/etc/passwd here\n1\n");

	/* two for one record; a text longer than its field */
	r = make_record(&m, s, t + 3, 0, probe);
	r->late = 8;
	fake_queue(&f, r, false);
	fake_queue(&f, late(8, t + 4, s->fields[0].offset, "one"), false);
	fake_queue(&f, late(8, t + 4, s->fields[1].offset, "123456789"), false);
	pass();
	assert_string_equal(make_text(&m), "one 1234567\n");

	/* it never comes: after 100 ms the record is printed with the data there, and counted */
	r = make_record(&m, s, now() - 90000000, 0, probe);
	r->late = 9;
	fake_queue(&f, r, false);
	pass();
	assert_string_equal(make_text(&m), "");
	usleep(20000);
	pass();
	assert_string_equal(make_text(&m), " \n");
	finish();
	assert_string_equal(make_errors(&m), "dtrace: 1 late string drop\n");
}

/* --- speculations --- */

static void test_speculation(void **state)
{
	struct segment *s = printing(0, "%d "), *commit = make_segment(&m, 1),
		       *discard = make_segment(&m, 2);
	struct wire_record *r;

	make_action_of(&m, commit, ACT_COMMIT, make_field(commit, FIELD_INT, 4, T_INT));
	make_action_of(&m, discard, ACT_DISCARD, make_field(discard, FIELD_INT, 4, T_INT));
	start();
	for (uint32_t i = 1; i <= 4; i++) {
		r = one(s, i, 0, (int)i);
		r->spec = i % 2 + 1;
		fake_queue(&f, r, false);
	}
	fake_queue(&f, one(s, 5, 0, 5), false);
	fake_queue(&f, one(commit, 6, 0, 2), true);
	fake_queue(&f, one(discard, 7, 0, 1), true);
	fake_queue(&f, one(commit, 8, 0, 1), true);
	fake_queue(&f, one(commit, 9, 0, 0), true);
	fake_queue(&f, one(commit, 10, 0, 1000), true);
	pass();
	assert_string_equal(make_text(&m), "5 1 3 ");
	assert_string_equal(make_errors(&m), "");

	m.options.v[OPT_SPECSIZE].num = 100;
	for (uint32_t i = 1; i <= 4; i++) {
		r = one(s, 10 + i, 0, (int)i);
		r->spec = 1;
		fake_queue(&f, r, false);
	}
	fake_queue(&f, one(commit, 20, 0, 1), true);
	finish();
	assert_string_equal(make_text(&m), "1 2 \n");
	assert_string_equal(make_errors(&m), "dtrace: 2 speculative drops\n");
}

/* --- aggregations --- */

static uint32_t make_named(const char *name, enum agg_func func)
{
	struct agg *a = make_agg(&m, name, func);

	make_key(a, FIELD_STRING, 8, T_STRING);
	return a->id;
}

static const char *const ls = "ls\0\0\0\0\0", *const sh = "sh\0\0\0\0\0", *const vi = "vi\0\0\0\0\0";

static void test_final(void **state)
{
	uint32_t a = make_named("a", AGG_COUNT), b = make_named("b", AGG_MAX),
		 none = make_named("none", AGG_SUM);
	struct segment *p = acting(ACT_PRINTA, a, "%s %@d\n");

	start();
	for (int i = 0; i < 5; i++)
		fake_add(&f, a, i < 3 ? ls : i < 4 ? sh : vi, (uint32_t)i % 2, 0);
	fake_add(&f, b, ls, 0, -4);
	fake_add(&f, b, ls, 1, -7);
	finish();
	assert_string_equal(
		make_text(&m),
		"\n"
		"  sh                                                                1\n"
		"  vi                                                                1\n"
		"  ls                                                                3\n"
		"  ls                                                               -4\n");
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	finish();
	assert_string_equal(
		make_text(&m),
		"sh 1\nvi 1\nls 3\n\n"
		"  ls                                                               -4\n");
	m.options.v[OPT_AGGSORTREV].num = 1;
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	fake_add(&f, none, vi, 0, 1);
	finish();
	assert_string_equal(
		make_text(&m),
		"ls 3\nvi 1\nsh 1\n\n"
		"  vi                                                                1\n"
		"  ls                                                               -4\n");
	m.options.v[OPT_AGGSORTREV].num = 0;
	m.options.v[OPT_AGGSORTKEY].num = 1;
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "ls 3\nsh 1\nvi 1\n");
}

static uint32_t counted;

static void count_one(struct fake *fk)
{
	fake_add(fk, counted, sh, 0, 1);
}

/* tick { printa(@); clear(@) }: every count is printed once, also those made between the two. */
static void test_clear_loses_nothing(void **state)
{
	uint32_t a = counted = make_named("", AGG_SUM);
	struct segment *p = acting(ACT_PRINTA, a, "%s %@d\n"), *cl = acting(ACT_CLEAR, a, NULL);

	start();
	fake_add(&f, a, sh, 0, 10);
	fake_add(&f, a, ls, 1, 5);
	f.meanwhile = count_one;
	for (uint64_t t = 1; t <= 3; t++) {
		fake_queue(&f, make_record(&m, p, t, 0, probe), true);
		fake_queue(&f, make_record(&m, cl, t, 0, probe), true);
	}
	pass();
	assert_string_equal(make_text(&m), "ls 5\nsh 10\nls 0\nsh 1\nls 0\nsh 1\n");
}

static void test_clear_extremes(void **state)
{
	uint32_t a = make_named("", AGG_MIN);
	struct segment *p = acting(ACT_PRINTA, a, "%s %@d\n"), *cl = acting(ACT_CLEAR, a, NULL);

	start();
	fake_add(&f, a, sh, 0, 3);
	fake_add(&f, a, ls, 0, 4);
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	fake_queue(&f, make_record(&m, cl, 1, 0, probe), true);
	pass();
	fake_add(&f, a, ls, 1, 9);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "sh 3\nls 4\nls 9\n");
}

static void test_trunc(void **state)
{
	uint32_t a = counted = make_named("", AGG_SUM);
	struct segment *p = acting(ACT_PRINTA, a, "%s %@d\n"), *t = acting(ACT_TRUNC, a, NULL);
	struct segment *all = acting(ACT_TRUNC, a, NULL);
	struct wire_record *r;

	t->actions[0].fields[t->actions[0].nfields++] = make_field(t, FIELD_INT, 8, T_INT64);
	start();
	fake_add(&f, a, sh, 0, 10);
	fake_add(&f, a, ls, 1, 5);
	fake_add(&f, a, vi, 1, 7);
	r = make_record(&m, t, 1, 0, probe);
	put_int(t, r, 0, 2);
	fake_queue(&f, r, true);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	r = make_record(&m, t, 3, 0, probe);
	put_int(t, r, 0, -1);
	fake_queue(&f, r, true);
	fake_queue(&f, make_record(&m, p, 4, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "vi 7\nsh 10\nvi 7\n");
	/* values counted between the snapshot and the removal stay */
	f.meanwhile = count_one;
	fake_queue(&f, make_record(&m, all, 5, 0, probe), true);
	fake_queue(&f, make_record(&m, p, 6, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "sh 1\n");
	f.meanwhile = NULL;
	fake_queue(&f, make_record(&m, p, 7, 0, probe), true);
	fake_queue(&f, make_record(&m, all, 8, 0, probe), true);
	fake_queue(&f, make_record(&m, p, 9, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "sh 2\n");
}

/* Values of one word, on the last CPU: nothing behind them is looked at. */
static void test_trunc_of_count(void **state)
{
	uint32_t a = make_named("", AGG_COUNT);

	start();
	fake_add(&f, a, sh, MAKE_CPUS - 1, 1);
	fake_queue(&f, make_record(&m, acting(ACT_TRUNC, a, NULL), 1, 0, probe), true);
	finish();
	assert_string_equal(make_text(&m), "\n");
}

static void test_no_keys(void **state)
{
	uint32_t a = make_agg(&m, "", AGG_COUNT)->id;
	struct segment *p = acting(ACT_PRINTA, a, "%@d\n"), *cl = acting(ACT_CLEAR, a, NULL),
		       *t = acting(ACT_TRUNC, a, NULL);

	start();
	fake_values(&f, a, NULL); /* the array is there, nothing counted */
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "");
	fake_add(&f, a, NULL, 0, 1);
	fake_add(&f, a, NULL, 1, 1);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	fake_queue(&f, make_record(&m, cl, 2, 0, probe), true);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	fake_queue(&f, make_record(&m, t, 2, 0, probe), true);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "2\n0\n");
	fake_add(&f, a, NULL, 1, 1);
	fake_queue(&f, make_record(&m, p, 3, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "1\n");
}

static void test_normalize(void **state)
{
	uint32_t a = make_named("", AGG_SUM);
	struct segment *p = acting(ACT_PRINTA, a, "%@d "), *n = acting(ACT_NORMALIZE, a, NULL);
	struct segment *d = acting(ACT_DENORMALIZE, a, NULL);
	struct wire_record *r;

	n->actions[0].fields[n->actions[0].nfields++] = make_field(n, FIELD_INT, 8, T_INT64);
	start();
	fake_add(&f, a, sh, 0, 1000);
	r = make_record(&m, n, 1, 0, probe);
	put_int(n, r, 0, 100);
	fake_queue(&f, r, true);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	fake_queue(&f, make_record(&m, d, 3, 0, probe), true);
	fake_queue(&f, make_record(&m, p, 4, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "10 1000 ");
}

/* Names travel as ids: equal text is one row, sorted as text. */
static void test_equal_names_are_one_row(void **state)
{
	struct agg *a = make_agg(&m, "", AGG_COUNT);
	struct segment *p = acting(ACT_PRINTA, a->id, "%s %@d\n");
	uint32_t id[2] = { 0 };

	make_key(a, FIELD_STRID, 4, T_STRING);
	m.strings[0] = "read";
	m.strings[1] = "- all -";
	m.img.nstrings = 2;
	start();
	id[0] = probe * 4 + 2; /* probefunc "read" */
	fake_add(&f, a->id, id, 0, 0);
	id[0] = m.img.nprobes * 4; /* literal "read" */
	fake_add(&f, a->id, id, 1, 0);
	id[0] = m.img.nprobes * 4 + 1;
	fake_add(&f, a->id, id, 1, 0);
	id[0] = other * 4 + 2;
	fake_add(&f, a->id, id, 1, 0);
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "- all - 1\nwrite 1\nread 2\n");
}

static void test_joined(void **state)
{
	uint32_t a = make_named("a", AGG_COUNT), b = make_named("b", AGG_SUM);
	struct segment *p = acting(ACT_PRINTA, a, "%s %@d %@d\n");
	struct agg *wide = make_agg(&m, "w", AGG_SUM);
	struct segment *mixed = acting(ACT_PRINTA, a, NULL);
	char key[16] = "ls";

	make_key(wide, FIELD_STRING, 16, T_STRING);
	p->actions[0].aggs[p->actions[0].naggs++] = b;
	mixed->actions[0].aggs[mixed->actions[0].naggs++] = wide->id;
	start();
	fake_add(&f, a, ls, 0, 1);
	fake_add(&f, a, ls, 1, 1);
	fake_add(&f, a, sh, 1, 1);
	fake_add(&f, b, sh, 1, 100);
	fake_add(&f, b, vi, 1, 50);
	fake_add(&f, wide->id, key, 0, 9);
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	fake_queue(&f, make_record(&m, mixed, 2, 0, probe), true);
	pass();
	assert_string_equal(
		make_text(&m),
		"vi 0 50\nsh 1 100\nls 2 0\n"
		"\n"
		"  sh                                                                1                0\n"
		"  ls                                                                2                9\n");
	m.options.v[OPT_AGGSORTPOS].num = 1;
	fake_queue(&f, make_record(&m, p, 3, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "ls 2 0\nvi 0 50\nsh 1 100\n");
}

static void test_stddev(void **state)
{
	uint32_t a = make_named("", AGG_STDDEV);
	struct segment *p = acting(ACT_PRINTA, a, "%@d\n"), *cl = acting(ACT_CLEAR, a, NULL);

	start();
	fake_add(&f, a, sh, 0, 10);
	fake_add(&f, a, sh, 1, 20);
	fake_queue(&f, make_record(&m, p, 1, 0, probe), true);
	fake_queue(&f, make_record(&m, cl, 1, 0, probe), true);
	pass();
	for (int i = 1; i <= 3; i++)
		fake_add(&f, a, sh, 0, 100 * i);
	fake_queue(&f, make_record(&m, p, 2, 0, probe), true);
	pass();
	assert_string_equal(make_text(&m), "5\n81\n");
}

/* --- the rest --- */

static void test_faults(void **state)
{
	struct wire_fault *fault = arena_new(&m.a, struct wire_fault);

	fault->head = (struct wire_record){ .time = 1, .segment = WIRE_SEG_FAULT, .probe = probe };
	fault->code = WIRE_FAULT_DIVZERO;
	fault->insn = 12;
	start();
	fake_queue(&f, &fault->head, false);
	pass();
	assert_string_equal(
		make_errors(&m),
		"dtrace: error in dt_clause_0 for probe ID 177 (syscall:vmlinux:read:entry): "
		"divide-by-zero at BPF pc 0\n");
	m.img.uses_error = true;
	consumer_free(c);
	m.sink->dtrace = false;
	start();
	fake_queue(&f, &fault->head, false);
	pass();
	assert_string_equal(make_errors(&m), "");
}

static void test_drops_and_report(void **state)
{
	struct segment *s = printing(0, "%d\n");
	struct run_report r;

	start();
	f.fixed[WIRE_DROP_DATA] = 3;
	f.fixed[WIRE_FIXED_COUNTERS + WIRE_DROP_DATA] = 1;
	f.fixed[WIRE_DROP_DYN] = f.fixed[WIRE_FIXED_COUNTERS + WIRE_DROP_DYN] = 2;
	f.fixed[WIRE_FAULTS] = 9;
	f.fired[probe] = 100;
	fake_queue(&f, one(s, 1, 0, 1), false);
	pass();
	assert_string_equal(make_errors(&m), "dtrace: 3 drops on CPU 0\ndtrace: 1 drop on CPU 1\n"
					     "dtrace: 4 dynamic variable drops\n");
	f.fixed[WIRE_DROP_DATA] = 5;
	finish();
	assert_string_equal(make_errors(&m), "dtrace: 2 drops on CPU 0\n");
	consumer_report(c, &r);
	assert_int_equal(r.drops[DROP_DATA], 6);
	assert_int_equal(r.drops[DROP_DYN], 4);
	assert_int_equal(r.records, 1);
	assert_int_equal(r.faults, 9);
	assert_int_equal(r.probes[probe].fired, 100);
	assert_int_equal(r.probe_cpu_ns, 1000);
	assert_true(r.measured);
}

static void test_bad_records(void **state)
{
	struct segment *s = printing(0, "%d\n");
	struct wire_record *r = one(s, 1, 0, 1), *r2 = one(s, 2, 0, 1);

	start();
	r->probe = 1000;
	fake_queue(&f, r, false);
	fake_queue(&f, r2, false);
	f.ring[1].size = 33;
	finish();
	assert_string_equal(make_text(&m), "\n");
	assert_string_equal(make_errors(&m), "dtrace: 2 drops\n");
}

/* Records that no program writes, but a traced process may. */
static void test_hostile_records(void **state)
{
	struct segment *s = printing(0, "%d\n");
	struct wire_record *r = one(s, 1, 0, 7), *r2 = one(s, 2, 0, 8);

	start();
	fake_queue(&f, r, false);
	f.ring[0].size = 8; /* not even a header */
	r2->spec = 65;      /* there are 64 speculations */
	fake_queue(&f, r2, false);
	finish();
	assert_string_equal(make_text(&m), "\n");
	assert_string_equal(make_errors(&m), "dtrace: 2 drops\n");
}

/* Records from the future wait for their time, but not in all of the memory. */
static void test_future_is_bounded(void **state)
{
	struct segment *s = printing(0, "%d ");
	uint64_t later = now() + 3600ull * 1000 * 1000 * 1000;

	start();
	fake_queue(&f, one(s, later, 0, 1), false);
	pass();
	assert_string_equal(make_text(&m), "");
	c->held_max = 1024;
	for (int i = 0; i < 100; i++)
		fake_queue(&f, one(s, later + 1, 0, 2), false);
	pass();
	assert_non_null(strstr(make_text(&m), "1 2 2 2 "));
	finish();
	assert_string_equal(make_errors(&m), "");
}

/* The same of strings that come late, for records that never come. */
static void test_late_is_bounded(void **state)
{
	const struct wire_record *l = late(7, UINT64_MAX - 1000000000, 0, "x");

	start();
	for (uint32_t k = 0; k < (1 << 16) + 1000; k += 1000) {
		for (int i = 0; i < 1000; i++)
			fake_queue(&f, l, false);
		pass();
	}
	assert_true(c->batch.late.n <= 1 << 16);
	finish();
	assert_non_null(strstr(make_errors(&m), " late string drop"));
}

/* A string with a time far ahead is forgotten as soon as any other. */
static void test_late_from_the_future(void **state)
{
	const struct wire_record *l = late(7, UINT64_MAX / 2, 0, "x");
	const uint64_t t = 5, second = 1000000000;
	struct batch b = { 0 };

	assert_true(batch_add(&b, l, sizeof(struct wire_late), false));
	batch_compact(&b, t);
	assert_int_equal(b.late.n, 1);
	batch_compact(&b, t + second / 2);
	assert_int_equal(b.late.n, 1);
	batch_compact(&b, t + second);
	assert_int_equal(b.late.n, 0);
	batch_fini(&b);
}

/* The data that bufpolicy=fill keeps until the end has a limit for control records too. */
static void test_control_is_bounded(void **state)
{
	struct segment *s = printing(0, "%d ");
	uint64_t t = now();

	m.options.v[OPT_BUFPOLICY].num = POLICY_FILL;
	start();
	c->held_max = 1024;
	for (int i = 0; i < 1000; i++)
		fake_queue(&f, one(s, t, 0, 1), true);
	pass();
	assert_true(batch_held(&c->batch) <= 1024);
	assert_non_null(c->batch.ring[1].v);
	finish();
	m.options.v[OPT_BUFPOLICY].num = POLICY_SWITCH;
	assert_non_null(strstr(make_text(&m), "1 1 1 "));
	assert_non_null(strstr(make_errors(&m), " drops"));
}

/* Control records that wait are run before the run ends, so they are few even without another
 * limit. */
static void test_control_is_few(void **state)
{
	struct segment *s = printing(0, "");
	uint64_t t = now();

	m.options.v[OPT_BUFPOLICY].num = POLICY_RING;
	start();
	for (int k = 0; k < 400; k++) {
		for (int i = 0; i < 1000; i++)
			fake_queue(&f, one(s, t, 0, 1), true);
		pass();
	}
	assert_in_range(batch_held(&c->batch), 1, 8 << 20);
	finish();
	m.options.v[OPT_BUFPOLICY].num = POLICY_SWITCH;
	assert_non_null(strstr(make_errors(&m), " drops"));
}

/* Only a traced process can make a counter go back. */
static void test_counters_that_shrink(void **state)
{
	start();
	f.fixed[WIRE_DROP_DATA] = f.fixed[WIRE_DROP_DYN] = 5;
	pass();
	assert_string_equal(make_errors(&m),
			    "dtrace: 5 drops on CPU 0\ndtrace: 5 dynamic variable drops\n");
	f.fixed[WIRE_DROP_DATA] = 1;
	f.fixed[WIRE_DROP_DYN] = 0;
	finish();
	assert_string_equal(make_errors(&m), "");
}

static void test_system_and_setopt(void **state)
{
	struct segment *s = make_segment(&m, 0);
	char path[] = "/tmp/descry-system-XXXXXX", text[32] = "";
	int fd = mkstemp(path);
	struct action *a;

	a = make_action_of(&m, s, ACT_SYSTEM, make_field(s, FIELD_INT, 4, T_INT));
	a->format = make_format(&m, arena_printf(&m.a, "echo %%d > %s", path));
	a = make_action(&m, s, ACT_SETOPT);
	a->text = "aggsortrev";
	a = make_action(&m, s, ACT_SETOPT);
	a->text = "bufsize";
	a->text2 = "1m";
	start();
	fake_queue(&f, one(s, 1, 0, 42), true);
	pass();
	assert_int_equal(read(fd, text, sizeof(text) - 1), 3);
	assert_string_equal(text, "42\n");
	assert_true(opt_on(&m.options, OPT_AGGSORTREV));
	assert_non_null(strstr(make_errors(&m), "couldn't set option \"bufsize\" to \"1m\""));
	close(fd);
	unlink(path);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_order),
		T(test_firing_order),
		T(test_young_records_wait),
		T(test_line_rules),
		T(test_late),
		T(test_speculation),
		T(test_final),
		T(test_clear_loses_nothing),
		T(test_clear_extremes),
		T(test_trunc),
		T(test_trunc_of_count),
		T(test_no_keys),
		T(test_normalize),
		T(test_equal_names_are_one_row),
		T(test_joined),
		T(test_stddev),
		T(test_faults),
		T(test_drops_and_report),
		T(test_bad_records),
		T(test_hostile_records),
		T(test_future_is_bounded),
		T(test_late_is_bounded),
		T(test_late_from_the_future),
		T(test_control_is_bounded),
		T(test_control_is_few),
		T(test_counters_that_shrink),
		T(test_system_and_setopt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
