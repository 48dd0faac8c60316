/* Bytes -> one program of an image with a map of each type -> linker -> interpreting engine. Makes
 * references to maps from the LD_IMM64s, and calls of routines from calls between functions. */
#include "base/mem.h"
#include "isa/bpf_insn.h"
#include "load/interp/interp_private.h"
#include "wire/routines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rodata[64] = "/usr/bin/x";

static struct image_map maps[] = {
	{ "state", MAP_STATE, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct wire_state), 1, 0, NULL, 0 },
	{ "data", MAP_DATA, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0, NULL, 0 },
	{ "counters", MAP_COUNTERS, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, WIRE_FIXED_COUNTERS, 0, NULL,
	  0 },
	{ "rodata", MAP_RODATA, BPF_MAP_TYPE_ARRAY, 4, sizeof(rodata), 1, BPF_F_RDONLY_PROG, rodata,
	  0 },
	{ "agg", MAP_AGG, BPF_MAP_TYPE_PERCPU_HASH, 8, 16, 4, 0, NULL, 0 },
	{ "assoc", MAP_ASSOC, BPF_MAP_TYPE_LRU_HASH, 12, 8, 3, 0, NULL, 0 },
	{ "tls", MAP_TLS, BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0, 0, NULL, 0 },
	{ "scratch", MAP_SCRATCH, BPF_MAP_TYPE_ARRAY, 4, 1024, WIRE_SCRATCH_SLOTS, 0, NULL, 0 },
};
static struct agg aggs[] = { { .name = "", .key_size = 8, .nwords = 2, .map = 4 } };

static void on_record(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	uint64_t *sum = arg;

	for (uint32_t i = 0; i < size; i++)
		*sum += ((const uint8_t *)r)[i];
}

static void on_row(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	uint64_t *sum = arg, k;

	memcpy(&k, key, 8);
	*sum += k + values[0] + values[1];
}

/* Makes relocations as the compiler does. Returns false for an instruction that must not run
 * here. */
static bool prepare(struct bpf_insn *insns, uint32_t n, struct image_prog *p)
{
#define X(name, nargs, doc) #name,
	static const char *const routines[] = { WIRE_ROUTINES(X) };
#undef X
	for (uint32_t i = 0; i < n; i++) {
		struct bpf_insn *ins = &insns[i];
		struct reloc *r = &p->relocs[p->nrelocs];

		if (ebpf_is_ld_imm64(ins) && i + 1 < n) {
			if (ins->src_reg) {
				r->kind = ins->src_reg & 1 ? RELOC_MAP : RELOC_MAP_VALUE;
				r->target = (uint32_t)ins->imm % ARRAY_SIZE(maps);
				r->addend = r->kind == RELOC_MAP ? 0 : ins[1].imm;
				r->insn = i;
				p->nrelocs++;
			}
			i++;
		} else if (ins->code == (BPF_JMP | BPF_CALL)) {
			if (ins->imm == BPF_FUNC_send_signal ||
			    ins->imm == BPF_FUNC_send_signal_thread)
				return false;
			if (ins->src_reg == BPF_PSEUDO_CALL) {
				r->kind = RELOC_ROUTINE;
				r->name = routines[(uint32_t)ins->imm % ARRAY_SIZE(routines)];
				r->insn = i;
				p->nrelocs++;
			}
		}
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t n = (uint32_t)(size / sizeof(struct bpf_insn));
	struct image_prog p = { .name = "fuzz", .attach = ATTACH_SELF, .ninsns = n };
	struct image img = { .maps = maps,
			     .nmaps = ARRAY_SIZE(maps),
			     .progs = &p,
			     .nprogs = 1,
			     .aggs = aggs,
			     .naggs = 1 };
	struct engine *e;
	struct err *err;
	uint64_t sum = 0;

	if (!n || n > 256)
		return 0;
	p.insns = xmemdup(data, n * sizeof(*p.insns));
	p.relocs = xcalloc(n, sizeof(*p.relocs));
	p.locs = xcalloc(n, sizeof(*p.locs));
	/* the linker expects the compiler's output: sound, except for the values that the linker
	 * fills in */
	err = prepare(p.insns, n, &p) ? ebpf_check(p.insns, n, EBPF_UNLINKED)
				      : err_new(0, "not here");
	if (!err) {
		e = engine_interp.new(&(struct engine_setting){ 0 });
		((struct interp_engine *)e)->budget = 20000;
		err = e->ops->load(e, &img, false);
		if (!err)
			err = e->ops->fire(e, 0);
		if (e->state) {
			e->ops->drain(e, on_record, &sum);
			err_free(e->ops->agg_read(e, 0, on_row, &sum));
		}
		e->ops->free(e);
	}
	err_free(err);
	free(p.insns);
	free(p.relocs);
	free(p.locs);
	return 0;
}
