/* Arguments and results of calls as text. */
#include <string.h>

#include "calls/lines_private.h"
#include "wire/routines.h"

static struct prototype_values values_of(const struct lines *l, const struct prototype *f,
					 const struct call *call, uint64_t *room)
{
	struct prototype_values v = { .args = room,
				      .nargs = f->nparams,
				      .max_elements = l->c->o->elements_max,
				      .max_text = l->c->o->text_max,
				      .inner = call->thread->inner,
				      .ninner = call->thread->ninner };

	for (uint32_t i = 0; i < f->nparams; i++) {
		int reg = calls_register(f, i);

		room[i] = reg >= 0 && (uint32_t)reg < call->nregs ? call->regs[reg] : 0;
	}
	return v;
}

static void put_param(struct lines *l, const struct prototype_type *t, uint64_t value, bool whole,
		      uint32_t *text, uint32_t *memory, const struct prototype_values *v)
{
	const struct prototype_memory *m = NULL;

	if (whole && calls_reads_text(t) && *text < l->event.ntexts)
		m = &l->event.texts[(*text)++];
	else if (whole && calls_reads_memory(t) && *memory < l->event.nmemory)
		m = &l->event.memory[(*memory)++];
	prototype_value(&l->p->o, t, value, m, v);
}

void lines_take_text(struct lines *l, const struct record_view *r, struct thread *t)
{
	uint64_t reg = l->event.numbers[0];

	if (reg >= CALLS_REGISTERS || !l->event.ntexts)
		return;
	free(t->texts[reg].text);
	t->texts[reg].n = l->event.texts[0].n;
	t->texts[reg].text = xmemdup(l->event.texts[0].bytes, l->event.texts[0].n + 1);
	if (l->event.texts[0].cut)
		t->texts[reg].n |= TEXT_CUT;
}

void lines_take_wide(struct lines *l, struct thread *t)
{
	const uint64_t reg = l->event.numbers[0];
	struct prototype_memory *kept;

	if (reg >= CALLS_REGISTERS || !l->event.nmemory)
		return;
	kept = &t->wides[reg];
	free((void *)(uintptr_t)kept->bytes);
	*kept = l->event.memory[0];
	kept->bytes = xmemdup(kept->bytes, kept->n);
}

void lines_take_vectors(struct lines *l, struct thread *t)
{
	t->nvectors = l->event.nnumbers < CALLS_VECTORS ? l->event.nnumbers : CALLS_VECTORS;
	memcpy(t->vectors, l->event.numbers, t->nvectors * sizeof(*t->vectors));
}

void lines_take_inner(struct lines *l, const struct calls_inner *in, struct thread *t)
{
	const struct event *e = &l->event;
	const struct prototype_memory *m = e->ntexts ? e->texts : e->nmemory ? e->memory : NULL;
	struct prototype_memory *kept = &t->inner[t->ninner];

	if (!m || t->ninner == CALLS_INNER_MAX)
		return;
	*kept = *m;
	kept->bytes = xmemdup(m->bytes, m->n);
	kept->type = in->type;
	kept->address = e->numbers[0];
	t->ninner++;
}

void lines_forget_texts(struct thread *t)
{
	while (t->ninner)
		free((void *)(uintptr_t)t->inner[--t->ninner].bytes);
	t->nvectors = 0;
	for (uint32_t i = 0; i < CALLS_REGISTERS; i++) {
		free(t->texts[i].text);
		t->texts[i].text = NULL;
		free((void *)(uintptr_t)t->wides[i].bytes);
		t->wides[i].bytes = NULL;
	}
}

/* Stands before each argument but the first. */
static void comma(struct lines *l)
{
	if (l->c->o->json)
		out_char(&l->p->o, BETWEEN);
	else
		out_str(&l->p->o, ", ");
}

/* What a format's %s means. */
static void put_string(struct lines *l, const struct thread *t, uint32_t reg, uint64_t v)
{
	if (!t->texts[reg].text) {
		out_str(&l->p->o, v ? "0x" : "nil");
		if (v)
			out_hex(&l->p->o, v, false, 0);
		return;
	}
	out_char(&l->p->o, '"');
	out_escaped(&l->p->o, t->texts[reg].text, t->texts[reg].n & ~(uint32_t)TEXT_CUT);
	out_str(&l->p->o, t->texts[reg].n & TEXT_CUT ? "\"..." : "\"");
}

