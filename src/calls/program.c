/* The D program of `descry calls`.
 *
 * For a function that is number 3:
 *
 *	entry   notes the place of the return address (self->sp3) and prints the arguments
 *	return  prints the value when the stack pointer is behind that place again
 *
 * A call of the function within its own call keeps the outer one's place in self->outer3[], by its
 * own place, and its return puts it back.
 *
 * A table (-c) counts every call. A function that is called very often is timed only in windows
 * (program_count.c).
 *
 * A clause that reads memory may end early by a fault. this->whole is 1 when it did not; else a
 * second clause prints the numbers alone.
 */
#include "calls/program_private.h"

#include <string.h>

bool calls_reads_text(const struct prototype_type *t)
{
	return t->kind == PROTOTYPE_POINTER && prototype_is_text(t) &&
	       t->target->length.count == COUNT_ZERO;
}

bool calls_reads_memory(const struct prototype_type *t)
{
	return t->kind == PROTOTYPE_POINTER && t->lens != LENS_HEX && t->lens != LENS_HIDE &&
	       t->lens != LENS_DOTS && t->target->kind != PROTOTYPE_VOID && !calls_reads_text(t);
}

void program_put_probes(struct out *o, const char *const *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		out_printf(o, "%s%s", i ? ",\n" : "", v[i]);
	out_char(o, '\n');
}

void program_clause(struct writer *w, enum calls_event event, bool whole)
{
	vec_push(&w->c->clauses, (struct calls_clause){ event, whole, w->fn });
}

/* Returns an argument register as D: at the entry arg0, at the return the variable in which the
 * entry kept it. */
static const char *value_of(struct writer *w, int reg, bool at_return)
{
	return at_return ? arena_printf(&w->c->arena, "self->a%u_%d", w->number, reg)
			 : arena_printf(&w->c->arena, "arg%d", reg);
}

/* Returns how many bytes behind a pointer a record has room for. */
static uint32_t memory_max(const struct writer *w, const struct prototype_type *t)
{
	uint32_t max = CALLS_MEMORY_MAX, size = t->target->size;

	if (prototype_is_text(t) && w->c->o->text_max + 1 < max)
		max = w->c->o->text_max + 1;
	if (prototype_is_wide(t) && (w->c->o->text_max + 1) * t->target->target->size < max)
		max = (w->c->o->text_max + 1) * t->target->target->size;
	return size && size < max ? size : max; /* of an array of unknown length it is 0 */
}

/* The element of the structure around an inner pointer that holds a length, as D; NULL: there is no
 * such element. The structure's memory begins at this->around. */
static const char *element_of(struct writer *w, const struct calls_inner *in, uint64_t number)
{
	uint32_t at = in->around_at;

	for (uint32_t i = 0; in->around && i < in->around->nfields; i++) {
		const struct prototype_type *f = in->around->fields[i];

		at = (uint32_t)round_up(at, f->align);
		if (i + 1 == number)
			return f->kind == PROTOTYPE_INT
				       ? arena_printf(&w->c->arena,
						      "*(uint%u_t *)copyin(this->around + %u, %u)",
						      8 * f->size, at, f->size)
				       : NULL;
		at += f->size;
	}
	return NULL;
}

/* The number of bytes behind a pointer, as D. in: the pointer, if it lies in memory itself. */
static const char *length_of(struct writer *w, const struct prototype_type *t, bool at_return,
			     const char *result, const struct calls_inner *in)
{
	const struct prototype_type *to = t->target;
	struct arena *a = &w->c->arena;
	uint32_t max = memory_max(w, t);
	const char *count = NULL;
	int reg;

	if (to->kind != PROTOTYPE_ARRAY)
		return arena_printf(a, "%u", to->size < max ? to->size : max);
	switch (to->length.count) {
	case COUNT_NUMBER:
		count = arena_printf(a, "%llu", (unsigned long long)to->length.value);
		break;
	case COUNT_ARG:
		reg = to->length.value <= w->fn->prototype->nparams
			      ? calls_register(w->fn->prototype, (uint32_t)to->length.value - 1)
			      : -1;
		if (reg >= 0)
			count = value_of(w, reg, at_return);
		break;
	case COUNT_RESULT:
		if (at_return)
			count = arena_printf(a, "((int64_t)%s > 0 ? %s : 0)", result, result);
		break;
	case COUNT_ZERO: count = arena_printf(a, "%u", max); break;
	case COUNT_ELEMENT: count = in ? element_of(w, in, to->length.value) : NULL; break;
	}
	if (!count)
		return "0";
	return arena_printf(a, "((uint64_t)%s < %u ? %s * %u : %u)", count, max / to->target->size,
			    count, to->target->size, max / to->target->size * to->target->size);
}

