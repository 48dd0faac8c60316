/* Prints the compiled program as text. */
#include <inttypes.h>
#include <Zycore/Format.h>
#include <Zydis/Zydis.h>

#include "compile/jit/jit_private.h"

struct printer {
	const struct jit_code *code;
	const struct jit_env *env;
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	ZydisFormatterFunc address, imm; /* the functions that the hooks replace */
};

static const char *const agent_names[] = {
#define X(name, what) #name,
	WIRE_AGENT_ENTRIES(X)
#undef X
};
static const char *const kind_names[] = { "entry",   "return", "tail",    "mid",
					  "syscall", "sysret", "sysnote", "sysfork",
					  "enters",  "exits",  "sends",   "execs",
					  "leaves",  "forks",  "starts",  "stays" };

#define FIELD(f) \
	{ \
		offsetof(struct wire_area, f), #f \
	}
static const struct {
	uint64_t off;
	const char *name;
} area_fields[] = { FIELD(gen), FIELD(entries), FIELD(clock.base_ns), FIELD(clock.mult) };

/* Writes the name of an address to buf, or "" if it has none. */
static void name_address(const struct printer *p, uint64_t addr, char *buf, size_t size)
{
	const struct jit_env *env = p->env;
	uint64_t off = addr - env->code;

	*buf = '\0';
	if (addr >= env->code && off < p->code->size) {
		if (off >= p->code->insn_at[p->code->ninsns] && off < p->code->thunk[0])
			snprintf(buf, size, "aside");
		else
			snprintf(buf, size, "+0x%" PRIx64, off);
		return;
	}
	for (uint32_t i = 0; i < WIRE_AGENT_ENTRY_COUNT; i++) {
		if (addr == env->agent + env->head->entry[i]) {
			snprintf(buf, size, "agent %s", agent_names[i]);
			return;
		}
	}
	for (uint32_t i = 0; i < env->nmaps; i++) {
		const struct wire_map *m = &env->maps[i];

		if (addr == env->map_addrs[i])
			snprintf(buf, size, "map %u", i);
		else if (m->kind == WIRE_MAP_ARRAY &&
			 addr - m->base < (uint64_t)m->stride * m->max_entries)
			snprintf(buf, size, "map %u value + %" PRIu64, i, addr - m->base);
		else
			continue;
		return;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(area_fields); i++)
		if (addr == env->area + area_fields[i].off)
			snprintf(buf, size, "area %s", area_fields[i].name);
	if (addr == env->private + offsetof(struct wire_private, threads))
		snprintf(buf, size, "threads");
	if (addr == env->private + WIRE_KEPT + offsetof(struct wire_kept, quiet))
		snprintf(buf, size, "quiet");
}

static ZyanStatus append(ZydisFormatterBuffer *b, const char *text)
{
	ZyanString *s;

	ZYAN_CHECK(ZydisFormatterBufferAppend(b, ZYDIS_TOKEN_SYMBOL));
	ZYAN_CHECK(ZydisFormatterBufferGetString(b, &s));
	return ZyanStringAppendFormat(s, "%s", text);
}

static ZyanStatus print_address(const ZydisFormatter *f, ZydisFormatterBuffer *b,
				ZydisFormatterContext *c)
{
	const struct printer *p = c->user_data;
	char name[64];
	ZyanU64 addr;

	ZYAN_CHECK(ZydisCalcAbsoluteAddress(c->instruction, c->operand, c->runtime_address, &addr));
	name_address(p, addr, name, sizeof(name));
	return *name ? append(b, name) : p->address(f, b, c);
}

static ZyanStatus print_imm(const ZydisFormatter *f, ZydisFormatterBuffer *b,
			    ZydisFormatterContext *c)
{
	const struct printer *p = c->user_data;
	char name[64] = "";

	if (!c->operand->imm.is_relative && c->operand->imm.value.u > UINT32_MAX)
		name_address(p, c->operand->imm.value.u, name, sizeof(name));
	return *name ? append(b, name) : p->imm(f, b, c);
}

static void print_range(const struct printer *p, FILE *out, uint32_t from, uint32_t to)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction ins;
	char text[128];

	while (from < to) {
		const uint8_t *at = p->code->bytes + from;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&p->decoder, at, to - from, &ins, ops)))
			return;
		if (ins.mnemonic == ZYDIS_MNEMONIC_INT3) /* padding between functions */
			return;
		if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
			    &p->formatter, &ins, ops, ins.operand_count_visible, text, sizeof(text),
			    p->env->code + from, (void *)(uintptr_t)p)))
			return;
		fprintf(out, "\t+0x%-6x %s\n", from, text);
		from += ins.length;
	}
}

void jit_print(FILE *out, const struct jit_code *c, const struct bpf_insn *insns,
	       const struct jit_env *env, const struct ebpf_names *names)
{
	struct printer p = { .code = c,
			     .env = env,
			     .address = (ZydisFormatterFunc)print_address,
			     .imm = (ZydisFormatterFunc)print_imm };
	uint32_t to;

	ZydisDecoderInit(&p.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&p.formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	ZydisFormatterSetHook(&p.formatter, ZYDIS_FORMATTER_FUNC_PRINT_ADDRESS_ABS,
			      (const void **)&p.address);
	ZydisFormatterSetHook(&p.formatter, ZYDIS_FORMATTER_FUNC_PRINT_IMM, (const void **)&p.imm);
	for (uint32_t i = 0; i < c->ninsns; i++) {
		bool two = ebpf_is_ld_imm64(&insns[i]);
		const char *operand = names && names->operand ? names->operand(names->arg, i)
							      : NULL;
		char text[160];

		if (c->insn_at[i] == (uint32_t)JIT_NO_CODE) {
			i += two;
			continue;
		}
		ebpf_text(text, sizeof(text), &insns[i], i + 1 < c->ninsns ? &insns[i + 1] : NULL);
		if (operand && two)
			fprintf(out, "%5u r%u = %s", i, insns[i].dst_reg, operand);
		else if (operand)
			fprintf(out, "%5u call %s", i, operand);
		else
			fprintf(out, "%5u %s", i, text);
		if (names && names->remark)
			names->remark(names->arg, i, out);
		putc('\n', out);
		to = i + 1 + two;
		while (c->insn_at[to] == (uint32_t)JIT_NO_CODE)
			to++;
		to = c->insn_at[to];
		print_range(&p, out, c->insn_at[i], to);
		i += two;
	}
	for (int k = 0; k < WIRE_STUB_ALL; k++) {
		if (!c->thunk[k])
			continue;
		fprintf(out, "thunk %s\n", kind_names[k]);
		to = c->host;
		for (int next = WIRE_STUB_ALL; --next > k;)
			to = c->thunk[next] ? c->thunk[next] : to;
		print_range(&p, out, c->thunk[k], to);
	}
	fprintf(out, "host\n");
	print_range(&p, out, c->host, c->size);
	fprintf(out, "%u bytes, %u of stack, %u accesses proven, %u checked\n", c->size, c->stack,
		c->nproven, c->nchecked);
}
