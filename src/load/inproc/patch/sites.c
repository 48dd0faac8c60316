/* Finds the places of an image's probes in one process, and decides how to patch each place. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "load/inproc/events/proc_events.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/plan_private.h"
#include "load/inproc/state/identity.h"

enum {
	NAMED = 4,          /* probes that a note names before "..." */
	MODULES_MAX = 4096, /* of a process: it may map one file 65,000 times */
};

/* Probes left out for one reason. */
struct refusal {
	const char *reason; /* static, or lives as long as the plan */
	uint32_t n, probes[NAMED];
};

/* Facts about the process while its sites are planned. */
struct plan {
	struct inproc_engine *e;
	struct inproc_process *p;
	struct mappings maps;
	struct stat *stats;   /* of the files behind maps; st_ino 0: none */
	struct hash by_file;  /* {device, inode} -> first executable mapping of the file + 1 */
	uint32_t *next;       /* for each mapping the next one of its file + 1 */
	const char *path;     /* the file that was asked for last; NULL: none */
	uint64_t file[2];     /* its device and inode */
	struct hash by_place; /* {module, address} -> number of the site + 1 */
	struct wishes wishes;
	uint32_t prog;     /* index of the program whose probes are being placed */
	const char *later; /* the file that was examined last before it is loaded */
	const char *later_refusal;
	VEC(struct refusal) refusals;
	VEC(struct inproc_point)
	left_out;         /* places of probes that were refused after they had been placed */
	uint32_t nunseen; /* points around system calls that had no room */
};

static void sites_refuse(struct plan *pl, uint32_t probe, const char *reason)
{
	struct refusal *r = NULL;

	if (probe == INPROC_SIGACTION) {
		pl->p->guarded = false;
		return;
	}
	if (probe == INPROC_LOADS) {
		pl->p->hooked = false;
		return;
	}
	if (probe == INPROC_EXECS || probe == INPROC_SECCOMP || probe == INPROC_PRCTL ||
	    probe == INPROC_SYSCALL) /* processes_look() finds it a moment later */
		return;
	if (probe == INPROC_FORK || probe == INPROC_CLONE)
		return;
	if (reason != TEXT_NEVER_RETURNS) {
		pl->e->placement.nrefused++;
		if (pl->e->placement.left_out)
			pl->e->placement.left_out[probe] = true;
	}
	if (pl->e->placement.refused && !pl->e->placement.refused[probe].mode) {
		static const char head[] = "refused: ";
		char *mode = xasprintf("%s%s", head, reason);

		pl->e->placement.refused[probe] =
			(struct inproc_refusal){ mode + strlen(head), mode };
	}
	for (uint32_t i = 0; i < pl->refusals.n && !r; i++)
		if (!strcmp(pl->refusals.v[i].reason, reason))
			r = &pl->refusals.v[i];
	if (!r) {
		r = vec_add(&pl->refusals);
		r->reason = reason;
	}
	if (r->n < NAMED)
		r->probes[r->n] = probe;
	r->n++;
}

/* Adds one note for each reason. For one probe the note has its whole name, for more their number
 * and the first names. */
static void note_refusals(struct plan *pl)
{
	const struct image_probe *all = pl->e->base.image->probes;

	for (uint32_t i = 0; i < pl->refusals.n; i++) {
		const struct refusal *r = &pl->refusals.v[i];
		const struct image_probe *ip = &all[r->probes[0]];
		cleanup_free char *names = NULL;

		if (r->n == 1) {
			inproc_note(pl->e, "%s:%s:%s:%s not enabled in-process: %s", ip->prov,
				    ip->mod, ip->func, ip->name, r->reason);
			continue;
		}
		for (uint32_t k = 0; k < r->n && k < NAMED; k++) {
			char *more;

			ip = &all[r->probes[k]];
			more = xasprintf("%s%s%s:%s", names ? names : "", names ? ", " : "",
					 ip->func, ip->name);
			free(names);
			names = more;
		}
		inproc_note(pl->e, "%s: %u probes not enabled in-process: %s: %s%s",
			    all[r->probes[0]].prov, r->n, r->reason, names,
			    r->n > NAMED ? ", ..." : "");
	}
}

