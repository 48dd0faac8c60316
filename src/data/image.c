/* Prints, lists and frees images. */
#include "data/image.h"

#include "data/agg.h"
#include "isa/bpf_insn.h"

static const char *const role_names[] = {
	[MAP_STATE] = "state",
	[MAP_DATA] = "data",
	[MAP_CONTROL] = "control",
	[MAP_GLOBALS] = "globals",
	[MAP_RODATA] = "rodata",
	[MAP_SCRATCH] = "scratch",
	[MAP_TLS] = "tls",
	[MAP_SYSCALLS] = "syscalls",
	[MAP_COUNTERS] = "counters",
	[MAP_STACKS] = "stacks",
	[MAP_AGG] = "agg",
	[MAP_ASSOC] = "assoc",
	[MAP_LATE] = "late",
	[MAP_UNWIND] = "unwind",
	[MAP_UNWIND_PROCESSES] = "unwind_procs",
	[MAP_UNWIND_WANTED] = "unwind_wanted",
	[MAP_TICKS] = "ticks",
	[MAP_SAMPLES] = "samples",
	[MAP_FUNCTIONS] = "functions",
	[MAP_OTHER] = "other",
};

static const char *map_type_name(enum bpf_map_type t)
{
	switch (t) {
	case BPF_MAP_TYPE_ARRAY: return "array";
	case BPF_MAP_TYPE_HASH: return "hash";
	case BPF_MAP_TYPE_PERCPU_ARRAY: return "percpu_array";
	case BPF_MAP_TYPE_PERCPU_HASH: return "percpu_hash";
	case BPF_MAP_TYPE_RINGBUF: return "ringbuf";
	case BPF_MAP_TYPE_TASK_STORAGE: return "task_storage";
	case BPF_MAP_TYPE_STACK_TRACE: return "stack_trace";
	default: return "map";
	}
}

static const char *const field_names[] = {
	[FIELD_INT] = "int",           [FIELD_STRING] = "string",     [FIELD_STRID] = "strid",
	[FIELD_BYTES] = "bytes",       [FIELD_KSTACK] = "kstack",     [FIELD_USTACK] = "ustack",
	[FIELD_KSTACKID] = "kstackid", [FIELD_USTACKID] = "ustackid", [FIELD_SYM] = "sym",
	[FIELD_MOD] = "mod",           [FIELD_USYM] = "usym",         [FIELD_UMOD] = "umod",
	[FIELD_UADDR] = "uaddr",       [FIELD_MEM] = "mem",
};

static const char *const action_names[] = {
	[ACT_TRACE] = "trace",
	[ACT_TRACEMEM] = "tracemem",
	[ACT_PCAP] = "pcap",
	[ACT_PRINTF] = "printf",
	[ACT_PRINTA] = "printa",
	[ACT_PRINT] = "print",
	[ACT_STACK] = "stack",
	[ACT_USTACK] = "ustack",
	[ACT_SYM] = "sym",
	[ACT_EXIT] = "exit",
	[ACT_CLEAR] = "clear",
	[ACT_TRUNC] = "trunc",
	[ACT_NORMALIZE] = "normalize",
	[ACT_DENORMALIZE] = "denormalize",
	[ACT_COMMIT] = "commit",
	[ACT_DISCARD] = "discard",
	[ACT_FREOPEN] = "freopen",
	[ACT_FTRUNCATE] = "ftruncate",
	[ACT_SYSTEM] = "system",
	[ACT_SETOPT] = "setopt",
	[ACT_DEFAULT] = "default",
};

const char *action_name(enum action_kind kind)
{
	return action_names[kind];
}

struct operands {
	const struct image *img;
	const struct image_prog *prog;
	char text[160];
};

static const char *operand(void *arg, uint32_t insn)
{
	struct operands *o = arg;

	for (uint32_t i = 0; i < o->prog->nrelocs; i++) {
		const struct reloc *r = &o->prog->relocs[i];

		if (r->insn != insn)
			continue;
		switch (r->kind) {
		case RELOC_MAP:
			snprintf(o->text, sizeof(o->text), "map %s", o->img->maps[r->target].name);
			break;
		case RELOC_MAP_VALUE:
			snprintf(o->text, sizeof(o->text), "&%s + %lld",
				 o->img->maps[r->target].name, (long long)r->addend);
			break;
		default: snprintf(o->text, sizeof(o->text), "%s", r->name);
		}
		return o->text;
	}
	return NULL;
}

static void print_fields(FILE *out, const struct field *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "\t\t%u: %s at %u, %u bytes\n", i, field_names[f[i].kind], f[i].offset,
			f[i].size);
}

static void print_segment(FILE *out, const struct segment *s, uint32_t i)
{
	fprintf(out, "segment %u: clause %u, %u bytes%s%s\n", i, s->clause, s->size,
		s->control ? ", control" : "", s->speculative ? ", speculative" : "");
	print_fields(out, s->fields, s->nfields);
	for (uint32_t k = 0; k < s->nactions; k++) {
		const struct action *a = &s->actions[k];

		fprintf(out, "\t%s", action_name(a->kind));
		if (a->format)
			fprintf(out, " \"%s\"", a->format->text);
		for (uint32_t j = 0; j < a->naggs; j++)
			fprintf(out, " @%u", a->aggs[j]);
		for (uint32_t j = 0; j < a->nfields; j++)
			fprintf(out, " %u", a->fields[j]);
		fputc('\n', out);
	}
}