/* What a format's %ls means. */
static void put_wide_string(struct lines *l, const struct thread *t, uint32_t reg, uint64_t v)
{
	static const struct prototype_type letter = { .kind = PROTOTYPE_INT,
						      .size = 4,
						      .align = 4 },
					   array = { .kind = PROTOTYPE_ARRAY,
						     .target = &letter,
						     .length = { .count = COUNT_ZERO,
								 .zero = true } },
					   text = { .kind = PROTOTYPE_POINTER,
						    .lens = LENS_STRING,
						    .size = 8,
						    .target = &array };
	const struct prototype_values values = { .max_text = l->c->o->text_max };

	prototype_value(&l->p->o, &text, v, &t->wides[reg], &values);
}

/* Prints the value of a vector register, or "?" where it is not known: from the kernel. */
static void put_vector(struct lines *l, const struct prototype_type *t, uint64_t v)
{
	if (v == WIRE_VECTOR_UNKNOWN)
		out_char(&l->p->o, '?');
	else
		prototype_value(&l->p->o, t, v, NULL, NULL);
}

/* Prints the arguments behind a format, as the format's text requires. */
static void put_varargs(struct lines *l, const struct call *call, uint32_t reg,
			const struct prototype_memory *format)
{
	const struct thread *t = call->thread;
	static const struct prototype_type number = { .kind = PROTOTYPE_FLOAT,
						      .size = 8,
						      .align = 8 };
	const char *at = (const char *)format->bytes, *end = at + format->n;
	uint32_t vector = 0;

	for (uint32_t i = 0; i < call->function->prototype->nparams; i++)
		vector += calls_vector(call->function->prototype, i) >= 0;
	while (at < end) {
		bool is_long = false;
		uint32_t wide = 0;
		uint64_t v;
		char c = 0;

		if (*at++ != '%')
			continue;
		for (; at < end; at++) {
			c = *at;
			if (c == 'l' || c == 'z' || c == 'j' || c == 't' || c == 'q')
				wide++;
			else if (c == 'L')
				is_long = true;
			else if (!strchr("0123456789.-+ #'h*", c))
				break;
			if (c == '*' && reg < call->nregs) {
				comma(l);
				out_signed(&l->p->o, (int)call->regs[reg], 0);
				reg++;
			}
		}
		if (at++ >= end || c == '%' || c == 'm')
			continue;
		if (strchr("eEfFgGaA", c)) {
			comma(l);
			if (!is_long && vector < t->nvectors)
				put_vector(l, &number, t->vectors[vector++]);
			else
				out_char(&l->p->o, '?'); /* on the stack, or not seen */
			continue;
		}
		if (reg >= call->nregs) {
			comma(l);
			out_str(&l->p->o, "...");
			return;
		}
		v = call->regs[reg++];
		comma(l);
		switch (c) {
		case 's':
			if (wide)
				put_wide_string(l, t, reg - 1, v);
			else
				put_string(l, t, reg - 1, v);
			break;
		default:
			out_str(&l->p->o, v ? "0x" : "nil");
			if (v)
				out_hex(&l->p->o, v, false, 0);
			break;
		case 'd':
		case 'i': out_signed(&l->p->o, wide ? (int64_t)v : (int32_t)v, 0); break;
		case 'u': out_unsigned(&l->p->o, wide ? v : (uint32_t)v, 0); break;
		case 'o':
			out_printf(&l->p->o, "%#llo", (unsigned long long)(wide ? v : (uint32_t)v));
			break;
		case 'c':
			out_char(&l->p->o, '\'');
			out_escaped(&l->p->o, &(char){ (char)v }, 1);
			out_char(&l->p->o, '\'');
			break;
		case 'x':
		case 'X':
			out_str(&l->p->o, "0x");
			out_hex(&l->p->o, wide ? v : (uint32_t)v, false, 0);
			break;
		}
	}
}