/* --- modules --- */

/* Returns the decoded code of a file, which all processes share. */
struct err *sites_text(struct inproc_engine *e, struct object *o, struct text **ret)
{
	struct err *err;

	for (uint32_t i = 0; i < e->placement.texts.n; i++)
		if (e->placement.texts.v[i].object == o) {
			*ret = e->placement.texts.v[i].text;
			return NULL;
		}
	err = text_open(o, ret);
	if (!err)
		vec_push(&e->placement.texts, (struct inproc_text){ o, *ret });
	return err;
}

struct err *plan_module(struct plan *pl, uint32_t map, uint32_t *ret)
{
	const struct mapping *m = &pl->maps.v[map];
	struct object *o = symbols_object(pl->e->symbols, pl->p->pid, m);
	struct inproc_module *mod;
	struct text *text;
	struct err *err;
	uint64_t addr;

	if (!o || !object_text_mapping_addr(o, m->offset, &addr))
		return err_new(0, "%s cannot be read", m->path);
	if (pl->p->modules.n == MODULES_MAX)
		return err_new(E2BIG,
			       "process %d has mapped code at more than %d places: -x "
			       "engine=kernel can trace it",
			       (int)pl->p->pid, MODULES_MAX);
	for (uint32_t i = 0; i < pl->p->modules.n; i++) {
		mod = &pl->p->modules.v[i];
		if (mod->object != o || mod->bias != m->start - addr)
			continue;
		mod->lo = m->start < mod->lo ? m->start : mod->lo;
		mod->hi = m->end > mod->hi ? m->end : mod->hi;
		*ret = i;
		return NULL;
	}
	err = sites_text(pl->e, o, &text);
	if (err)
		return err_wrap(err, "%s", m->path);
	*ret = pl->p->modules.n;
	mod = vec_add(&pl->p->modules);
	*mod = (struct inproc_module){
		.object = o,
		.text = text,
		.bias = m->start - addr,
		.lo = m->start,
		.hi = m->end,
		.dev = pl->stats[map].st_dev,
		.inode = pl->stats[map].st_ino,
	};
	return NULL;
}

/* Returns the first executable mapping of the file at path, + 1; 0: it has none. Probes of one file
 * mostly follow one another. */
static struct err *first_of_file(struct plan *pl, const char *path, uint32_t *ret)
{
	const uint64_t *first;
	struct stat st;

	*ret = 0;
	if (!pl->path || strcmp(pl->path, path)) {
		if (stat(path, &st))
			return err_errno(errno, "%s", path);
		pl->path = path;
		pl->file[0] = st.st_dev;
		pl->file[1] = st.st_ino;
	}
	first = hash_get(&pl->by_file, pl->file, sizeof(pl->file));
	*ret = first ? (uint32_t)*first : 0;
	return NULL;
}

/* Finds the module that has the probe's file mapped at the probe. UINT32_MAX: no module has. */
static struct err *find_module(struct plan *pl, const struct probe *p, uint32_t *ret)
{
	uint32_t at = 0;
	struct err *err = first_of_file(pl, p->object, &at);

	*ret = UINT32_MAX;
	for (; at && !err; at = pl->next[at - 1]) {
		const struct mapping *m = &pl->maps.v[at - 1];

		if (p->offset >= m->offset && p->offset < m->offset + (m->end - m->start))
			return plan_module(pl, at - 1, ret);
	}
	return err;
}

/* --- sites --- */

struct site_key {
	uint64_t addr;
	uint32_t module, at;
};

