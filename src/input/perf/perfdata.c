/* perf.data, as perf record writes it to a file or a pipe: samples with call chains become stacks.
 *
 *	"PERFILE2" | size of the header | attrs | data: records | features (names of events, build ids)
 *	"PERFILE2" | 16                 | records, some of which hold attrs and features       (pipe)
 *	record: u32 type, u16 misc, u16 size, ...
 *
 * Records come from each CPU's buffer in turn, not in the order of time. perf ends each round with
 * FINISHED_ROUND. Records older than the newest one of the round before can then be delivered.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/meminfo.h"
#include "input/perf/perffield.h"
#include "input/perf/perfformat.h"
#include "input/perf/perfspace.h"
#include "input/perf/perfunpack.h"
#include "input/perf/perfunwind.h"
#include "input/perf/runs.h"

struct event {
	uint64_t sample_type, read_format, branches, user_regs;
	/* a sample that does not name its event; perf script shows no period for tracepoints */
	uint64_t period;
	uint32_t type;
	bool id_all;
	char *name;
};

/* A record that waits for its turn. */
struct waiting {
	uint64_t time; /* first: runs_sort() */
	const uint8_t *p;
	/* Of the record, as they were checked: somebody may write the file meanwhile. */
	uint16_t misc, size;
	uint32_t type : 6;
	uint32_t block : 26; /* of d->unpack; 0: the record is in the file itself */
};
_Static_assert((int)RECORD_KERNEL_END <= 1 << 6 && (int)PERFUNPACK_BLOCKS < 1 << 26, "the bits");
_Static_assert(sizeof(struct waiting) == 24, "small: a record may have 16 bytes");

/* Records that wait, and the processes that records describe, take at most ROOM_FREE + n *
 * ROOM_PER_BYTE bytes, for a file of n bytes, and half of the memory that is free. Without
 * compression, records that wait take about as much as the file. */
enum { ROOM_FREE = 128 << 20, ROOM_PER_BYTE = 40, LOOK_EACH = 1 << 16 /* records */ };

struct perfdata {
	struct stackin *in;
	struct perfspace *space;
	VEC(struct event) events;
	struct hash ids; /* id of an event -> its index */
	/* id of the last record's event, because most records have the same event as the one
	 * before */
	uint64_t last_id;
	uint32_t last; /* that event's index; NO_EVENT none */
	VEC(struct waiting) queue;
	uint64_t newest, flush_to; /* newest time of this round, and of the round before */
	VEC(uint32_t) stack;       /* leaf first */
	uint64_t lost;
	struct perfunwind *unwind; /* NULL: no copied stack so far */
	uint64_t unknown_event;
	uint32_t event; /* the event whose samples are taken; NO_EVENT: not known yet */
	struct perfunpack unpack;
	uint64_t room; /* bytes of memory: check_room() */
	uint64_t delivered;
	uint32_t nested; /* compressed records in compressed records */
};

enum { NO_EVENT = UINT32_MAX };
enum { EVENT_NAME_MAX = 4096 };

static struct err *records(struct perfdata *d, struct bytes *b);

/* --- events --- */

static struct err *add_event(struct perfdata *d, struct bytes a)
{
	struct event *e = vec_add(&d->events);
	uint64_t config, flags;
	struct err *err;
	uint32_t size;

	e->type = bytes_u32(&a);
	size = bytes_u32(&a);
	config = bytes_u64(&a);
	e->period = bytes_u64(&a);
	e->sample_type = bytes_u64(&a);
	e->read_format = bytes_u64(&a);
	flags = bytes_u64(&a);
	e->id_all = (flags & ATTR_ID_ALL) != 0;
	if (flags & ATTR_FREQUENCY || e->type == TYPE_TRACEPOINT || !e->period)
		e->period = 1;
	e->name = e->type == 1 && !config       ? xstrdup("cpu-clock")
		  : e->type == 1 && config == 1 ? xstrdup("task-clock")
		  : !e->type && !config         ? xstrdup("cycles")
		  : !e->type && config == 1
			  ? xstrdup("instructions")
			  : xasprintf("event-%u-%llx", e->type, (unsigned long long)config);
	err = bytes_err(&a);
	if (!err && size >= ATTR_BRANCHES + 16 && bytes_seek(&a, ATTR_BRANCHES)) {
		e->branches = bytes_u64(&a);
		e->user_regs = bytes_u64(&a);
	}
	return err;
}

