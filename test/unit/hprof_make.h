/* Makes HPROF files, as a Java virtual machine writes them. */
#ifndef DESCRY_TEST_UNIT_HPROF_MAKE_H
#define DESCRY_TEST_UNIT_HPROF_MAKE_H

#include <stdint.h>
#include <string.h>

#include "base/out.h"

struct hprof_make {
	struct out o;
	unsigned id_size;
	size_t segment; /* where its length stands; 0: none is open */
};

static inline void hm_number(struct hprof_make *m, uint64_t v, unsigned size)
{
	while (size--)
		out_char(&m->o, (char)(v >> size * 8));
}

static inline void hm_id(struct hprof_make *m, uint64_t id)
{
	hm_number(m, id, m->id_size);
}

static inline void hm_begin(struct hprof_make *m, unsigned id_size)
{
	*m = (struct hprof_make){ .id_size = id_size };
	out_init(&m->o, NULL);
	out_mem(&m->o, "JAVA PROFILE 1.0.2", 19);
	hm_number(m, id_size, 4);
	hm_number(m, 0, 8);
}

static inline void hm_record(struct hprof_make *m, uint8_t tag, uint32_t length)
{
	hm_number(m, tag, 1);
	hm_number(m, 0, 4);
	hm_number(m, length, 4);
}

static inline void hm_text(struct hprof_make *m, uint64_t id, const char *text)
{
	hm_record(m, 0x01, m->id_size + (uint32_t)strlen(text));
	hm_id(m, id);
	out_str(&m->o, text);
}

static inline void hm_load(struct hprof_make *m, uint64_t class, uint64_t name)
{
	hm_record(m, 0x02, 8 + 2 * m->id_size);
	hm_number(m, 1, 4);
	hm_id(m, class);
	hm_number(m, 0, 4);
	hm_id(m, name);
}

static inline void hm_segment_end(struct hprof_make *m)
{
	size_t end = m->o.n;

	if (!m->segment)
		return;
	m->o.n = m->segment;
	hm_number(m, end - m->segment - 4, 4);
	m->o.n = end;
	m->segment = 0;
}

static inline void hm_segment(struct hprof_make *m, uint8_t tag)
{
	hm_segment_end(m);
	hm_record(m, tag, 0);
	m->segment = m->o.n - 4;
}

/* A class with fields "name id, type" in pairs, and static ones "name id, value" of objects. */
static inline void hm_class(struct hprof_make *m, uint64_t id, uint64_t super,
			    const uint64_t *statics, unsigned nstatics, const uint64_t *fields,
			    unsigned nfields)
{
	hm_number(m, 0x20, 1);
	hm_id(m, id);
	hm_number(m, 0, 4);
	hm_id(m, super);
	for (int i = 0; i < 5; i++)
		hm_id(m, 0);
	hm_number(m, 0, 4);
	hm_number(m, 1, 2); /* a constant, which is passed over */
	hm_number(m, 5, 2);
	hm_number(m, 10, 1);
	hm_number(m, 77, 4);
	hm_number(m, nstatics, 2);
	for (unsigned i = 0; i < nstatics; i++) {
		hm_id(m, statics[2 * i]);
		hm_number(m, 2, 1);
		hm_id(m, statics[2 * i + 1]);
	}
	hm_number(m, nfields, 2);
	for (unsigned i = 0; i < nfields; i++) {
		hm_id(m, fields[2 * i]);
		hm_number(m, fields[2 * i + 1], 1);
	}
}

/* The caller writes `bytes` bytes of fields behind it. */
static inline void hm_instance(struct hprof_make *m, uint64_t id, uint64_t class, uint32_t bytes)
{
	hm_number(m, 0x21, 1);
	hm_id(m, id);
	hm_number(m, 0, 4);
	hm_id(m, class);
	hm_number(m, bytes, 4);
}

static inline void hm_objects(struct hprof_make *m, uint64_t id, uint64_t class, const uint64_t *v,
			      uint32_t n)
{
	hm_number(m, 0x22, 1);
	hm_id(m, id);
	hm_number(m, 0, 4);
	hm_number(m, n, 4);
	hm_id(m, class);
	for (uint32_t i = 0; i < n; i++)
		hm_id(m, v[i]);
}

static inline void hm_bytes(struct hprof_make *m, uint64_t id, const char *v, uint32_t n)
{
	hm_number(m, 0x23, 1);
	hm_id(m, id);
	hm_number(m, 0, 4);
	hm_number(m, n, 4);
	hm_number(m, 8, 1);
	out_mem(&m->o, v, n);
}

/* A root with ids and numbers of 4 bytes behind the object. */
static inline void hm_root(struct hprof_make *m, uint8_t tag, uint64_t id, unsigned ids,
			   unsigned numbers)
{
	hm_number(m, tag, 1);
	hm_id(m, id);
	for (unsigned i = 0; i < ids; i++)
		hm_id(m, 0);
	for (unsigned i = 0; i < numbers; i++)
		hm_number(m, 1, 4);
}

#endif
