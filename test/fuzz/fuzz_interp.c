/* Bytes -> instructions -> ebpf_check -> printer and interpreter. The first byte seeds the
 * context. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "isa/interp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t context[64], value[32];

/* Helpers of every shape: reads memory, gives memory, calls back, fails. */
static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	uint64_t args[5] = { 0 }, r0 = 0;
	uint8_t *p, *q;

	switch (id % 6) {
	case 0: return (uintptr_t)value;
	case 1:
		p = interp_bytes(in, a[0], a[1] & 0xff, true);
		if (p)
			memset(p, (int)a[2], a[1] & 0xff);
		return 0;
	case 2:
		p = interp_bytes(in, a[0], a[2], true);
		q = interp_bytes(in, a[1], a[2], false);
		if (p && q)
			memmove(p, q, a[2]);
		return 0;
	case 3:
		for (args[0] = 0; args[0] < a[0] && args[0] < 100; args[0]++) {
			args[1] = a[2];
			if (!interp_call(in, a[1], args, &r0) || r0)
				break;
		}
		return r0;
	case 4: interp_mem_del(in->mem, value); return 0;
	default: interp_fail(in, "helper %u", id); return 0;
	}
}

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret_value)
{
	*ret_value = (uintptr_t)value;
	return insn->imm != 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct interp_ops ops = { .helper = helper, .resolve = resolve };
	struct interp_mem mem = { 0 };
	struct bpf_insn *insns;
	struct interp in;
	struct err *e;
	uint64_t r0;
	uint32_t n;
	char *text;
	size_t len;
	FILE *out;

	if (size < 1 + sizeof(*insns))
		return 0;
	n = (uint32_t)((size - 1) / sizeof(*insns));
	insns = xmemdup(data + 1, n * sizeof(*insns));
	memset(context, data[0], sizeof(context));

	/* the printer takes anything */
	out = open_memstream(&text, &len);
	ebpf_print(out, insns, n, NULL);
	fclose(out);
	free(text);

	e = ebpf_check(insns, n, 0);
	if (!e) {
		interp_mem_add(&mem, context, sizeof(context), true);
		interp_mem_add(&mem, value, sizeof(value), true);
		interp_init(&in, &ops, NULL, insns, n, &mem);
		in.budget = 20000;
		e = interp_run(&in, 0, (uintptr_t)context, &r0);
		interp_fini(&in);
		interp_mem_fini(&mem);
	}
	err_free(e);
	free(insns);
	return 0;
}
