/* Compares rows of aggregations: values by DTrace's rules, keys by their types. */
#include "consume/consume_private.h"

static int compare_int(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_uint(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_text(const struct image *img, const struct field *f, const uint8_t *a,
			const uint8_t *b)
{
	const char *x, *y;
	uint32_t nx, ny;
	int c;

	field_text(img, f, a, &x, &nx);
	field_text(img, f, b, &y, &ny);
	c = memcmp(x, y, nx < ny ? nx : ny);
	return c ? c : compare_uint(nx, ny);
}

static int compare_field(const struct agg_order *o, uint32_t i, const uint8_t *a, const uint8_t *b)
{
	const struct field *f = &o->agg->keys[i];
	uint64_t x, y;
	uint32_t px, py;

	switch (f->kind) {
	case FIELD_INT:
		if ((o->traits[i] & TRAIT_SIGNED) && !o->is_unsigned)
			return compare_int(field_int(f, a, true), field_int(f, b, true));
		return compare_uint(field_uint(f, a), field_uint(f, b));
	case FIELD_STRING:
	case FIELD_STRID: return compare_text(o->image, f, a, b);
	case FIELD_SYM:
	case FIELD_MOD:
	case FIELD_USYM:
	case FIELD_UMOD:
	case FIELD_UADDR:
		field_address(f, a, &x, &px);
		field_address(f, b, &y, &py);
		return px != py ? compare_uint(px, py) : compare_uint(x, y);
	default: return memcmp(a + f->offset, b + f->offset, f->size);
	}
}

/* Compares the keys from key_pos on, then the keys before it. */
int order_keys(const struct agg_order *o, const uint8_t *a, const uint8_t *b)
{
	uint32_t n = o->agg->nkeys, pos = o->key_pos < n ? o->key_pos : 0;

	for (uint32_t k = 0; k < n; k++) {
		int c = compare_field(o, (k + pos) % n, a, b);

		if (c)
			return c;
	}
	return 0;
}

static int64_t bucket_value(const struct agg *a, uint32_t i)
{
	int64_t last = (int64_t)a->nwords - 2;

	switch (a->func) {
	case AGG_QUANTIZE: return agg_quantize_value(i);
	case AGG_LQUANTIZE:
		return i == 0      ? a->base - 1
		       : i == last ? a->base + (last - 1) * a->step + 1
				   : a->base + ((int64_t)i - 1) * a->step;
	default: return agg_ll_label(a, i);
	}
}

/* Compares distributions by the sum of the counted values; for equal sums, by the count at zero. */
static int compare_distributions(const struct agg *a, const int64_t *x, const int64_t *y)
{
	long double sum_x = 0, sum_y = 0;
	int64_t zero_x = 0, zero_y = 0;

	for (uint32_t i = 0; i + 1 < a->nwords; i++) {
		int64_t v = bucket_value(a, i);

		sum_x += (long double)v * (long double)x[i + 1];
		sum_y += (long double)v * (long double)y[i + 1];
		if (!v) {
			zero_x += x[i + 1];
			zero_y += y[i + 1];
		}
	}
	return sum_x != sum_y ? (sum_x < sum_y ? -1 : 1) : compare_int(zero_x, zero_y);
}

int order_values(const struct agg *agg, const int64_t *x, const int64_t *y)
{
	struct agg_view v = { .agg = agg, .normal = 1 };

	if (agg->func >= AGG_QUANTIZE)
		return compare_distributions(agg, x, y);
	return compare_int(agg_row_value(&v, &(struct agg_row){ .words = x }),
			   agg_row_value(&v, &(struct agg_row){ .words = y }));
}
