/* Provider io: requests to block devices. */
#include "probe/event.h"

// clang-format off
#define REQUEST "struct request *"
#define IO_ARGS \
	{ .type = REQUEST, .xlate = "bufinfo_t *" }, \
	{ .type = REQUEST, .xlate = "devinfo_t *" }, \
	{ .type = REQUEST, .xlate = "fileinfo_t *" }
/* block_rq_complete(request, error, bytes): error is a blk_status_t; on older kernels a negative
 * errno. dlib/io.d takes the packed word apart. */
#define WITH_ERRNO \
	"((uint64_t)arg0 & 0x00ffffffffffffff) | (uint64_t)((int)arg1 < 0 ? -(int)arg1 & 0xff : __blk_errno[(uint8_t)arg1]) << 56"
// clang-format on
#define WAIT_REASON \
	"the kernel has no tracepoint where a thread waits for a request; sched:::off-cpu with stack() shows it"
#define BIO_NOTE \
	"devices that take no requests (zram, brd, pmem, md) are seen at the device below them, if there is one"

/* start fires in the thread that made the request (block_io_start) where the kernel has that
 * tracepoint. done uses the request's last block_rq_complete, because the size is already 0 at
 * block_io_done. */
static const struct event events[] = {
	EVENT("start", "block_io_start", ARGS(IO_ARGS), .note = BIO_NOTE),
	EVENT("start", "block_rq_issue", ARGS(IO_ARGS),
	      .note = "may run in a kernel thread instead of the thread that asked; " BIO_NOTE),
	EVENT("done", "block_rq_complete", .min_params = 3,
	      .filter = "(uint32_t)arg2 >= ((struct request *)arg0)->__data_len",
	      ARGS({ .type = "uint64_t",
		     .xlate = "bufinfo_t *",
		     .expr = WITH_ERRNO,
		     .raw = "(int64_t)arg0" },
		   { .type = REQUEST, .xlate = "devinfo_t *" },
		   { .type = REQUEST, .xlate = "fileinfo_t *" }),
	      .note = "runs in an interrupt, in the context of any thread; " BIO_NOTE),
	NO_EVENT("wait-start", WAIT_REASON, ARGS(IO_ARGS)),
	NO_EVENT("wait-done", WAIT_REASON, ARGS(IO_ARGS)),
};

const struct provider provider_io =
	EVENTS("io", 20200, 20299, events, "requests to block devices, started and done");
