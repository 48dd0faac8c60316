/* descry list -p PID: the interpreter or virtual machine that a process runs, and the probes that
 * its programs bring. */
#include "listing.h"

#include "program/runtime/runtime.h"
#include "render/json.h"

static void show_json(pid_t pid, const struct runtime *r, const struct err *e)
{
	struct out o;

	out_init(&o, NULL);
	out_printf(&o, "{\"type\":\"runtime\",\"pid\":%d,\"language\":", (int)pid);
	json_string(&o, r ? r->type->name : "", r ? strlen(r->type->name) : 0);
	out_str(&o, ",\"version\":");
	json_string(&o, r ? r->version : "", r ? strlen(r->version) : 0);
	if (e) {
		out_str(&o, ",\"unavailable\":");
		json_string(&o, e->text, strlen(e->text));
	}
	out_str(&o, "}\n");
	fwrite(o.v, 1, o.n, stdout);
	out_fini(&o);
}

static void show_text(pid_t pid, const struct runtime *r, const struct err *e)
{
	if (e)
		printf("\nprocess %d: %s\n", (int)pid, e->text);
	else
		printf("\nprocess %d runs %s (%s): its functions are in the output of descry stack%s\n",
		       (int)pid, r->type->name, r->version,
		       r->type->wire ? ", descry profile and ustack()" : "");
}

/* A provider of probes that are built into a process's programs. */
struct own_provider {
	const char *name; /* "hotspot123" */
	uint32_t n;       /* different names of probes */
};

static void show_own(const struct listing *l, pid_t pid, const struct own_provider *v, uint32_t n)
{
	for (uint32_t i = 0; i < n && l->c->json; i++) {
		struct out o;

		out_init(&o, NULL);
		out_printf(&o, "{\"type\":\"own_provider\",\"pid\":%d,\"provider\":", (int)pid);
		json_string(&o, v[i].name, strlen(v[i].name));
		out_printf(&o, ",\"names\":%u}\n", v[i].n);
		fwrite(o.v, 1, o.n, stdout);
		out_fini(&o);
	}
	if (!n || l->c->json)
		return;
	printf("\nprocess %d has probes of its own:", (int)pid);
	for (uint32_t i = 0; i < n; i++)
		printf("%s %s (%u)", i ? "," : "", v[i].name, v[i].n);
	printf("; descry list usdt -p %d\n", (int)pid);
}

/* Counts the names of probes that are built into the process, by provider. */
static void list_own(const struct listing *l, pid_t pid)
{
	const struct probe_set *ps = l->cx->probes;
	VEC(struct own_provider) own = { 0 };
	struct hash seen = { 0 };

	for (uint32_t i = 0; i < ps->all.n; i++) {
		const struct probe *p = ps->all.v[i];
		const char *key[2] = { p->prov, p->name }; /* both are interned */
		uint32_t k = 0;
		bool is_new;

		if (p->provider != &provider_usdt || p->pid != pid)
			continue;
		(void)hash_put(&seen, key, sizeof(key), &is_new);
		if (!is_new)
			continue;
		while (k < own.n && own.v[k].name != p->prov)
			k++;
		if (k == own.n)
			vec_push(&own, (struct own_provider){ .name = p->prov });
		own.v[k].n++;
	}
	show_own(l, pid, own.v, own.n);
	hash_fini(&seen);
	vec_fini(&own);
}

void runtimes_list(const struct listing *l)
{
	const struct probe_set *ps = l->cx->probes;

	for (uint32_t i = 0; i < ps->targets.n; i++) {
		pid_t pid = ps->targets.v[i].pid;
		struct runtime *r = NULL;
		struct space *s = NULL;
		cleanup_err struct err *e = space_live(pid, &s);

		e = e ?: runtime_find(s, &r);
		if ((r || e) && l->c->json)
			show_json(pid, r, e);
		else if (r || e)
			show_text(pid, r, e);
		list_own(l, pid);
		runtime_free(r);
		space_free(s);
	}
}