void plan_site(struct plan *pl, uint32_t module, const struct text_site *s,
	       const struct inproc_point *p)
{
	const struct site_key key = { .addr = s->addr, .module = module, .at = s->at };
	struct inproc_site *site;
	uint64_t *n;

	if (pl->p->sites.n > INPROC_UNDO_MAX) /* records.c refuses so many */
		return;
	n = hash_put(&pl->by_place, &key, sizeof(key), NULL);
	if (!*n) {
		site = vec_add(&pl->p->sites);
		site->text = *s;
		site->module = module;
		site->bias = pl->p->modules.v[module].bias;
		*n = pl->p->sites.n;
	}
	site = &pl->p->sites.v[*n - 1];
	vec_push(&site->points, *p);
}

static void add_site(struct plan *pl, uint32_t module, const struct text_site *s, uint32_t probe,
		     uint64_t shown)
{
	const struct inproc_point p = { .addr = s->addr + s->at,
					.kind = s->kind,
					.shown = shown,
					.probe = probe,
					.prog = pl->prog,
					.split = s->split };

	plan_site(pl, module, s, &p);
}

static bool usable(const struct text_site *s)
{
	return s->mode == TEXT_PATCH;
}

static struct err *plan_returns(struct plan *pl, uint32_t module, const struct probe *p,
				uint32_t index)
{
	struct text_site *sites = NULL;
	const char *reason = NULL;
	uint32_t n = 0;
	struct err *err = text_returns(pl->p->modules.v[module].text, p->addr, &sites, &n, &reason);

	if (err)
		return err;
	for (uint32_t i = 0; i < n && !reason; i++)
		if (!usable(&sites[i]))
			reason = sites[i].reason;
	if (!n && !reason)
		reason = "the function does not return";
	if (reason)
		sites_refuse(pl, index, reason);
	for (uint32_t i = 0; i < n && !reason; i++)
		add_site(pl, module, &sites[i], index, sites[i].split.ret);
	free(sites);
	return NULL;
}

