/* The input of heat maps: reads events and distributions over time into a matrix.
 *
 * In: the bytes of a file or pipe, in pieces of any size: event lines, the text or JSON that descry
 * and DTrace print for aggregations keyed by time, or the JSON of a heat map. The first bytes
 * determine the format. Or a call for each event or bucket, from a run of descry itself. Out:
 * `matrix`, and counts of the data that could not be read. Always true: memory grows with the cells
 * and names, not with the input (except for the JSON of a heat map). Text that is no event is
 * skipped and counted, and is never an error. Names may have any bytes.
 */
#ifndef DESCRY_INPUT_HEATIN_HEATIN_H
#define DESCRY_INPUT_HEATIN_HEATIN_H

#include "input/input_lines.h"
#include "view/matrix.h"

enum heatin_format {
	HEATIN_AUTO,
#define FORMAT(id, reader, name, of) HEATIN_##id,
#include "input/heatin/formats.def"
#undef FORMAT
	HEATIN_NFORMATS
};
/* Returns the format, or NULL and AUTO when there is none of this name. */
const char *heatin_format_name(enum heatin_format f);
enum heatin_format heatin_format_named(const char *name);

enum heat_mode { HEAT_LATENCY, HEAT_UTILIZATION, HEAT_SUBSECOND, HEAT_NMODES };
const char *heat_mode_name(enum heat_mode m);
/* Returns the mode, or HEAT_NMODES when there is none of this name. */
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
		fields[HEATIN_FIELDS_MAX]; /* the last named column takes the rest of the line */
	uint32_t nfields; /* 0: time value series; utilization: time value who; subsecond: time series */
	uint32_t time_key; /* number of the aggregation's key that is the time, from 1; 0 = 1 */
	/* number of other keys that make the series, the rest is who; 0 = 1, utilization: none */
	uint32_t by;
	const char *agg; /* only the aggregation of this name */
};

struct heatin {
	struct heatin_options options;
	bool made; /* the matrix exists, because some data was read */
	struct matrix matrix;

	/* About the input that is being read. */
	enum heatin_format format; /* as recognised */
	uint64_t lines, events;
	uint64_t skipped, first_skipped; /* lines not understood; the number of the first, from 1 */
	/* About all input. */
	uint64_t drops;   /* losses that the tracer reported */
	uint64_t untimed; /* rows of aggregations without a time among their keys */
	/* rows of other aggregations than the requested one, or of no distribution */
	uint64_t others;
	uint64_t mixed;      /* buckets among events, or events among buckets */
	enum heat_mode mode; /* from the options, or from the JSON of a heat map */
	char *unit, *title;  /* from the JSON of a heat map; NULL */

	/* The rest is private. */
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
/* Ends an input. Another one may follow. */
void heatin_end(struct heatin *in);
/* Reads a whole file ("-" is standard input): feed and end. */
struct err *heatin_read(struct heatin *in, const char *path);

struct heatin_party {
	const char *series, *who;
	size_t series_len, who_len;
	bool padded;     /* eight bytes can be read at series, whatever its length */
	uint32_t number; /* 1 + the party's index in the matrix; 0: not looked up yet */
};
/* Adds an event. The caller has multiplied the value by options.factor and, for utilization, made
 * it a percentage. */
void heatin_event(struct heatin *in, uint64_t time, int64_t value, const struct heatin_party *p);
/* Adds a bucket. Looks the party up once and notes its number in *p, because a name may be as long
 * as the input, and a distribution may have as many buckets. */
void heatin_bucket(struct heatin *in, uint64_t time, int64_t min, int64_t max, uint64_t count,
		   struct heatin_party *p);
/* Applies options.factor and options.full to a value. */
int64_t heatin_value(const struct heatin *in, double value);

/* Utilization: counts a party without an event in a column as 0% there. Call it after all input.
 * Returns false when these are too many, and none is counted. */
bool heatin_idle(struct heatin *in);

#endif