static void put_memory(struct writer *w, const struct prototype_type *t, const char *pointer,
		       bool at_return, const char *result, const struct calls_inner *in)
{
	const char *n = length_of(w, t, at_return, result, in);

	/* A pointer of NULL reads nothing, from where something is. */
	out_printf(&w->o, "\tthis->n = %s ? %s : 0;\n", pointer, n);
	/* A zero element may end it before the next page, which need not be there. */
	if (t->target->kind == PROTOTYPE_ARRAY && t->target->length.zero)
		out_printf(
			&w->o,
			"\tthis->n = this->n > 4096 - (%s & 4095) ? 4096 - (%s & 4095) : this->n;\n",
			pointer, pointer);
	out_printf(&w->o,
		   "\ttracemem(copyin(%s ? (uintptr_t)%s : uregs[R_RSP], this->n), %u, this->n);\n",
		   pointer, pointer, memory_max(w, t));
}

static void program_put_text(struct out *o, const char *pointer)
{
	out_printf(o, ", %s ? copyinstr(%s) : \"\"", pointer, pointer);
}

/* Returns true when the result is a structure whose address the function returns. */
static bool returns_memory(const struct prototype *f)
{
	return calls_returns_struct(f) && calls_result_place(f).size &&
	       f->result->size <= CALLS_MEMORY_MAX;
}

bool calls_is_read(const struct calls *c, const struct calls_function *fn, uint32_t i, bool out)
{
	const int reg = calls_register(fn->prototype, i);

	return fn->prototype->params[i].out == out && reg >= 0 &&
	       !(out && (c->outputs_unread || fn->outputs_unread)) &&
	       !(c->o->own_addresses && reg >= CALLS_IN_REGISTERS);
}

static bool is_read(const struct writer *w, uint32_t i, bool out)
{
	return calls_is_read(w->c, w->fn, i, out);
}

/* Returns true when the function prints memory at its entry (out false) or at its return. An entry
 * that copies arguments from the stack keeps the others in memory meanwhile; the verifier does not
 * follow them there past other copies, and takes them for another process's (own_addresses). */
static bool reads(const struct writer *w, bool out)
{
	const struct prototype *f = w->fn->prototype;
	uint32_t n = 0, nmemory = 0;

	for (uint32_t i = 0; i < f->nparams; i++) {
		n += is_read(w, i, out) && calls_reads_text(f->params[i].type);
		nmemory += (!out && calls_on_stack(f, i)) ||
			   (is_read(w, i, out) && calls_reads_memory(f->params[i].type));
	}
	if (!out && w->c->o->own_addresses && calls_nregisters(f) > CALLS_IN_REGISTERS)
		return n == 1 && !nmemory;
	if (out && w->fn->outputs_unread)
		return false;
	return n || nmemory ||
	       (out && (calls_reads_text(f->result) || calls_reads_memory(f->result) ||
			returns_memory(f)));
}

static bool tells_errno(const struct writer *w)
{
	return w->fn->syscall || w->fn->prototype->result->fails;
}