/* Adds the sites of a probe at a return that has no room. Returns false when there are none. */
static bool plan_split(struct plan *pl, uint32_t module, uint64_t func, uint64_t addr,
		       uint32_t index)
{
	struct text_site *sites = NULL;
	uint32_t n = 0;

	if (!text_offset_split(pl->p->modules.v[module].text, func, addr - func, &sites, &n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		add_site(pl, module, &sites[i], index, addr);
	free(sites);
	return true;
}

/* Returns the reason why no site would be possible in a file that is not loaded yet, or NULL. The
 * kernel engine can probe it. Probes of one file follow one another. */
static const char *refusal_of(struct plan *pl, const char *path)
{
	struct object *o;
	struct err *err;

	if (pl->later && path && !strcmp(pl->later, path))
		return pl->later_refusal;
	pl->later = path;
	pl->later_refusal = NULL;
	err = path ? object_open(path, &o) : NULL;
	if (path && !err) {
		pl->later_refusal = text_refusal(o);
		object_free(o);
	}
	err_free(err);
	return pl->later_refusal;
}

static struct err *plan_probe(struct plan *pl, uint32_t index)
{
	const struct probe *p = pl->e->base.image->probes[index].probe;
	struct text_site s = { 0 };
	struct inproc_module *m;
	uint64_t addr, func, end;
	const char *why;
	uint32_t module;
	struct err *err;

	if (p->pid &&
	    p->pid != (pl->p->taken || inproc_whole_families(pl->e) ? pl->p->root : pl->p->pid))
		return NULL;
	err = find_module(pl, p, &module);
	if (err)
		return err;
	if (module == UINT32_MAX && (why = refusal_of(pl, p->object))) {
		sites_refuse(pl, index, why);
		return NULL;
	}
	pl->p->waiting[index] = module == UINT32_MAX;
	if (module == UINT32_MAX) /* the file may be loaded later */
		return NULL;
	m = &pl->p->modules.v[module];
	if (p->kind == ATTACH_URETPROBE && p->provider == &provider_plt) {
		sites_refuse(
			pl, index,
			"the PLT slot jumps to the function, whose return does not pass through the slot");
		return NULL;
	}
	if (p->kind == ATTACH_URETPROBE)
		return plan_returns(pl, module, p, index);
	if (!object_offset_to_addr(m->object, p->offset, &addr)) {
		sites_refuse(pl, index, "no address for its file offset");
		return NULL;
	}
	if (!strcmp(p->name, "entry") && p->provider != &provider_usdt)
		err = text_entry(m->text, p->addr, &s);
	else if (text_function(m->text, addr, &func, &end))
		err = text_offset(m->text, func, addr - func, &s);
	else
		s = (struct text_site){ .mode = TEXT_NONE,
					.reason = "it lies in no known function" };
	if (err)
		return err;
	if (usable(&s)) {
		add_site(pl, module, &s, index, addr);
		wishes_add(&pl->wishes, pl->p, module, p);
	} else if (text_function(m->text, addr, &func, &end) &&
		   plan_split(pl, module, func, addr, index)) {
		wishes_add(&pl->wishes, pl->p, module, p);
	} else {
		sites_refuse(pl, index, s.reason);
	}
	return NULL;
}

/* Returns true for objects that make most system calls: a C library, or a program without one. */
static bool makes_calls(struct object *o)
{
	const char *soname = object_soname(o);

	return soname ? !strcmp(soname, "libc.so.6") || !strncmp(soname, "libc.musl", 9) ||
				!strcmp(soname, "libc.so")
		      : object_is_executable(o) && !object_interp(o);
}

/* Plans the place behind a call that makes a process: see agent/fork.c. */
static void plan_fork(struct plan *pl, uint32_t module, const struct text_syscall *s)
{
	struct inproc_point p = { .addr = s->addr + 2,
				  .kind = WIRE_STUB_MID,
				  .probe = INPROC_FORK };
	struct text_site at = s->behind;

	if (s->number != SYS_clone && s->number != SYS_clone3 && s->number != SYS_fork)
		return;
	if (!usable(&at)) {
		at = s->site;
		at.at += 2;
	}
	if (usable(&at))
		plan_site(pl, module, &at, &p);
}

/* Plans the place in front of a call that descry cannot follow: see agent/agent_clone.c. The
 * system call stays in its place, because a new thread begins behind it. any: also calls whose
 * number is not known; a C library's syscall() has a probe of its own at its entry. */
static void plan_clone(struct plan *pl, uint32_t module, const struct text_syscall *s, bool any)
{
	const struct inproc_point p = { .addr = s->addr,
					.kind = WIRE_STUB_MID,
					.probe = INPROC_CLONE };

	if (((any && s->number < 0) || s->number == SYS_clone || s->number == SYS_clone3 ||
	     s->number == SYS_mlockall) &&
	    usable(&s->before))
		plan_site(pl, module, &s->before, &p);
}

/* Plans every place where a C library (or a program without one) may call rt_sigaction(2), so that
 * the program's handlers stay behind descry's (if one place cannot be patched, no handlers are
 * installed). Also plans the places that may install a seccomp filter, those that may make a child
 * that is not followed, and those of calls behind which descry cannot stay. */
static struct err *plan_books(struct plan *pl)
{
	const bool guard = guard_wanted(pl->e, &pl->maps), forks = !pl->e->area->follow;
	struct err *err = NULL;
	bool all = true, any = false;
	struct text_syscall *calls =
		NULL; /* of the last object, whose mappings follow each other */
	struct object *last = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < pl->maps.n && !err; i++) {
		const struct mapping *m = &pl->maps.v[i];
		struct object *o = m->exec ? symbols_object(pl->e->symbols, pl->p->pid, m) : NULL;
		const bool library = o && object_soname(o);
		uint32_t module;

		if (!o || !makes_calls(o))
			continue;
		err = plan_module(pl, i, &module);
		if (!err && library)
			err = seccomp_functions(pl->p, pl, module);
		if (!err && o != last) {
			free(calls);
			calls = NULL;
			n = 0;
			err = text_syscalls(pl->p->modules.v[module].text, 0, &calls, &n);
			last = o;
		}
		for (uint32_t k = 0; k < n && !err; k++) {
			if (!library)
				seccomp_site(pl, module, &calls[k]);
			if (forks)
				plan_fork(pl, module, &calls[k]);
			plan_clone(pl, module, &calls[k], !library);
			if (!guard || (calls[k].number >= 0 && calls[k].number != SYS_rt_sigaction))
				continue;
			all &= usable(&calls[k].site);
			any |= calls[k].number == SYS_rt_sigaction;
			if (usable(&calls[k].site))
				add_site(pl, module, &calls[k].site, INPROC_SIGACTION, 0);
		}
	}
	free(calls);
	pl->p->guarded = guard && any && all && !err;
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct inproc_site *x = a, *y = b;
	int order = COMPARE(x->module, y->module) ?: COMPARE(x->text.addr, y->text.addr);

	return order ?: COMPARE(x->text.at, y->text.at);
}

/* Drops all places of a probe that has lost one of them, because a return probe must not see only
 * some of the returns. */
static void drop_left_out(struct plan *pl)
{
	struct inproc_process *p = pl->p;
	struct hash out = { 0 }; /* {probe, index of its program} */
	uint32_t kept = 0;

	if (!pl->left_out.n)
		return;
	for (uint32_t i = 0; i < pl->left_out.n; i++) {
		const uint32_t key[] = { pl->left_out.v[i].probe, pl->left_out.v[i].prog };

		hash_put(&out, key, sizeof(key), NULL);
	}
	for (uint32_t i = 0; i < p->sites.n; i++) {
		struct inproc_site *s = &p->sites.v[i];
		uint32_t n = 0;

		for (uint32_t k = 0; k < s->points.n; k++) {
			const uint32_t key[] = { s->points.v[k].probe, s->points.v[k].prog };

			if (!hash_get(&out, key, sizeof(key)))
				s->points.v[n++] = s->points.v[k];
		}
		s->points.n = n;
		if (n)
			p->sites.v[kept++] = *s;
		else
			vec_fini(&s->points);
	}
	p->sites.n = kept;
	hash_fini(&out);
}

/* Joins sites whose displaced bytes overlap. Where that is not possible, drops the later one. */
static void join_overlaps(struct plan *pl)
{
	struct inproc_process *p = pl->p;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->sites.n; i++) {
		struct inproc_site *s = &p->sites.v[i], *last = kept ? &p->sites.v[kept - 1] : NULL;
		struct text_site both;

		if (!last || last->module != s->module ||
		    last->text.addr + last->text.len <= s->text.addr) {
			p->sites.v[kept++] = *s;
			continue;
		}
		if (last->points.n + s->points.n <= TEXT_POINTS_MAX &&
		    text_join(&last->text, &s->text, &both)) {
			last->text = both;
			for (uint32_t k = 0; k < s->points.n; k++)
				vec_push(&last->points, s->points.v[k]);
		} else {
			for (uint32_t k = 0; k < s->points.n; k++)
				if (s->points.v[k].kind >= WIRE_STUB_KINDS) {
					pl->nunseen++;
				} else {
					sites_refuse(pl, s->points.v[k].probe,
						     "its bytes overlap another probe's");
					vec_push(&pl->left_out, s->points.v[k]);
				}
		}
		vec_fini(&s->points);
	}
	p->sites.n = kept;
	drop_left_out(pl);
	kept = p->sites.n;
	for (uint32_t i = 0; i < kept; i++) {
		struct inproc_module *m = &p->modules.v[p->sites.v[i].module];

		if (!m->nsites++)
			m->first_site = i;
	}
}