static void add_id(struct perfdata *d, uint64_t id, uint32_t event)
{
	*hash_put(&d->ids, &id, sizeof(id), NULL) = event;
	d->last = NO_EVENT;
}

static struct err *read_event_desc(struct perfdata *d, struct bytes b)
{
	uint32_t n = bytes_u32(&b), size = bytes_u32(&b);

	for (uint32_t i = 0; i < n && bytes_ok(&b); i++) {
		uint32_t nids;
		const char *name;

		bytes_skip(&b, size);
		nids = bytes_u32(&b);
		name = perf_field_name(&b);
		if (bytes_ok(&b) && *name && i < d->events.n) {
			free(d->events.v[i].name); /* its length is taken for each sample */
			d->events.v[i].name = xasprintf("%.*s", EVENT_NAME_MAX, name);
		}
		for (uint32_t k = 0; k < nids && bytes_ok(&b); k++) {
			uint64_t id = bytes_u64(&b);

			if (bytes_ok(&b) && i < d->events.n)
				add_id(d, id, i);
		}
	}
	return bytes_err(&b);
}

/* Reads build ids: a header, a process, 24 bytes of id (the 21st is its length) and a path. */
static struct err *read_build_ids(struct perfdata *d, struct bytes b)
{
	while (bytes_left(&b)) {
		uint16_t misc, size;
		const uint8_t *id;
		struct bytes r;
		const char *path;

		bytes_u32(&b);
		misc = bytes_u16(&b);
		size = bytes_u16(&b);
		if (size < 8)
			return err_new(0, "perf.data: a build id of %u bytes", size);
		r = bytes_slice(&b, (size_t)(b.pos - b.start), size - 8u);
		bytes_skip(&b, size - 8u);
		bytes_u32(&r);
		id = bytes_take(&r, 24);
		path = bytes_cstr(&r);
		if (!bytes_ok(&b) || !bytes_ok(&r))
			return err_new(0, "perf.data: the build ids are cut off");
		perfspace_build_id(d->space, path, id,
				   misc & MISC_BUILD_ID_SIZE && id[20] <= 20 ? id[20] : 20);
	}
	return NULL;
}

static struct err *read_feature(struct perfdata *d, uint64_t feature, struct bytes b)
{
	if (feature == FEATURE_EVENT_DESC)
		return read_event_desc(d, b);
	if (feature == FEATURE_BUILD_ID)
		return read_build_ids(d, b);
	return NULL;
}

/* Finds where samples have their id: all events at one place, or they have SAMPLE_IDENTIFIER. */
static const struct event *event_of(struct perfdata *d, const struct bytes *record, bool sample)
{
	const struct event *first = d->events.v;
	uint64_t type = first->sample_type, id;
	size_t n = (size_t)(record->end - record->start), at = 0;
	struct bytes b = *record;
	uint64_t *index;

	if (d->events.n == 1)
		return first;
	if (sample) {
		if (!(type & SAMPLE_IDENTIFIER) && type & SAMPLE_ID)
			for (uint64_t f = SAMPLE_IP; f < SAMPLE_READ; f <<= 1)
				at += type & f ? 8 : 0;
	} else {
		if (!(type & SAMPLE_IDENTIFIER) && type & SAMPLE_ID)
			at = (type & SAMPLE_CPU ? 8 : 0) + (type & SAMPLE_STREAM_ID ? 8 : 0);
		at = n >= at + 8 ? n - at - 8 : 0;
	}
	if (!(type & (SAMPLE_IDENTIFIER | SAMPLE_ID)) || !bytes_seek(&b, at))
		return first;
	id = bytes_u64(&b);
	if (d->last != NO_EVENT && id == d->last_id)
		return &d->events.v[d->last];
	index = hash_get(&d->ids, &id, sizeof(id));
	if (index && *index < d->events.n) {
		d->last_id = id;
		d->last = (uint32_t)*index;
		return &d->events.v[*index];
	}
	return sample ? NULL : first; /* id 0: a record that perf made itself */
}

/* --- time --- */