/* "printf("NAME(%#x, %#x) %S\n", arg0, arg1, ...);" and the memory. */
static void put_record(struct writer *w, bool at_return, bool whole, const char *result)
{
	const struct prototype *f = w->fn->prototype;
	uint32_t nregs = at_return ? 1 : calls_nregisters(f);
	uint32_t nvectors = at_return ? 0 : calls_nvectors(f);
	struct out texts;

	out_init(&texts, NULL);
	/* The entry's first number is the stack pointer, with -i the next is the return address. */
	out_printf(&w->o, "\tprintf(\"%s%s%s", at_return ? "" : "[%x] ",
		   at_return || !w->c->o->addresses ? "" : "[%x] ", w->fn->name);
	out_str(&w->o, at_return ? " = " : "(");
	for (uint32_t i = 0; i < nregs + nvectors; i++)
		out_printf(&w->o, "%s%%#x", i ? ", " : "");
	if (at_return && tells_errno(w))
		out_str(&w->o, " errno %d");
	if (at_return && calls_returns_struct(f))
		out_str(&w->o, " %#x %#x %#x %#x");
	out_str(&w->o, at_return ? "" : ")");
	for (uint32_t i = 0; i < f->nparams && whole; i++)
		if (is_read(w, i, at_return) && calls_reads_text(f->params[i].type)) {
			out_str(&w->o, " %S");
			program_put_text(&texts, value_of(w, calls_register(f, i), at_return));
		}
	if (whole && at_return && calls_reads_text(f->result)) {
		out_str(&w->o, " %S");
		program_put_text(&texts, result);
	}
	/* A system call stands below the call whose frame it is made in. */
	out_str(&w->o, at_return        ? "\\n\""
		       : w->fn->syscall ? "\\n\", uregs[R_RSP] - 1"
					: "\\n\", uregs[R_RSP]");
	if (!at_return && w->c->o->addresses)
		out_str(&w->o, w->fn->syscall ? ", uregs[R_RIP]"
					      : ", *(uint64_t *)copyin(uregs[R_RSP], 8)");
	for (uint32_t i = 0; i < nregs; i++)
		out_printf(&w->o, ", %s",
			   at_return ? result : arena_printf(&w->c->arena, "arg%u", i));
	for (uint32_t i = 0; i < nvectors; i++)
		out_printf(&w->o, ", uregs[R_XMM%u]", i);
	if (at_return && tells_errno(w))
		out_str(&w->o, ", errno");
	if (at_return && calls_returns_struct(f))
		out_str(&w->o, ", uregs[R_RAX], uregs[R_RDX], uregs[R_XMM0], uregs[R_XMM1]");
	out_mem(&w->o, texts.v, texts.n);
	out_str(&w->o, ");\n");
	if (!at_return && w->c->o->frames)
		out_printf(&w->o, "\tustack(%u);\n", w->c->o->frames + 1);
	out_fini(&texts);
	for (uint32_t i = 0; i < f->nparams && whole; i++) {
		const struct calls_place p = calls_place(f, i);

		if (!at_return && calls_on_stack(f, i))
			out_printf(&w->o, "\ttracemem(copyin(uregs[R_RSP] + %u, %u), %u, %u);\n",
				   8 + p.stack, p.size, p.size, p.size);
		if (is_read(w, i, at_return) && calls_reads_memory(f->params[i].type))
			put_memory(w, f->params[i].type,
				   value_of(w, calls_register(f, i), at_return), at_return, result,
				   NULL);
	}
	if (whole && at_return && returns_memory(f))
		out_printf(&w->o, "\ttracemem(copyin(%s, %u), %u, %u);\n", result, f->result->size,
			   f->result->size, f->result->size);
	if (whole && at_return && calls_reads_memory(f->result))
		put_memory(w, f->result, result, true, result, NULL);
}

/* Names of the variables that keep data of a call until its return: its place, and its argument
 * registers. */
static uint32_t kept(const struct writer *w, const char **names)
{
	const struct prototype *f = w->fn->prototype;
	uint32_t n = 0;

	names[n++] = arena_printf(&w->c->arena, "sp%u", w->number);
	for (uint32_t i = 0; reads(w, true) && i < f->nparams; i++)
		if (calls_register(f, i) >= 0)
			names[n++] = arena_printf(&w->c->arena, "a%u_%d", w->number,
						  calls_register(f, i));
	return n;
}

/* Returns true when a call within a call of the same function leaves the outer one without its
 * argument registers. Those would come back from an associative array, which other processes may
 * write (own_addresses). self->kept3 says whether they are there. */
