/* Provider vminfo: the counters of virtual memory, one probe for each count. arg0 is how much is counted. */
#include "probe/event.h"
#include "probe/provider.h"

enum { FIRST_ID = 20300 };

// clang-format off
#define ONE { { .type = "uint64_t", .expr = "1" } }
#define BIO "((struct bio *)arg0)"
#define BIO_OP(op) "(" BIO "->bi_opf & 0xff) == " op " && " BIO "->bi_iter.bi_size != 0"
#define BIO_PAGES { { .type = "uint64_t", .expr = "(uint64_t)(" BIO "->bi_iter.bi_size + 4095) / 4096" } }
// clang-format on
#define DISK_NOTE \
	"counted where the kernel counts pgpgin and pgpgout: every read or write of a block device"
#define NO_EVENT "the kernel counts this without a tracepoint"

/* page_fault_user(address, regs, error_code): bit 0 the page was there, bit 1 a write.
 * mm_vmscan_lru_shrink_inactive(node, scanned, reclaimed, ...) */
static const struct event events[] = {
	{ .name = "as_fault",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "page_fault_user",
	  .min_params = 3,
	  .filter = "(arg2 & 1) == 0",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "prot_fault",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "page_fault_user",
	  .min_params = 3,
	  .filter = "(arg2 & 3) == 1",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "cow_fault",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "page_fault_user",
	  .min_params = 3,
	  .filter = "(arg2 & 3) == 3",
	  .nargs = 1,
	  .args = ONE,
	  .note = "every write to a page that is there and read-only, forbidden ones included" },
	{ .name = "kernel_asflt",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "page_fault_kernel",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "pgin",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "block_bio_queue",
	  .filter = BIO_OP("0"),
	  .nargs = 1,
	  .args = ONE,
	  .note = DISK_NOTE },
	{ .name = "pgpgin",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "block_bio_queue",
	  .filter = BIO_OP("0"),
	  .nargs = 1,
	  .args = BIO_PAGES,
	  .note = DISK_NOTE },
	{ .name = "pgout",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "block_bio_queue",
	  .filter = BIO_OP("1"),
	  .nargs = 1,
	  .args = ONE,
	  .note = DISK_NOTE },
	{ .name = "pgpgout",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "block_bio_queue",
	  .filter = BIO_OP("1"),
	  .nargs = 1,
	  .args = BIO_PAGES,
	  .note = DISK_NOTE },
	{ .name = "anonpgout",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "mm_vmscan_write_folio",
	  .nargs = 1,
	  .args = ONE,
	  .note = "folios written by reclaim: anonymous memory and shared memory going to swap" },
	{ .name = "scan",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "mm_vmscan_lru_shrink_inactive",
	  .min_params = 3,
	  .nargs = 1,
	  .args = { { .type = "uint64_t", .word = 1 } } },
	{ .name = "dfree",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "mm_vmscan_lru_shrink_inactive",
	  .min_params = 3,
	  .nargs = 1,
	  .args = { { .type = "uint64_t", .word = 2 } } },
	{ .name = "pgrrun",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "mm_vmscan_kswapd_wake",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "maj_fault", .why = NO_EVENT },
	{ .name = "zfod", .why = NO_EVENT },
	{ .name = "swapin", .why = NO_EVENT },
	{ .name = "swapout", .why = NO_EVENT },
	{ .name = "pgswapin", .why = NO_EVENT },
	{ .name = "pgswapout", .why = NO_EVENT },
	{ .name = "anonpgin", .why = NO_EVENT },
	{ .name = "anonfree", .why = NO_EVENT },
	{ .name = "execfree", .why = NO_EVENT },
	{ .name = "execpgin", .why = NO_EVENT },
	{ .name = "execpgout", .why = NO_EVENT },
	{ .name = "fsfree", .why = NO_EVENT },
	{ .name = "fspgin", .why = NO_EVENT },
	{ .name = "fspgout", .why = NO_EVENT },
	{ .name = "pgfrec", .why = NO_EVENT },
	{ .name = "pgrec", .why = NO_EVENT },
	{ .name = "rev", .why = NO_EVENT },
	{ .name = "softlock", .why = NO_EVENT },
};

static struct err *vminfo_match(const struct provider *pv, struct probe_set *ps,
				const struct probe_desc *pd,
				void (*found)(void *arg, struct probe *p), void *arg)
{
	return events_match(pv, ps, events, ARRAY_SIZE(events), FIRST_ID, pd, found, arg);
}

const struct provider provider_vminfo = {
	.name = "vminfo",
	.doc = "page faults, paging and reclaim",
	.claims = provider_claims_name,
	.match = vminfo_match,
	.args = events_args,
};