static uint64_t time_of(struct perfdata *d, uint32_t type, const struct bytes *body)
{
	const struct event *e = event_of(d, body, type == RECORD_SAMPLE);
	size_t n = (size_t)(body->end - body->start), at = 0;
	struct bytes b = *body;

	if (!e || !(e->sample_type & SAMPLE_TIME))
		return 0;
	if (type == RECORD_SAMPLE) {
		at = e->sample_type & SAMPLE_IDENTIFIER ? 8 : 0;
		at += e->sample_type & SAMPLE_IP ? 8 : 0;
		at += e->sample_type & SAMPLE_TID ? 8 : 0;
	} else {
		if (!e->id_all)
			return 0;
		at = 8;
		for (uint64_t f = SAMPLE_ID; f <= SAMPLE_STREAM_ID; f <<= 1)
			at += f != SAMPLE_PERIOD && e->sample_type & f ? 8 : 0;
		at += e->sample_type & SAMPLE_IDENTIFIER ? 8 : 0;
		at = n >= at ? n - at : 0;
	}
	return bytes_seek(&b, at) ? bytes_u64(&b) : 0;
}

/* --- records --- */

static void take_map(struct perfdata *d, struct bytes b, uint32_t type, uint16_t misc)
{
	enum { EXECUTABLE = 4 };
	uint32_t pid = bytes_u32(&b), protection = EXECUTABLE;
	struct perfspace_map m = { 0 };

	bytes_u32(&b); /* tid */
	m.start = bytes_u64(&b);
	m.len = bytes_u64(&b);
	m.pgoff = bytes_u64(&b);
	if (type == RECORD_MMAP2) {
		const uint8_t *id = bytes_take(&b, 24);

		if (id && misc & MISC_MMAP_BUILD_ID && id[0] <= 20) {
			m.build_id = id + 4;
			m.build_id_len = id[0];
		}
		protection = bytes_u32(&b);
		bytes_u32(&b); /* flags */
	}
	m.path = bytes_cstr(&b);
	if (!bytes_ok(&b))
		return;
	if ((misc & MISC_CPUMODE) == MISC_KERNEL || pid == UINT32_MAX)
		perfspace_kernel_map(d->space, &m);
	else if (protection & EXECUTABLE && !(type == RECORD_MMAP && misc & MISC_MMAP_DATA))
		perfspace_map(d->space, pid, &m);
}

/* Skips the fields between a call chain and the registers: a tracepoint's data, branches taken. */
static void skip_raw(struct bytes *b, const struct event *e)
{
	if (e->sample_type & SAMPLE_RAW)
		bytes_skip(b, ((bytes_u32(b) + 4ull + 7) & ~7ull) - 4);
	if (e->sample_type & SAMPLE_BRANCH_STACK) {
		uint64_t n = bytes_u64(b), each = e->branches & BRANCH_COUNTERS ? 32 : 24;

		bytes_skip(b, e->branches & BRANCH_HW_INDEX ? 8 : 0);
		bytes_skip(b, n <= bytes_left(b) / each ? n * each : SIZE_MAX);
	}
}

/* Adds the frames of a copied user stack. chained: the call chain has frames of it already. */
static void take_copied(struct perfdata *d, struct bytes *b, const struct event *e, uint32_t pid,
			uint32_t chained)
{
	struct perfunwind_copy c;
	uint32_t n;

	skip_raw(b, e);
	if (!perfunwind_read(b, e->sample_type & SAMPLE_REGS_USER, e->user_regs, true, &c))
		return;
	if (!d->unwind)
		d->unwind = xcalloc(1, sizeof(*d->unwind));
	if (chained > 1)
		return;
	n = perfunwind_walk(d->unwind, &c, perfspace_unwind(d->space, pid));
	if (n)
		d->stack.n -= chained; /* the call chain has the program's place too */
	/* perf names callers by the call, not by the instruction behind it. */
	for (uint32_t i = 0; i < n; i++)
		vec_push(&d->stack, perfspace_user(d->space, pid, d->unwind->pcs[i] - (i != 0)));
}