static bool loses_outer(const struct writer *w)
{
	return w->c->o->own_addresses && reads(w, true);
}

/* Keeps the data at the entry that the return needs. */
static void put_kept(struct writer *w)
{
	const char *names[PROTOTYPE_PARAMS + 1];
	uint32_t n = kept(w, names);

	out_printf(&w->o, "\tself->sp%u = uregs[R_RSP] + 8;\n", w->number);
	if (loses_outer(w))
		out_printf(&w->o, "\tself->kept%u = 1;\n", w->number);
	for (uint32_t i = 1; i < n; i++)
		out_printf(&w->o, "\tself->%s = arg%s;\n", names[i], strchr(names[i], '_') + 1);
}

static void put_declarations(struct writer *w)
{
	const char *names[PROTOTYPE_PARAMS + 1];
	uint32_t n = kept(w, names);

	for (uint32_t i = 0; i < n; i++)
		out_printf(&w->o, "self uint64_t %s;\n", names[i]);
	if (loses_outer(w))
		out_printf(&w->o, "self uint64_t kept%u;\n", w->number);
}

/* At the entry of a call within a call of the same function. */
static void put_outer(struct writer *w)
{
	const char *names[PROTOTYPE_PARAMS + 1];
	const uint32_t all = kept(w, names), n = loses_outer(w) ? 1 : all;

	program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
	out_printf(&w->o, "/self->sp%u > uregs[R_RSP] + 8/\n{\n\tself->depth%u++;\n", w->number,
		   w->number);
	for (uint32_t i = 0; i < n; i++)
		out_printf(&w->o, "\tself->outer_%s[uregs[R_RSP] + 8] = self->%s;\n", names[i],
			   names[i]);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
}

/* At its return. */
static void put_back(struct writer *w, const char *const *places, uint32_t nplaces,
		     const char *behind)
{
	const char *names[PROTOTYPE_PARAMS + 1];
	const uint32_t all = kept(w, names), n = loses_outer(w) ? 1 : all;

	program_put_probes(&w->o, places, nplaces);
	out_printf(&w->o, "/self->depth%u && !self->sp%u && self->outer_sp%u[uregs[R_RSP]%s]/\n{\n",
		   w->number, w->number, w->number, behind);
	out_printf(&w->o, "\tself->depth%u--;\n", w->number);
	for (uint32_t i = 0; i < n; i++)
		out_printf(&w->o,
			   "\tself->%s = self->outer_%s[uregs[R_RSP]%s];\n"
			   "\tself->outer_%s[uregs[R_RSP]%s] = 0;\n",
			   names[i], names[i], behind, names[i], behind);
	if (loses_outer(w))
		out_printf(&w->o, "\tself->kept%u = 0;\n", w->number);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
}

/* Prints texts of wide characters behind a format. A narrow format without "ls" has none. */
static void put_format_wides(struct writer *w, const struct prototype_type *format, int first)
{
	const uint32_t max = 4 * (w->c->o->text_max + 1), most = max < 4096 ? max : 4096;
	const int end = w->c->o->own_addresses ? CALLS_IN_REGISTERS : CALLS_REGISTERS;
	const bool narrow = !prototype_is_wide(format);

	/* What decides was copied from memory, so the verifier does not trust what follows. */
	if (narrow && w->c->o->own_addresses)
		return;
	if (narrow) {
		program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
		out_printf(&w->o,
			   "{\n\tthis->wide = strstr(copyinstr(arg%d), \"ls\") != NULL;\n}\n\n",
			   first - 1);
		program_clause(w, CALLS_OTHER, false);
	}
	for (int reg = first; reg < end; reg++) {
		program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
		out_printf(&w->o,
			   "/%sarg%d >= 0x10000/\n{\n\tprintf(\"[%%x]\\n\", %d);\n"
			   "\tthis->n = 4096 - (arg%d & 4095) < %u ? 4096 - (arg%d & 4095) : %u;\n"
			   "\ttracemem(copyin(arg%d, this->n), %u, this->n);\n}\n\n",
			   narrow ? "this->wide && " : "", reg, reg, reg, most, reg, most, reg,
			   most);
		program_clause(w, CALLS_WIDE, false);
	}
}