static struct err *plan_open(struct plan *pl)
{
	pid_t pid = pl->p->pid;
	struct err *err = mappings_read(pid, &pl->maps);

	if (err)
		return err;
	pl->stats = xcalloc(pl->maps.n + 1, sizeof(*pl->stats));
	pl->next = xcalloc(pl->maps.n + 1, sizeof(*pl->next));
	for (uint32_t i = pl->maps.n; i-- > 0;) { /* so that the lowest comes first */
		const struct mapping *m = &pl->maps.v[i];
		cleanup_free char *path = m->exec ? mapping_open_path(pid, m) : NULL;
		uint64_t *first;

		if (!path || stat(path, &pl->stats[i])) {
			pl->stats[i].st_ino = 0;
			continue;
		}
		first = hash_put(&pl->by_file,
				 (uint64_t[]){ pl->stats[i].st_dev, pl->stats[i].st_ino }, 16,
				 NULL);
		pl->next[i] = (uint32_t)*first;
		*first = i + 1;
	}
	return NULL;
}

static void plan_close(struct plan *pl)
{
	note_refusals(pl);
	vec_fini(&pl->refusals);
	vec_fini(&pl->left_out);
	hash_fini(&pl->by_place);
	hash_fini(&pl->by_file);
	wishes_fini(&pl->wishes);
	free(pl->next);
	free(pl->stats);
	mappings_free(&pl->maps);
}