/* Does the same for a format of wide characters. Its directives are ASCII. */
static void put_wide_varargs(struct lines *l, const struct call *call, uint32_t reg,
			     const struct prototype_memory *format)
{
	cleanup_free uint8_t *narrow = xmalloc(format->n / 4 + 1);
	struct prototype_memory m = { .bytes = narrow };

	for (uint32_t c; m.n < format->n / 4; m.n++) {
		memcpy(&c, format->bytes + 4 * m.n, 4);
		if (!c)
			break;
		narrow[m.n] = c < 0x80 ? (uint8_t)c : '?';
	}
	put_varargs(l, call, reg, &m);
}

/* Sets *ret to a register of the entry. Returns false when it is not known: from the kernel. */
static bool register_at(const struct call *call, bool vector, uint32_t number, uint64_t *ret)
{
	if (number >= (vector ? call->nvectors : call->nregs))
		return false;
	*ret = vector ? call->vectors[number] : call->regs[number];
	return !vector || *ret != WIRE_VECTOR_UNKNOWN;
}

/* Prints a structure that a call returns. Its registers are the record's last numbers. */
static void put_struct(struct lines *l, const struct prototype *f, bool whole,
		       const struct prototype_values *v)
{
	const struct calls_place p = calls_result_place(f);
	const struct event *e = &l->event;
	uint64_t words[2] = { 0 };
	bool known = e->nnumbers >= CALLS_RESULTS;

	for (uint32_t k = 0; k < p.npieces && known; k++) {
		words[k] = e->numbers[e->nnumbers - CALLS_RESULTS + 2 * p.piece[k].vector +
				      p.piece[k].number];
		known = !p.piece[k].vector || words[k] != WIRE_VECTOR_UNKNOWN;
	}
	if (p.size && whole && e->nmemory)
		prototype_bytes(&l->p->o, f->result, e->memory[e->nmemory - 1].bytes,
				e->memory[e->nmemory - 1].n, v);
	else if (p.size || !known)
		out_char(&l->p->o, '?');
	else
		prototype_bytes(&l->p->o, f->result, words, sizeof(words), v);
}

/* Prints a parameter, with what its format requires. has: the record has its text or memory. */
static void put_any(struct lines *l, const struct call *call, uint32_t i, bool has, uint32_t *text,
		    uint32_t *memory, const struct prototype_values *v)
{
	const struct prototype *f = call->function->prototype;
	const struct prototype_type *t = f->params[i].type;
	const struct calls_place p = calls_place(f, i);
	int reg = calls_register(f, i);
	uint64_t words[2] = { 0 };
	bool known = true;

	for (uint32_t k = 0; k < p.npieces; k++)
		known &= register_at(call, p.piece[k].vector, p.piece[k].number, &words[k]);
	if (calls_on_stack(f, i)) {
		if (has && *memory < l->event.nmemory) {
			const struct prototype_memory *m = &l->event.memory[(*memory)++];

			prototype_bytes(&l->p->o, t, m->bytes, m->n, v);
		} else {
			out_char(&l->p->o, '?');
		}
		return;
	}
	if (!known || p.size) {
		out_char(&l->p->o, '?');
		return;
	}
	if (reg < 0 || t->kind == PROTOTYPE_STRUCT) {
		prototype_bytes(&l->p->o, t, words, t->kind == PROTOTYPE_STRUCT ? 16 : 8, v);
		return;
	}
	put_param(l, t, v->args[i], has, text, memory, v);
	if (t->lens != LENS_FORMAT || !has)
		return;
	if (*text && calls_reads_text(t))
		put_varargs(l, call, (uint32_t)reg + 1, &l->event.texts[*text - 1]);
	else if (*memory && prototype_is_wide(t))
		put_wide_varargs(l, call, (uint32_t)reg + 1, &l->event.memory[*memory - 1]);
}

/* Keeps the text of a parameter behind an output parameter, which is printed when the call
 * returns. */