/* Prints texts behind the format of a call, each by a clause of its own: a number that is no
 * address ends only its own clause early. */
static void put_format_texts(struct writer *w)
{
	const int end = w->c->o->own_addresses ? CALLS_IN_REGISTERS : CALLS_REGISTERS;
	const struct prototype *f = w->fn->prototype;
	const struct prototype_type *format = NULL;
	int first = -1;

	for (uint32_t i = 0; i < f->nparams; i++)
		if (f->params[i].type->lens == LENS_FORMAT) {
			format = f->params[i].type;
			first = calls_register(f, i) + 1;
		}
	if (first <= 0)
		return;
	for (int reg = first; reg < end; reg++) {
		program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
		out_printf(&w->o,
			   "/arg%d >= 0x10000/\n{\n\tprintf(\"[%%x] %%S\\n\", %d, "
			   "copyinstr(arg%d));\n}\n\n",
			   reg, reg, reg);
		program_clause(w, CALLS_TEXT, false);
	}
	put_format_wides(w, format, first);
	/* The caller says in al how many vector registers it has filled for a variadic function. */
	program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
	out_str(&w->o, "/uregs[R_RAX] & 0xff/\n{\n\tprintf(\"");
	for (int i = 0; i < CALLS_VECTORS; i++)
		out_str(&w->o, i ? " %x" : "%x");
	out_str(&w->o, "\\n\"");
	for (int i = 0; i < CALLS_VECTORS; i++)
		out_printf(&w->o, ", uregs[R_XMM%d]", i);
	out_str(&w->o, ");\n}\n\n");
	program_clause(w, CALLS_VECTOR, false);
}

/* whole: the clause reads memory behind the arguments of the entry. */
static void put_places(struct writer *w, const char *const *places, uint32_t n, const char *behind,
		       bool whole)
{
	program_put_probes(&w->o, places, n);
	out_printf(&w->o, "/self->sp%u == uregs[R_RSP]%s", w->number, behind);
	if (whole && loses_outer(w))
		out_printf(&w->o, " && self->kept%u", w->number);
	out_str(&w->o, "/\n{\n");
}

/* Prints the memory behind inner pointers, each by its own clause: a pointer that leads nowhere
 * ends only its own clause early. places: the returns; NULL: at the entry. */
static void put_inner(struct writer *w, const char *const *places, uint32_t n, const char *behind,
		      const char *result)
{
	const struct prototype *f = w->fn->prototype;

	for (uint32_t i = 0; i < w->fn->inner.n; i++) {
		const struct calls_inner *in = &w->fn->inner.v[i];

		if (in->at_return != (places != NULL))
			continue;
		if (places)
			put_places(w, places, n, behind, true);
		else
			program_put_probes(&w->o, w->fn->entries.v, w->fn->entries.n);
		out_printf(&w->o, "%s\tthis->pointer = (uint64_t)%s;\n", places ? "" : "{\n",
			   in->param == f->nparams
				   ? result
				   : value_of(w, calls_register(f, in->param), places != NULL));
		for (uint32_t k = 0; k < in->depth; k++)
			out_printf(
				&w->o,
				"\tthis->around = this->pointer;\n"
				"\tthis->pointer = this->around ? *(uint64_t *)copyin(this->around + %u, 8) : 0;\n",
				in->offsets[k]);
		out_str(&w->o, "\tif (this->pointer) {\n\tprintf(\"[%x]");
		if (calls_reads_text(in->type))
			out_str(&w->o, " %S\\n\", this->pointer, copyinstr(this->pointer));\n");
		else
			out_str(&w->o, "\\n\", this->pointer);\n");
		if (calls_reads_memory(in->type))
			put_memory(w, in->type, "this->pointer", places != NULL, result, in);
		out_str(&w->o, "\t}\n}\n\n");
		program_clause(w, CALLS_INNER, false);
		vec_last(&w->c->clauses)->inner = in;
	}
}