static bool any_calls(const struct image *img)
{
	bool any = false;

	for (uint32_t i = 0; i < img->nprogs; i++)
		any |= inproc_is_syscall(img->progs[i].attach) || events_of(img, i);
	return any;
}

bool sites_any(struct inproc_engine *e, pid_t pid)
{
	const struct image *img = e->base.image;
	struct inproc_process p = inproc_process_of(pid);
	struct plan pl = { .e = e, .p = &p };
	bool any = false;

	err_free(plan_open(&pl));
	for (uint32_t i = 0; i < img->nprobes && !any; i++) {
		const char *path = img->probes[i].probe->object;
		uint32_t first = 0;

		any = path && !err_drop(first_of_file(&pl, path, &first)) && first;
	}
	for (uint32_t m = 0; m < pl.maps.n && !any && any_calls(img); m++) {
		struct object *o =
			pl.maps.v[m].exec ? symbols_object(e->symbols, pid, &pl.maps.v[m]) : NULL;

		any = o && (makes_calls(o) || identity_is_musl(o));
	}
	plan_close(&pl);
	return any;
}

static struct err *plan_probes(struct plan *pl, const bool *only)
{
	const struct image *img = pl->e->base.image;
	struct err *err = NULL;

	for (uint32_t i = 0; i < img->nprogs && !err; i++) {
		const struct image_prog *prog = &img->progs[i];

		pl->prog = i;
		for (uint32_t j = 0; j < prog->nprobes && !err; j++)
			if ((prog->attach == ATTACH_UPROBE || prog->attach == ATTACH_URETPROBE) &&
			    (!only || only[prog->probes[j]]))
				err = plan_probe(pl, prog->probes[j]);
	}
	return err;
}

static void sort_sites(struct plan *pl)
{
	struct inproc_engine *e = pl->e;
	struct inproc_process *p = pl->p;

	if (p->sites.n) {
		qsort(p->sites.v, p->sites.n, sizeof(*p->sites.v), by_address);
		join_overlaps(pl);
	}
	for (uint32_t i = 0; i < p->sites.n && e->placement.placed; i++)
		for (uint32_t k = 0; k < p->sites.v[i].points.n; k++)
			if (p->sites.v[i].points.v[k].probe < e->base.image->nprobes)
				e->placement.placed[p->sites.v[i].points.v[k].probe] = true;
}

struct err *sites_plan(struct inproc_engine *e, struct inproc_process *p)
{
	struct plan pl = { .e = e, .p = p };
	struct err *err = plan_open(&pl);