/* Reads the addresses of a call chain, leaf first. Returns how many are the program's. */
static uint32_t take_chain(struct perfdata *d, struct bytes *b, uint32_t pid)
{
	uint32_t user = 0;
	uint64_t n = bytes_u64(b), ip;
	const uint8_t *p = bytes_take(b, n <= bytes_left(b) / 8 ? n * 8 : SIZE_MAX);
	bool kernel = false, skip = false;

	if (!p)
		return 0;
	vec_reserve(&d->stack, (uint32_t)n);
	for (; n--; p += sizeof(ip)) {
		memcpy(&ip, p, sizeof(ip));
		ip = le64toh(ip);
		if (ip >= CONTEXT_FIRST) {
			kernel = ip == CONTEXT_KERNEL;
			skip = !kernel && ip != CONTEXT_USER; /* guests and hypervisors */
		} else if (!skip) {
			vec_push(&d->stack, kernel ? perfspace_kernel(d->space, ip)
						   : perfspace_user(d->space, pid, ip));
			user += !kernel;
		}
	}
	return user;
}

static bool wanted_event(struct perfdata *d, uint32_t index)
{
	const char *name = d->events.v[index].name, *wanted = d->in->options.event;
	size_t n = strlen(name);

	if (d->event == NO_EVENT &&
	    (!wanted || !strcmp(name, wanted) ||
	     (n > strlen(wanted) && !strncmp(name, wanted, strlen(wanted)) &&
	      name[strlen(wanted)] == ':'))) {
		d->event = index;
		d->in->event = xstrdup(name);
	}
	return d->event == index || (d->event != NO_EVENT && !strcmp(name, d->in->event));
}

static void take_sample(struct perfdata *d, struct bytes b, uint16_t misc)
{
	const struct event *e = event_of(d, &b, true);
	uint64_t type = e ? e->sample_type : 0, ip = 0, period;
	uint32_t pid = 0, tid = 0, n, chained = 0;
	const uint32_t *names;

	if (!e) {
		d->unknown_event++;
		return;
	}
	d->in->lines++;
	period = e->period;
	if (!wanted_event(d, (uint32_t)(e - d->events.v))) {
		d->in->filtered++;
		return;
	}
	if (type & SAMPLE_IDENTIFIER)
		bytes_u64(&b);
	if (type & SAMPLE_IP)
		ip = bytes_u64(&b);
	if (type & SAMPLE_TID) {
		pid = bytes_u32(&b);
		tid = bytes_u32(&b);
	}
	for (uint64_t f = SAMPLE_TIME; f <= SAMPLE_ADDR; f <<= 1)
		if (type & f)
			bytes_u64(&b);
	if (type & SAMPLE_ID)
		bytes_u64(&b);
	if (type & SAMPLE_STREAM_ID)
		bytes_u64(&b);
	if (type & SAMPLE_CPU)
		bytes_u64(&b);
	if (type & SAMPLE_PERIOD) {
		period = bytes_u64(&b);
		if (e->type == TYPE_TRACEPOINT || !period)
			period = 1;
	}
	if (type & SAMPLE_READ)
		perf_field_skip_read(&b, e->read_format);
	if (!bytes_ok(&b)) {
		stackin_skip(d->in);
		return;
	}
	d->stack.n = 0;
	/* first, because it shows whether this is Java */
	names = perfspace_thread(d->space, pid, tid, &n);
	if (type & SAMPLE_CALLCHAIN)
		chained = take_chain(d, &b, pid);
	if (type & SAMPLE_STACK_USER && bytes_ok(&b))
		take_copied(d, &b, e, pid, chained);
	if (!bytes_ok(&b)) {
		stackin_skip(d->in);
		return;
	}
	if (!d->stack.n && type & SAMPLE_IP && !(type & SAMPLE_CALLCHAIN))
		vec_push(&d->stack, (misc & MISC_CPUMODE) == MISC_KERNEL
					    ? perfspace_kernel(d->space, ip)
					    : perfspace_user(d->space, pid, ip));
	for (uint32_t i = n; i; i--)
		vec_push(&d->stack, names[i - 1]);
	stackin_count(d->in, d->stack.v, d->stack.n, period);
}

