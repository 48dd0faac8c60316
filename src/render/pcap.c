/* pcap(): writes packets into a file of libpcap's format when freopen() named one, else as one line
 * and a dump. */
#include "render/render.h"

#include <sys/stat.h>
#include <time.h>

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, link;
};
struct pcap_packet {
	uint32_t seconds, nanoseconds, kept, length;
};
_Static_assert(sizeof(struct pcap_file) == 24 && sizeof(struct pcap_packet) == 16, "file format");

enum { MAGIC_NS = 0xa1b23c4d, LINK_RAW = 101, DLT_RAW = 12 };

/* The difference of CLOCK_MONOTONIC to the time of day. */
static struct timespec wall(uint64_t ns)
{
	struct timespec mono, real;
	int64_t t;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	t = (int64_t)ns + (real.tv_sec - mono.tv_sec) * 1000000000ll + real.tv_nsec - mono.tv_nsec;
	return (struct timespec){ .tv_sec = t / 1000000000, .tv_nsec = t % 1000000000 };
}

static bool is_empty(const struct out *o)
{
	struct stat st;

	return !o->n && !fstat(fileno(o->file), &st) && !st.st_size;
}

void pcap_print(struct sink *s, struct out *o, const struct record_view *r, const struct action *a,
		bool to_file)
{
	const struct field *fields = r->segment->fields, *mem = &fields[a->fields[2]];
	uint32_t link = (uint32_t)field_uint(&fields[a->fields[0]], r->data);
	uint32_t length = (uint32_t)field_uint(&fields[a->fields[1]], r->data);
	uint64_t kept;
	struct timespec at = wall(r->head->time);
	struct pcap_packet p;

	(void)s;
	memcpy(&kept, r->data + mem->offset, sizeof(kept));
	if (kept > mem->size - sizeof(kept))
		kept = mem->size - sizeof(kept);
	if (!to_file) {
		out_printf(o, "%lld.%09ld packet of %u bytes, link type %u\n", (long long)at.tv_sec,
			   at.tv_nsec, length, link);
		bytes_dump(o, r->data + mem->offset + sizeof(kept), (uint32_t)kept);
		return;
	}
	if (is_empty(o)) {
		const struct pcap_file head = { .magic = MAGIC_NS,
						.major = 2,
						.minor = 4,
						.snaplen = mem->size - (uint32_t)sizeof(kept),
						.link = link == DLT_RAW ? LINK_RAW : link };

		out_mem(o, (const char *)&head, sizeof(head));
	}
	p = (struct pcap_packet){ .seconds = (uint32_t)at.tv_sec,
				  .nanoseconds = (uint32_t)at.tv_nsec,
				  .kept = (uint32_t)kept,
				  .length = length };
	out_mem(o, (const char *)&p, sizeof(p));
	out_mem(o, (const char *)r->data + mem->offset + sizeof(kept), kept);
}