static void keep_any(struct lines *l, struct call *call, uint32_t i, bool has, uint32_t *text,
		     uint32_t *memory, const struct prototype_values *v)
{
	const size_t before = call->later ? strlen(call->later) : 0;
	struct out o = l->p->o;

	l->p->o = l->p->kept;
	l->p->o.n = 0;
	put_any(l, call, i, has, text, memory, v);
	if (l->p->bytes < LINES_HELD_MAX) {
		call->later = xrealloc(call->later, before + l->p->o.n + 2);
		memcpy(call->later + before, l->p->o.v, l->p->o.n);
		call->later[before + l->p->o.n] = LATER_END;
		call->later[before + l->p->o.n + 1] = '\0';
		call->bytes += l->p->o.n + 2;
		l->p->bytes += l->p->o.n + 2;
	}
	l->p->kept = l->p->o;
	l->p->o = o;
}

/* Prints what keep_any() kept for the next parameter. */
static const char *put_kept_text(struct lines *l, const char *at)
{
	const char *end = at ? strchr(at, LATER_END) : NULL;

	if (!end) {
		out_char(&l->p->o, '?');
		return NULL;
	}
	out_mem(&l->p->o, at, (size_t)(end - at));
	return end + 1;
}

/* Prints the parameters from the first output parameter on (late), or those before it. */
void lines_params(struct lines *l, struct call *call, bool whole, bool late)
{
	const struct prototype *f = call->function->prototype;
	uint64_t room[PROTOTYPE_PARAMS];
	struct prototype_values v = values_of(l, f, call, room);
	uint32_t text = 0, memory = 0;
	const char *later = call->later;
	bool past = false, any = false;

	if (late && l->event.nnumbers) {
		v.result = l->event.numbers[0];
		v.returned = true;
	}
	for (uint32_t i = 0; i < f->nparams; i++) {
		const struct prototype_param *p = &f->params[i];
		/* the record has its memory */
		const bool has = whole && (calls_on_stack(f, i) ||
					   calls_is_read(l->c, call->function, i, p->out));

		past |= p->out;
		if (p->type->lens == LENS_HIDE)
			continue;
		if (past && !late) {
			if (!p->out)
				keep_any(l, call, i, has, &text, &memory, &v);
			continue;
		}
		if (late && !past) { /* printed at the entry */
			any = true;
			continue;
		}
		if (any)
			comma(l);
		any = true;
		if (late && !p->out)
			later = put_kept_text(l, later);
		else
			put_any(l, call, i, has, &text, &memory, &v);
	}
}

void lines_result(struct lines *l, const struct call *call, bool whole)
{
	const struct prototype *f = call->function->prototype;
	uint64_t room[PROTOTYPE_PARAMS];
	struct prototype_values v = values_of(l, f, call, room);
	uint32_t text = l->event.ntexts, memory = l->event.nmemory;

	v.result = l->event.nnumbers ? l->event.numbers[0] : 0;
	v.returned = true;
	if (f->result->kind == PROTOTYPE_FLOAT) {
		if (calls_is_vector(f->result))
			put_vector(l, f->result, v.result);
		else
			out_char(&l->p->o, '?'); /* in a register that is not seen */
		return;
	}
	if (calls_returns_struct(f)) {
		put_struct(l, f, whole, &v);
		return;
	}
	/* The result's text or memory is the last of the record. */
	text -= calls_reads_text(f->result) && text;
	memory -= calls_reads_memory(f->result) && memory;
	put_param(l, f->result, v.result, whole, &text, &memory, &v);
}

/* A system call may return its errno. */
int lines_errno(const struct lines *l)
{
	int64_t result = (int64_t)l->event.numbers[0];

	return result < -1 && result > -4096 ? (int)-result : (int)l->event.numbers[1];
}

bool lines_failed(const struct lines *l, const struct call *call)
{
	const struct prototype_type *t = call->function->prototype->result;
	uint64_t result = l->event.numbers[0];

	if (call->function->syscall)
		return result > -(uint64_t)4096;
	if (!t->fails || l->event.nnumbers < 2 || !l->event.numbers[1])
		return false;
	return t->size == 4
		       ? (int32_t)result == -1
		       : result == UINT64_MAX ||
				 (!result && (t->kind == PROTOTYPE_POINTER || t->lens == LENS_HEX));
}