static void deliver(struct perfdata *d, const struct waiting *w)
{
	struct bytes b = bytes_of(w->p + 8, w->size - 8u, "perf.data");
	uint32_t pid, tid, ppid;
	uint16_t removed;
	const char *s;
	uint64_t v;

	switch (w->type) {
	case RECORD_MMAP:
	case RECORD_MMAP2: take_map(d, b, w->type, w->misc); break;
	case RECORD_LOST:
		bytes_u64(&b);
		d->lost += bytes_u64(&b);
		break;
	case RECORD_LOST_SAMPLES: d->lost += bytes_u64(&b); break;
	case RECORD_COMM:
		pid = bytes_u32(&b);
		tid = bytes_u32(&b);
		s = bytes_cstr(&b);
		if (s)
			perfspace_comm(d->space, pid, tid, s);
		break;
	case RECORD_FORK:
		pid = bytes_u32(&b);
		ppid = bytes_u32(&b);
		tid = bytes_u32(&b);
		v = bytes_u32(&b);
		if (bytes_ok(&b))
			perfspace_fork(d->space, pid, ppid, tid, (uint32_t)v);
		break;
	case RECORD_KSYMBOL:
		v = bytes_u64(&b);
		pid = bytes_u32(&b); /* bytes of code */
		bytes_u16(&b);
		removed = bytes_u16(&b) & 1;
		s = bytes_cstr(&b);
		if (s)
			perfspace_ksymbol(d->space, v, pid, s, removed);
		break;
	case RECORD_SAMPLE: take_sample(d, b, w->misc); break;
	}
}

/* Compares the memory that is taken, about, with what a file of this size may take. */
static struct err *check_room(const struct perfdata *d)
{
	enum { EVENT = sizeof(struct event) + 64, ID = 96 }; /* with a name; in the table */
	/* runs_sort() has a copy of the queue */
	const uint64_t queue = ((uint64_t)d->queue.cap + d->queue.n) * sizeof(*d->queue.v),
		       blocks = (uint64_t)d->unpack.live * PERFUNPACK_BLOCK,
		       events = (uint64_t)d->events.n * EVENT + (uint64_t)d->ids.n * ID;

	if (queue + blocks + events + perfspace_bytes(d->space) <= d->room)
		return NULL;
	return err_new(ENOMEM, "perf.data: its records take more than %llu MB of memory",
		       (unsigned long long)(d->room >> 20));
}

static struct err *deliver_checked(struct perfdata *d, const struct waiting *w)
{
	deliver(d, w);
	return ++d->delivered % LOOK_EACH ? NULL : check_room(d);
}

/* Delivers the records that are older than `limit`. */
static struct err *flush(struct perfdata *d, uint64_t limit)
{
	struct err *e = NULL;
	uint32_t i = 0;

	if (!d->queue.n)
		return NULL;
	runs_sort(d->queue.v, d->queue.n, sizeof(*d->queue.v));
	for (; i < d->queue.n && d->queue.v[i].time <= limit && !e; i++) {
		e = deliver_checked(d, &d->queue.v[i]);
		if (d->queue.v[i].block)
			perfunpack_drop(&d->unpack, d->queue.v[i].block);
	}
	memmove(d->queue.v, d->queue.v + i, (d->queue.n - i) * sizeof(*d->queue.v));
	d->queue.n -= i;
	return e;
}

/* Delivers a record, or lets it wait for older ones. One without a time comes before all that
 * wait. */
static struct err *take_record(struct perfdata *d, struct waiting *w)
{
	if (!w->time)
		return deliver_checked(d, w);
	if (w->time > d->newest)
		d->newest = w->time;
	if (d->nested)
		w->block = perfunpack_keep(&d->unpack);
	vec_push(&d->queue, *w);
	return d->queue.n % LOOK_EACH ? NULL : check_room(d);
}

static struct err *take_compressed(struct perfdata *d, struct bytes b)
{
	struct err *e = NULL;

	if (d->nested)
		return err_new(0, "perf.data: compressed records in compressed records");
	d->nested++;
	while (!e && perfunpack_more(&d->unpack, &b)) {
		struct bytes r;
		const uint64_t before = d->unpack.unpacked;

		e = perfunpack_next(&d->unpack, &b, &r);
		if (e)
			break;
		d->in->given += d->unpack.unpacked - before;
		e = check_room(d);
		if (e)
			break;
		e = records(d, &r);
		d->unpack.taken += (size_t)(r.pos - r.start);
	}
	d->nested--;
	return e;
}

