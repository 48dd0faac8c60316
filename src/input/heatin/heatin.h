/* Heat maps' input: events and distributions over time, read into a matrix.
 *
 * In: the bytes of a file or pipe, in pieces of any size: event lines, the text or JSON that descry
 * and DTrace print for aggregations keyed by time, or the JSON of a heat map; which of them is seen
 * from the first bytes. Or a call for each event or bucket, from a run of our own. Out: `matrix`,
 * and what could not be read, counted.
 * Always true: memory grows with the cells and names, not with the input (but for the JSON of a
 * heat map); what is no event is skipped and counted, never an error; names are taken as they are,
 * whatever their bytes.
 */
#ifndef DESCRY_INPUT_HEATIN_HEATIN_H
#define DESCRY_INPUT_HEATIN_HEATIN_H

#include "input/lines.h"
#include "view/matrix.h"

enum heatin_format {
	HEATIN_AUTO,
#define FORMAT(id, reader, name, of) HEATIN_##id,
#include "input/heatin/formats.def"
#undef FORMAT
	HEATIN_NFORMATS
};
/* NULL and AUTO when there is no such format. */
const char *heatin_format_name(enum heatin_format f);
enum heatin_format heatin_format_named(const char *name);

enum heat_mode { HEAT_LATENCY, HEAT_UTILIZATION, HEAT_SUBSECOND, HEAT_NMODES };
const char *heat_mode_name(enum heat_mode m);
/* HEAT_NMODES when there is none. */
enum heat_mode heat_mode_named(const char *name, size_t len);

/* Columns of an event line. */
enum heatin_field { HEATIN_SKIP, HEATIN_TIME, HEATIN_VALUE, HEATIN_SERIES, HEATIN_WHO };
enum { HEATIN_FIELDS_MAX = 16 };

struct heatin_options {
	enum heatin_format format;
	enum heat_mode mode;
	uint64_t step; /* nanoseconds of a column; 0: a second, or the unit of time when that is longer */
	uint64_t time_unit; /* nanoseconds; 0: seconds when it has a decimal point or is below 10^10, else nanoseconds */
	double factor;           /* values of events are multiplied by it; 0 = 1 */
	double full;             /* utilization: the value that is 100%; 0 = 100 */
	struct matrix_axis axis; /* of events */
	enum heatin_field
		fields[HEATIN_FIELDS_MAX]; /* the last one that is named takes the rest of the line */
	uint32_t nfields; /* 0: time value series; utilization: time value who; subsecond: time series */
	uint32_t time_key; /* which key of an aggregation is the time, from 1; 0 = 1 */
	uint32_t by; /* how many of the others make the series; the rest is who; 0 = 1, utilization: none */
	const char *agg; /* only the aggregation of this name */
};

struct heatin {
	struct heatin_options options;
	bool made; /* the matrix exists: something was read */
	struct matrix matrix;

	/* Of the input being read. */
	enum heatin_format format; /* as recognised */
	uint64_t lines, events;
	uint64_t skipped, first_skipped; /* lines not understood; the number of the first, from 1 */
	/* Of all input. */
	uint64_t drops;      /* what the tracer says it has lost */
	uint64_t untimed;    /* rows of aggregations whose key is no time */
	uint64_t others;     /* rows of aggregations that were not asked for, or no distributions */
	uint64_t mixed;      /* buckets among events, or events among buckets */
	enum heat_mode mode; /* as asked for, or as the JSON of a heat map says */
	char *unit, *title;  /* as the JSON of a heat map says; NULL */

	/* The rest is the inside. */
	const struct heatin_reader *reader;
	void *state;
	struct lines text;
	struct heatin_cached { /* series of at most 8 bytes, without who */
		uint64_t text;
		uint32_t len, party;
	} * cache;
};

void heatin_init(struct heatin *in, const struct heatin_options *o);
void heatin_fini(struct heatin *in);

void heatin_feed(struct heatin *in, const char *text, size_t len);
/* The end of an input; another one may follow. */
void heatin_end(struct heatin *in);
/* All of a file, "-" is standard input: feed and end. */
struct err *heatin_read(struct heatin *in, const char *path);

struct heatin_party {
	const char *series, *who;
	size_t series_len, who_len;
	bool padded; /* eight bytes can be read at series, however long it is */
};
/* An event. The value is multiplied by options.factor and, for utilization, made a percentage by
 * whoever calls. */
void heatin_event(struct heatin *in, uint64_t time, int64_t value, const struct heatin_party *p);
void heatin_bucket(struct heatin *in, uint64_t time, int64_t min, int64_t max, uint64_t count,
		   const struct heatin_party *p);
/* A value as options.factor and options.full say. */
int64_t heatin_value(const struct heatin *in, double value);
/* Nanoseconds of a time in units of options.time_unit. */
uint64_t heatin_time(const struct heatin *in, uint64_t time);

/* Utilization: a party without an event in a column counts as 0% there. After all input. */
void heatin_idle(struct heatin *in);

#endif
