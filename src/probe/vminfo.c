/* Provider vminfo: the counters of virtual memory, one probe for each counter. arg0 is the amount
 * that is added. */
#include <linux/perf_event.h>

#include "probe/event.h"

// clang-format off
#define BIO "((struct bio *)arg0)"
#define BIO_OP(op) "(" BIO "->bi_opf & 0xff) == " op " && " BIO "->bi_iter.bi_size != 0"
#define BIO_PAGES COUNTS("(uint64_t)(" BIO "->bi_iter.bi_size + 4095) / 4096")
// clang-format on
#define DISK_NOTE \
	"counted where the kernel counts pgpgin and pgpgout: every read or write of a block device"
#define UNSEEN "the kernel counts this without a tracepoint"
#define NO_RECLAIM "Linux takes no page back from its free ones"
#define NO_SWAPPING \
	"Linux writes single pages to swap space, and no whole process: anonpgin, anonpgout"
/* __bio_file is in dlib/io.d */
#define OF_FILE(op, kind) BIO_OP(op) " && __bio_file[" BIO "] == " kind
#define EXEC_NOTE \
	"pages of a file that is being executed, from the device; those of its libraries are fspgin and fspgout"
#define FS_NOTE "pages of files that go through the page cache, at the device"

/* page_fault_user(address, regs, error_code): bit 0 means that the page was present, bit 1 a write.
 * mm_vmscan_lru_shrink_inactive(node, scanned, reclaimed, ...) */
static const struct event events[] = {
	EVENT("as_fault", "page_fault_user", .min_params = 3, .filter = "(arg2 & 1) == 0",
	      COUNTS("1")),
	EVENT("prot_fault", "page_fault_user", .min_params = 3, .filter = "(arg2 & 3) == 1",
	      COUNTS("1")),
	EVENT("cow_fault", "page_fault_user", .min_params = 3, .filter = "(arg2 & 3) == 3",
	      COUNTS("1"),
	      .note = "every write to a page that is there and read-only, forbidden ones included"),
	EVENT("kernel_asflt", "page_fault_kernel", COUNTS("1")),
	EVENT("pgin", "block_bio_queue", .filter = BIO_OP("0"), COUNTS("1"), .note = DISK_NOTE),
	EVENT("pgpgin", "block_bio_queue", .filter = BIO_OP("0"), BIO_PAGES, .note = DISK_NOTE),
	EVENT("pgout", "block_bio_queue", .filter = BIO_OP("1"), COUNTS("1"), .note = DISK_NOTE),
	EVENT("pgpgout", "block_bio_queue", .filter = BIO_OP("1"), BIO_PAGES, .note = DISK_NOTE),
	EVENT("anonpgout", "mm_vmscan_write_folio", COUNTS("1"),
	      .note = "folios written by reclaim: anonymous memory and shared memory going to swap"),
	EVENT("scan", "mm_vmscan_lru_shrink_inactive", .min_params = 3,
	      ARGS({ .type = "uint64_t", .word = 1 })),
	EVENT("dfree", "mm_vmscan_lru_shrink_inactive", .min_params = 3,
	      ARGS({ .type = "uint64_t", .word = 2 })),
	EVENT("pgrrun", "mm_vmscan_kswapd_wake", COUNTS("1")),
	{ .name = "maj_fault",
	  .kind = ATTACH_PROFILE,
	  .software = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  COUNTS("1") },
	EVENT("anonpgin", "block_bio_queue", .enumerator = "PG_swapcache",
	      .filter = BIO_OP("0") " && __bio_swap[" BIO "]", BIO_PAGES,
	      .note = "pages read from swap space on a block device"),
	EVENT("execpgin", "block_bio_queue", .filter = OF_FILE("0", "2"), BIO_PAGES,
	      .note = EXEC_NOTE),
	EVENT("execpgout", "block_bio_queue", .filter = OF_FILE("1", "2"), BIO_PAGES,
	      .note = EXEC_NOTE),
	EVENT("fspgin", "block_bio_queue", .filter = OF_FILE("0", "1"), BIO_PAGES, .note = FS_NOTE),
	EVENT("fspgout", "block_bio_queue", .filter = OF_FILE("1", "1"), BIO_PAGES,
	      .note = FS_NOTE ", mostly by a kernel thread later"),
	EVENT("anonfree", "mm_vmscan_lru_shrink_inactive", .min_params = 6,
	      .filter = "(int)arg5 == 0 && arg2 != 0", ARGS({ .type = "uint64_t", .word = 2 })),
	EVENT("fsfree", "mm_vmscan_lru_shrink_inactive", .min_params = 6,
	      .filter = "(int)arg5 != 0 && arg2 != 0", ARGS({ .type = "uint64_t", .word = 2 }),
	      .note = "pages of programs too"),
	NO_EVENT("execfree", "reclaim does not distinguish pages of programs: fsfree counts them"),
	NO_EVENT("zfod", UNSEEN),
	NO_EVENT("swapin", NO_SWAPPING, .never = true),
	NO_EVENT("swapout", NO_SWAPPING, .never = true),
	NO_EVENT("pgswapin", UNSEEN),
	NO_EVENT("pgswapout", UNSEEN),
	NO_EVENT("pgfrec", NO_RECLAIM, .never = true),
	NO_EVENT("pgrec", NO_RECLAIM, .never = true),
	NO_EVENT("rev", "Linux has lists of pages, and no clock hand", .never = true),
	NO_EVENT("softlock", UNSEEN),
};

const struct provider provider_vminfo =
	EVENTS("vminfo", 20300, 20399, events, "page faults, paging and reclaim");