/* The end of the clause at an entry. whole: with what pointers point to. */
static void put_entry_record(struct writer *w, bool whole)
{
	if (whole)
		out_str(&w->o, "\tthis->whole = 0;\n");
	put_record(w, false, whole, NULL);
	out_str(&w->o, whole ? "\tthis->whole = 1;\n}\n\n" : "}\n\n");
	program_clause(w, CALLS_ENTRY, whole);
}

static void put_entry(struct writer *w)
{
	const struct calls_function *fn = w->fn;
	bool whole = reads(w, false), returns = fn->returns.n || fn->rets.n;

	if (returns) {
		put_declarations(w);
		put_outer(w);
	}
	if (whole)
		put_format_texts(w);
	put_inner(w, NULL, 0, "", NULL);
	program_put_probes(&w->o, fn->entries.v, fn->entries.n);
	out_str(&w->o, "{\n");
	if (returns)
		put_kept(w);
	put_entry_record(w, whole);
	if (!whole)
		return;
	program_put_probes(&w->o, fn->entries.v, fn->entries.n);
	out_str(&w->o, "/!this->whole/\n{\n");
	put_record(w, false, false, NULL);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_ENTRY, false);
}

/* places: the function's returns. behind: the distance between the stack pointer at the return and
 * the place behind the return address. */
static void put_return(struct writer *w, const char *const *places, uint32_t n, const char *behind,
		       const char *result)
{
	if (!n)
		return;
	if (calls_is_vector(w->fn->prototype->result))
		result = "uregs[R_XMM0]";
	put_inner(w, places, n, behind, result);
	if (reads(w, true)) {
		put_places(w, places, n, behind, true);
		put_record(w, true, true, result);
		out_printf(&w->o, "\tself->sp%u = 0;\n}\n\n", w->number);
		program_clause(w, CALLS_RETURN, true);
		/* self->sp is as it was when the clause before ended early. */
	}
	put_places(w, places, n, behind, false);
	out_printf(&w->o, "\tself->sp%u = 0;\n", w->number);
	put_record(w, true, false, result);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_RETURN, false);
	put_back(w, places, n, behind);
}

void program_put_syscall_head(struct writer *w, const char *place, const char *more)
{
	/* descry executes no programs in others, and holds a process that does */
	const bool any = place != w->fn->entries.v[0] || !strncmp(w->fn->name, "SYS_execve", 10);

	out_printf(&w->o, "%s\n/(%s)%s%s/\n{\n", place, w->c->whose, any ? "" : w->c->ours, more);
}

/* System calls do not nest, so nothing is kept of them but output arguments. */
static void put_syscall(struct writer *w)
{
	const struct calls_function *fn = w->fn;
	const char *names[PROTOTYPE_PARAMS + 1], *entry = fn->entries.v[0],
						 *back = fn->returns.v[0];
	bool whole = reads(w, false), whole_return = reads(w, true);
	uint32_t n = kept(w, names);

	for (uint32_t i = 1; i < n; i++)
		out_printf(&w->o, "self uint64_t %s;\n", names[i]);
	program_put_syscall_head(w, entry, "");
	for (uint32_t i = 1; i < n; i++)
		out_printf(&w->o, "\tself->%s = arg%s;\n", names[i], strchr(names[i], '_') + 1);
	put_entry_record(w, whole);
	if (whole) {
		program_put_syscall_head(w, entry, " && !this->whole");
		put_record(w, false, false, NULL);
		out_str(&w->o, "}\n\n");
		program_clause(w, CALLS_ENTRY, false);
	}
	program_put_syscall_head(w, back, "");
	if (whole_return)
		out_str(&w->o, "\tthis->whole = 0;\n");
	put_record(w, true, whole_return, "arg1");
	out_str(&w->o, whole_return ? "\tthis->whole = 1;\n}\n\n" : "}\n\n");
	program_clause(w, CALLS_RETURN, whole_return);
	if (!whole_return)
		return;
	program_put_syscall_head(w, back, " && !this->whole");
	put_record(w, true, false, "arg1");
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_RETURN, false);
}