/* Handles a record at once. *ret_more: bytes behind it that belong to it. */
static struct err *take_now(struct perfdata *d, uint32_t type, struct bytes b, uint64_t *ret_more)
{
	uint32_t size;
	struct err *e;

	*ret_more = 0;
	switch (type) {
	case RECORD_FINISHED_ROUND:
		e = flush(d, d->flush_to);
		d->flush_to = d->newest;
		return e;
	case RECORD_ATTR:
		e = add_event(d, b);
		if (e)
			return e;
		bytes_u32(&b);
		size = bytes_u32(&b);
		if (size < ATTR_MIN || !bytes_seek(&b, size))
			return err_new(0, "perf.data: an event's description of %u bytes", size);
		while (bytes_left(&b) >= 8)
			add_id(d, bytes_u64(&b), d->events.n - 1);
		break;
	case RECORD_FEATURE: {
		uint64_t feature = bytes_u64(&b);

		return read_feature(d, feature, bytes_slice(&b, 8, bytes_left(&b)));
	}
	case RECORD_TRACING_DATA: *ret_more = (bytes_u32(&b) + 7ull) & ~7ull; break;
	case RECORD_AUXTRACE: *ret_more = bytes_u64(&b); break;
	case RECORD_COMPRESSED: return take_compressed(d, b);
	}
	return NULL;
}

/* Takes whole records. The bytes left at b are the beginning of one. */
static struct err *records(struct perfdata *d, struct bytes *b)
{
	while (bytes_left(b) >= 8) {
		const uint8_t *p = b->pos;
		struct bytes head = bytes_of(p, 8, "perf.data"), body;
		uint32_t type = bytes_u32(&head);
		uint16_t misc = bytes_u16(&head), size;
		uint64_t more;
		struct err *e;

		size = bytes_u16(&head);
		if (size < 8)
			return err_new(0, "perf.data: a record of %u bytes at byte %zu", size,
				       (size_t)(p - b->start));
		if (bytes_left(b) < size)
			return NULL;
		body = bytes_of(p + 8, size - 8u, "perf.data");
		bytes_skip(b, size);
		if (type >= RECORD_KERNEL_END) {
			e = take_now(d, type, body, &more);
			if (e)
				return e;
			if (more && (more > bytes_left(b) || !bytes_skip(b, more)))
				return err_new(0, "perf.data: a record of type %u is cut off",
					       type);
			continue;
		}
		if (!d->events.n)
			return err_new(0, "perf.data: records before the description of events");
		e = take_record(d, &(struct waiting){ .time = time_of(d, type, &body),
						      .p = p,
						      .misc = misc,
						      .size = size,
						      .type = type & 63 });
		if (e)
			return e;
	}
	return NULL;
}

/* Reads where a part of the file lies, and returns the part. */
static struct bytes part_at(struct bytes *file, struct bytes *b)
{
	uint64_t offset = bytes_u64(b), size = bytes_u64(b);

	return bytes_slice(file, offset, size);
}

/* The ids of an event are a part of the file of their own, so that all of them fit in the file. */
static struct err *read_attrs(struct perfdata *d, struct bytes *file, struct bytes attrs,
			      uint64_t each)
{
	uint64_t room = (uint64_t)(file->end - file->start);
	struct err *e = NULL;

	if (each < ATTR_MIN + 16)
		return err_new(0, "perf.data: descriptions of events of %llu bytes",
			       (unsigned long long)each);
	while (!e && bytes_left(&attrs) >= each) {
		struct bytes a = bytes_of(attrs.pos, each, "perf.data"), ids;

		e = add_event(d, a);
		bytes_seek(&a, each - 16);
		ids = part_at(file, &a);
		if (bytes_left(&ids) > room)
			return e ?: err_new(0, "perf.data: the ids of its events overlap");
		room -= bytes_left(&ids);
		while (bytes_ok(&ids) && bytes_left(&ids) >= 8)
			add_id(d, bytes_u64(&ids), d->events.n - 1);
		bytes_skip(&attrs, each);
	}
	return e;
}