	if (!p->waiting)
		p->waiting = xcalloc(e->base.image->nprobes + 1, sizeof(*p->waiting));
	err = err ?: plan_probes(&pl, NULL);
	err = err ?: syscalls_plan(e, p, &pl, &pl.maps);
	err = err ?: plan_books(&pl);
	err = err ?: loads_plan(e, p, &pl, &pl.maps);
	err = err ?: execs_plan(e, p, &pl, &pl.maps);
	if (!err)
		samples_plan(e, p, &pl.maps);
	if (!err)
		sort_sites(&pl);
	if (!err)
		events_begin(e, p);
	if (pl.nunseen) {
		e->placement.nrefused++;
		inproc_note(e, "process %d: %u system call probes have no room beside other probes",
			    (int)p->pid, pl.nunseen);
	}
	plan_close(&pl);
	return err;
}

struct err *sites_plan_late(struct inproc_engine *e, struct inproc_process *p,
			    struct inproc_process *late)
{
	struct plan pl = { .e = e, .p = late };
	struct err *err = plan_open(&pl);
	uint32_t n = e->base.image->nprobes;

	late->waiting = xcalloc(n + 1, sizeof(*late->waiting));
	err = err ?: plan_probes(&pl, p->waiting);
	if (!err)
		sort_sites(&pl);
	plan_close(&pl);
	if (!err)
		memcpy(p->waiting, late->waiting, n * sizeof(*late->waiting));
	return err;
}

void sites_free(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->sites.n; i++)
		vec_fini(&p->sites.v[i].points);
	vec_fini(&p->sites);
	vec_fini(&p->semaphores);
	events_forget(p);
	free(p->waiting);
	p->waiting = NULL;
	for (uint32_t i = 0; i < p->modules.n; i++)
		vec_fini(&p->modules.v[i].places);
	vec_fini(&p->modules);
}

/* Returns the reason why the places of a pid or USDT probe in object o cannot be patched, NULL:
 * they can. t is the object's code. */
static const char *refusal(struct object *o, struct text *t, const struct probe *p)
{
	struct text_site one = { 0 }, *sites = NULL;
	const char *reason = NULL;
	uint64_t addr, func, end;
	struct err *err = NULL;
	uint32_t n = 0;

	if (p->kind == ATTACH_URETPROBE) {
		err = text_returns(t, p->addr, &sites, &n, &reason);
		for (uint32_t i = 0; i < n && !reason && !err; i++)
			reason = usable(&sites[i]) ? NULL : sites[i].reason;
		if (!err && !n && !reason)
			reason = "the function does not return";
		free(sites);
	} else if (!object_offset_to_addr(o, p->offset, &addr)) {
		reason = "no address for its file offset";
	} else if (!strcmp(p->name, "entry") && p->provider != &provider_usdt) {
		err = text_entry(t, p->addr, &one);
	} else if (text_function(t, addr, &func, &end)) {
		err = text_offset(t, func, addr - func, &one);
		if (!err && !usable(&one) && text_offset_split(t, func, addr - func, &sites, &n)) {
			free(sites);
			return NULL;
		}
	} else {
		reason = "it lies in no known function";
	}
	if (!err && !reason && p->kind != ATTACH_URETPROBE && !usable(&one))
		reason = one.reason;
	if (err)
		reason = "its code cannot be read";
	err_free(err);
	return reason;
}

char *sites_how(struct engine_scene *s, const struct probe *p, char **ret_note)
{
	const char *why;

	*ret_note = NULL;
	if ((p->kind != ATTACH_UPROBE && p->kind != ATTACH_URETPROBE) || !s->targets ||
	    !p->object || p->unavailable)
		return NULL;
	if (!s->path || strcmp(s->path, p->object)) {
		engine_scene_fini(s);
		s->path = xstrdup(p->object);
		err_free(object_open(p->object, &s->object));
		if (s->object)
			err_free(text_open(s->object, &s->text));
	}
	if (!s->text)
		return NULL;
	why = refusal(s->object, s->text, p);
	return why ? xasprintf("refused: %s", why) : xstrdup("patched jump");
}