static void print_clause(FILE *out, const struct image_clause *c)
{
	fprintf(out, "clause %u: %s\n", c->index, c->desc ? c->desc : "");
	for (uint32_t i = 0; i < c->nvars; i++) {
		const struct image_var *v = &c->vars[i];

		fprintf(out, "\t%s%s: %s", v->name, v->array ? "[]" : "", v->scope);
		if (v->placed)
			fprintf(out, " at %u", v->offset);
		fprintf(out, ", %s, %s%s\n", v->type, v->read ? "r" : "", v->written ? "w" : "");
	}
}

static void list_variables(FILE *out, const struct image_clause *c)
{
	if (!c->nvars)
		return;
	fprintf(out, "\n%-16s %-4s %-6s %-3s %-3s %-11s %-4s %s\n", "NAME", "ID", "OFFSET", "KND",
		"SCP", "RANGE", "FLAG", "TYPE");
	for (uint32_t i = 0; i < c->nvars; i++) {
		const struct image_var *v = &c->vars[i];
		char offset[16] = "";

		if (v->placed)
			snprintf(offset, sizeof(offset), "%u", v->offset);
		fprintf(out, "%-16s %-4x %-6s %-3s %-3s %-11s %-4s %s\n", v->name, v->id, offset,
			v->array ? "arr" : "scl", v->scope, "-",
			v->read && v->written ? "r/w"
			: v->read             ? "r"
					      : "w",
			v->type);
	}
	fputc('\n', out);
}

/* Returns true when the program contains code of the clause. */
static bool serves(const struct image_prog *p, const struct image_clause *c)
{
	for (uint32_t i = 0; i < p->ninsns; i++)
		if (p->locs[i] >= c->loc && p->locs[i] < c->end)
			return true;
	return false;
}

void image_list(FILE *out, const struct image *img)
{
	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		struct operands o = { .img = img, .prog = p };
		struct ebpf_names names = { .operand = operand, .arg = &o, .bytes = true };
		bool any = false;

		for (uint32_t k = 0; k < img->nclauses; k++)
			if (serves(p, &img->clauses[k])) {
				fprintf(out, "%sDisassembly of clause %s\n", any ? "" : "\n",
					img->clauses[k].desc);
				any = true;
			}
		if (!any)
			fprintf(out, "\nDisassembly of program %s\n", p->name);
		ebpf_print(out, p->insns, p->ninsns, &names);
		for (uint32_t k = 0; any && k < img->nclauses; k++)
			if (serves(p, &img->clauses[k]))
				list_variables(out, &img->clauses[k]);
	}
}

void image_print(FILE *out, const struct image *img)
{
	for (uint32_t i = 0; i < img->nmaps; i++) {
		const struct image_map *m = &img->maps[i];

		fprintf(out, "map %u: %s, role %s, %s, key %u, value %u, %u entries\n", i, m->name,
			role_names[m->role], map_type_name(m->type), m->key_size, m->value_size,
			m->max_entries);
	}
	for (uint32_t i = 0; i < img->naggs; i++) {
		const struct agg *a = &img->aggs[i];

		fprintf(out, "aggregation %u: @%s = %s, key %u bytes, %u words, map %u", i, a->name,
			agg_func_name(a->func), a->key_size, a->nwords, a->map);
		if (a->nslots)
			fprintf(out, ", %u slots", a->nslots);
		fputc('\n', out);
		print_fields(out, a->keys, a->nkeys);
	}
	for (uint32_t i = 0; i < img->nclauses; i++)
		print_clause(out, &img->clauses[i]);
	for (uint32_t i = 0; i < img->nsegments; i++)
		print_segment(out, &img->segments[i], i);
	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		struct operands o = { .img = img, .prog = p };
		struct ebpf_names names = { .operand = operand, .arg = &o };

		fprintf(out, "program %u: %s, %s, %u probes%s", i, p->name,
			attach_kind_name(p->attach), p->nprobes,
			p->uses_cookie ? ", by cookie" : "");
		for (uint32_t k = 0; k < p->nguards; k++)
			fprintf(out, ", guard %u+%u", p->guards[k].offset, p->guards[k].size);
		fputc('\n', out);
		ebpf_print(out, p->insns, p->ninsns, &names);
	}
}

void image_free(struct image *img)
{
	if (!img)
		return;
	arena_fini(&img->arena);
	free(img);
}

int image_find_map(const struct image *img, enum map_role role)
{
	for (uint32_t i = 0; i < img->nmaps; i++)
		if (img->maps[i].role == role)
			return (int)i;
	return -1;
}

static bool is_user_address(enum field_kind k)
{
	return k == FIELD_USTACK || k == FIELD_USTACKID || k == FIELD_USYM || k == FIELD_UMOD ||
	       k == FIELD_UADDR;
}

static bool formats_user_address(const struct format *f)
{
	for (uint32_t i = 0; f && i < f->n; i++)
		if (f->convs[i].kind == CONV_UADDR)
			return true;
	return false;
}

bool image_prints_user_addresses(const struct image *img)
{
	for (uint32_t i = 0; i < img->nsegments; i++) {
		const struct segment *s = &img->segments[i];

		for (uint32_t k = 0; k < s->nfields; k++)
			if (is_user_address(s->fields[k].kind))
				return true;
		for (uint32_t k = 0; k < s->nactions; k++)
			if (formats_user_address(s->actions[k].format))
				return true;
	}
	for (uint32_t i = 0; i < img->naggs; i++)
		for (uint32_t k = 0; k < img->aggs[i].nkeys; k++)
			if (is_user_address(img->aggs[i].keys[k].kind))
				return true;
	return false;
}