/* Reads the features behind the data: first their places, in the order of their bits. */
static struct err *read_features(struct perfdata *d, struct bytes *file, uint64_t at,
				 const uint8_t *bits)
{
	struct bytes b = *file;
	struct err *e = NULL;
	bool missing = false;

	if (!bytes_seek(&b, at))
		return NULL; /* read_file() reports that the data in front of it is cut off */
	for (uint32_t i = 0; i < FEATURES && !e; i++) {
		struct bytes f;

		if (!(bits[i / 8] >> (i % 8) & 1))
			continue;
		f = part_at(file, &b);
		missing |= !bytes_ok(&b) || !bytes_ok(&f);
		if (!bytes_ok(&b))
			break;
		if (bytes_ok(&f))
			e = read_feature(d, i, f);
	}
	if (missing)
		stackin_note(
			d->in,
			"the file is cut off behind its samples: its data about the machine and the mapped files is incomplete");
	return e;
}

/* Reads the last records. */
static struct err *read_records(struct perfdata *d, struct bytes b, bool cut_off)
{
	struct err *e = records(d, &b);

	if (!e && bytes_left(&b) && !cut_off)
		stackin_note(d->in, "the file is cut off in the middle of a record");
	return e;
}

static struct err *read_file(struct perfdata *d, struct bytes file)
{
	struct bytes b = file, attrs;
	uint64_t header, each, data_at, data_size, there;
	const uint8_t *bits;
	bool cut_off;
	struct err *e;

	bytes_skip(&b, 8);
	header = bytes_u64(&b);
	if (header == PIPE_HEADER)
		return read_records(d, b, false);
	each = bytes_u64(&b);
	attrs = part_at(&file, &b);
	data_at = bytes_u64(&b);
	data_size = bytes_u64(&b);
	bytes_skip(&b, 16);
	bits = bytes_take(&b, FEATURES / 8);
	if (!bytes_ok(&b))
		return bytes_err(&b);
	if (!bytes_ok(&attrs))
		return err_new(0, "perf.data: the descriptions of events are cut off");
	e = read_attrs(d, &file, attrs, each);
	if (e)
		return e;
	if (!d->events.n)
		return err_new(0, "perf.data without events");
	if (data_at > (size_t)(file.end - file.start))
		return err_new(0, "perf.data: the data is cut off");
	there = (size_t)(file.end - file.start) - data_at;
	if (!data_size) /* perf record was killed, so the file has no more */
		data_size = there;
	else
		e = read_features(d, &file, data_at + data_size, bits);
	if (e)
		return e;
	cut_off = data_size > there;
	if (cut_off)
		stackin_note(d->in, "the file is cut off: %llu bytes are missing",
			     (unsigned long long)(data_size - there));
	return read_records(d, bytes_slice(&file, data_at, cut_off ? there : data_size), cut_off);
}

static void notes(struct perfdata *d)
{
	if (d->lost)
		stackin_note(d->in, "perf lost %llu events while it recorded",
			     (unsigned long long)d->lost);
	if (d->unknown_event)
		stackin_note(d->in, "%llu samples of events that the file does not describe",
			     (unsigned long long)d->unknown_event);
	if (d->unwind)
		perfunwind_notes(d->unwind, d->in);
	perfspace_notes(d->space);
}

static struct err *document(struct stackin *in, const uint8_t *p, size_t n)
{
	struct perfdata d = {
		.in = in, .event = NO_EVENT, .last = NO_EVENT, .space = perfspace_new(in)
	};
	const uint64_t available = meminfo_available();
	struct err *e;

	d.room = ROOM_FREE + (uint64_t)n * ROOM_PER_BYTE;
	if (available && available / 2 < d.room)
		d.room = available / 2;
	e = read_file(&d, bytes_of(p, n, "perf.data")) ?: flush(&d, UINT64_MAX);
	if (!e)
		notes(&d);
	for (uint32_t i = 0; i < d.events.n; i++)
		free(d.events.v[i].name);
	perfunpack_fini(&d.unpack);
	vec_fini(&d.events);
	vec_fini(&d.queue);
	vec_fini(&d.stack);
	hash_fini(&d.ids);
	free(d.unwind);
	perfspace_free(d.space);
	return e;
}

static bool perfdata_begins(const uint8_t *p, size_t n)
{
	return n >= 8 && !memcmp(p, "PERFILE2", 8);
}

const struct stackin_reader stackin_perfdata = {
	.begins = perfdata_begins,
	.document = document,
};