/* Signals that a handler takes, those that the kernel drops because they are ignored, as a child's
 * SIGCHLD, and those that end a process. The trap of a breakpoint (SI_KERNEL) may be that of a
 * probe. */
static void put_signals(struct writer *w)
{
	out_printf(&w->o,
		   "proc:::signal-handle\n"
		   "/(%s) && !(args[0] == 5 && args[1]->si_code == 0x80)/\n"
		   "{\n\tprintf(\"[%%x] signal\\n\", args[0]);\n}\n\n",
		   w->c->whose);
	program_clause(w, CALLS_SIGNAL, false);
	out_printf(&w->o,
		   "proc:::signal-discard\n/(%s) || %s/\n"
		   "{\n\tprintf(\"[%%x] signal to %%x\\n\", args[2], args[1]->pr_pid);\n}\n\n",
		   w->c->whose, w->c->receiver);
	program_clause(w, CALLS_IGNORED, false);
	out_printf(&w->o,
		   "proc:::exit\n/(%s) && (args[0] == CLD_KILLED || args[0] == CLD_DUMPED)/\n"
		   "{\n\tprintf(\"[%%x] fatal signal\\n\", curthread->exit_code & 0x7f);\n}\n\n",
		   w->c->whose);
	program_clause(w, CALLS_FATAL, false);
}

/* Where functions return at the same places, as those that end with a jump to the same one, their
 * clauses are one program. The verifier does not follow the addresses that it keeps past the memory
 * that the first of them reads. */
static void leave_outputs(const struct calls *c)
{
	struct hash places = { 0 };

	for (uint32_t i = 0; i < c->functions.n; i++) {
		struct calls_function *fn = c->functions.v[i];
		struct writer w = { .c = (struct calls *)c, .fn = fn };

		for (uint32_t k = 0; k < fn->rets.n && reads(&w, true); k++)
			fn->outputs_unread |=
				hash_get(&places, fn->rets.v[k], strlen(fn->rets.v[k])) != NULL;
		for (uint32_t k = 0; k < fn->rets.n && reads(&w, true); k++)
			hash_put(&places, fn->rets.v[k], strlen(fn->rets.v[k]), NULL);
	}
	hash_fini(&places);
}

/* Returns true when the variables of all functions have room in a thread's private memory
 * (WIRE_EVENT_MAX, of which events may need half). */
static bool have_room(const struct calls *c)
{
	enum { ROOM = 24 << 10, VARIABLES = 3 /* sp, depth, kept */ };
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->functions.n; i++) {
		struct writer w = { .c = (struct calls *)c, .fn = c->functions.v[i] };
		const char *names[PROTOTYPE_PARAMS + 1];

		n += VARIABLES + kept(&w, names);
	}
	return n * sizeof(uint64_t) <= ROOM;
}

char *calls_program(struct calls *c)
{
	struct writer w = { .c = c };
	char *text;

	out_init(&w.o, NULL);
	c->outputs_unread = !c->o->count && c->o->own_addresses && !have_room(c);
	if (c->o->own_addresses)
		leave_outputs(c);
	if (c->o->count)
		program_put_clock(&w);
	for (uint32_t i = 0; i < c->functions.n; i++) {
		w.fn = c->functions.v[i];
		w.number = i + 1;
		if (w.fn->syscall && c->o->count) {
			program_count_syscall(&w);
		} else if (w.fn->syscall) {
			put_syscall(&w);
		} else if (c->o->count) {
			program_count(&w);
		} else {
			if (!c->o->own_addresses)
				calls_find_inner(c, c->functions.v[i]);
			put_entry(&w);
			put_return(&w, w.fn->returns.v, w.fn->returns.n, "", "arg1");
			put_return(&w, w.fn->rets.v, w.fn->rets.n, " + 8", "uregs[R_RAX]");
		}
	}
	if (c->o->count)
		program_put_windows(&w);
	if (c->sees.signals)
		put_signals(&w);
	if (!w.o.n) /* -L: only how the program ends */
		out_str(&w.o, "BEGIN\n{\n}\n");
	out_char(&w.o, '\0');
	text = xstrdup(w.o.v);
	out_fini(&w.o);
	return text;
}
