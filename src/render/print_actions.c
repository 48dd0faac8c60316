/* print(): typed values, and memory of a type as JSON. */
#include "render/json.h"
#include "render/value.h"

static bool symbol(void *arg, uint64_t addr, char *buf, size_t n)
{
	struct place p;

	if (!address_place(arg, 0, addr, &p) || !p.function)
		return false;
	place_format(&p, addr, true, buf, (uint32_t)n);
	return true;
}

static struct value_style style_of(struct sink *s)
{
	bool dtrace = s->dtrace;

	return (struct value_style){
		.dtrace = dtrace, .indent = dtrace ? 44 : 0, .symbol = symbol, .symbol_arg = s
	};
}

/* Writes a pointer and its target, or one value. */
static const struct field *target_of(const struct record_view *r, const struct action *a,
				     struct value_style *style)
{
	const struct field *fields = r->segment->fields;

	if (a->nfields < 2)
		return &fields[a->fields[0]];
	style->has_addr = true;
	style->addr = field_uint(&fields[a->fields[0]], r->data);
	return &fields[a->fields[1]];
}

static bool is_typed(const struct sink *s, const struct field *f)
{
	return s->types &&
	       (f->kind == FIELD_INT || f->kind == FIELD_BYTES || f->kind == FIELD_STRING);
}

/* setopt() may make printsize smaller than the recorded bytes of a pointer's target. */
static uint32_t shown(const struct sink *s, const struct action *a, const struct field *f)
{
	int64_t most = s->options ? opt_num(s->options, OPT_PRINTSIZE) : 0;

	return a->nfields > 1 && most > 0 && most < f->size ? (uint32_t)most : f->size;
}

void print_action(struct sink *s, struct out *o, const struct record_view *r,
		  const struct action *a)
{
	struct value_style style = style_of(s);
	const struct field *f;
	const char *text;
	uint32_t n;

	if (!a->nfields)
		return;
	f = target_of(r, a, &style);
	if (is_typed(s, f))
		value_print(o, s->types, f->type, r->data + f->offset, shown(s, a, f), &style);
	else if (f->kind == FIELD_STRID && s->types && field_text(s->image, f, r->data, &text, &n))
		value_print(o, s->types, T_STRING, text, n + 1, &style);
	else
		trace_print(s, o, f, field_traits(s->types, f), r->data);
}

void json_print_action(struct sink *s, struct out *o, const struct record_view *r,
		       const struct action *a)
{
	struct value_style style = style_of(s);
	const struct field *f;

	if (!a->nfields) {
		out_str(o, "null");
		return;
	}
	f = target_of(r, a, &style);
	if (is_typed(s, f))
		value_json(o, s->types, f->type, r->data + f->offset, f->size, &style);
	else
		json_field(s, o, f, field_traits(s->types, f), r->data);
}

void json_bytes(struct sink *s, struct out *o, const struct field *f, const uint8_t *data)
{
	struct value_style style = style_of(s);

	if (s->types && (type_is_sou(s->types, f->type) ||
			 type_kind(s->types, type_strip(s->types, f->type)) == TYPE_ARRAY)) {
		value_json(o, s->types, f->type, data + f->offset, f->size, &style);
		return;
	}
	out_char(o, '"');
	for (uint32_t i = 0; i < f->size; i++)
		out_printf(o, "%02x", data[f->offset + i]);
	out_char(o, '"');
}
