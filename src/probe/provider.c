/* Functions that several providers share. */
#include "probe/provider.h"

#include <string.h>

#include "base/glob.h"

bool provider_claims_name(const struct provider *pv, const char *prov_pattern)
{
	return glob_match(prov_pattern, pv->name);
}

type_id provider_type(struct probe_set *ps, const char *text)
{
	size_t len = strlen(text);
	type_id t;

	if (type_parse_name(ps->types, text, &t))
		return t;
	return len && text[len - 1] == '*' ? T_VOIDPTR : T_INT64;
}

void provider_set_arg(struct probe_set *ps, struct probe_args *args, uint32_t n,
		      const struct probe_arg *a)
{
	if (n < ARRAY_SIZE(args->typed)) {
		args->typed[n] = *a;
		if (args->ntyped <= n)
			args->ntyped = n + 1;
	}
	if (n < ARRAY_SIZE(args->arg)) {
		args->arg[n] = *a;
		args->arg[n].xlate = NULL;
		if (!type_is_scalar(ps->types, a->type))
			args->arg[n].type = T_INT64;
	}
}
