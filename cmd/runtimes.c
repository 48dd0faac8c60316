/* descry list -p PID: the interpreter or virtual machine that a process runs. */
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
		runtime_free(r);
		space_free(s);
	}
}
