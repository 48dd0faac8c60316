/* Finds the modules for a device, and the firmware of a module. */
#define _GNU_SOURCE
#include "check/hardware.h"

#include <elf.h>
#include <fnmatch.h>
#include <gelf.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "check/small.h"

/* Returns the kernel release whose modules are used. With a root directory, returns NULL unless it
 * has exactly one. */
static char *release_of(const char *root)
{
	cleanup_free char *dir = xasprintf("%s/lib/modules", root);
	struct utsname u;
	char **names, *only = NULL;
	unsigned n;

	if (!*root)
		return uname(&u) ? NULL : xstrdup(u.release);
	n = small_names(dir, &names);
	if (n == 1)
		only = xstrdup(names[0]);
	small_names_free(names, n);
	return only;
}

void modules_open(struct modules *m, const char *root)
{
	cleanup_free char *dir = NULL, *path = NULL;

	*m = (struct modules){ .root = xstrdup(root), .release = release_of(root) };
	dir = xasprintf("%s/lib/modules/%s", root, m->release ? m->release : "");
	if (m->release && access(dir, F_OK)) {
		free(m->release);
		m->release = NULL;
	}
	if (!m->release)
		return;
	m->aliases = small_read("%s/modules.alias", dir);
	path = xasprintf("%s/modules.builtin.modinfo", dir);
	err_free(io_read_file(path, &m->builtin, &m->builtin_size));
}

void modules_close(struct modules *m)
{
	free(m->root);
	free(m->release);
	free(m->aliases);
	free(m->builtin);
}

/* Adds a word to a list separated by spaces, once. */
static void add_word(char **list, const char *word, size_t n)
{
	for (const char *p = *list; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		if (strcspn(p, " ") == n && !strncmp(p, word, n))
			return;
	}
	{
		char *longer =
			xasprintf("%s%s%.*s", *list ? *list : "", *list ? " " : "", (int)n, word);

		free(*list);
		*list = longer;
	}
}

static bool alias_matches(const char *pattern, size_t n, const char *modalias)
{
	cleanup_free char *p = xstrndup(pattern, n);

	return !fnmatch(p, modalias, 0);
}

/* Adds modules of lines like "alias pci:v00008086d*... e1000". */
static void match_aliases(const struct modules *m, const char *modalias, char **ret)
{
	for (const char *line = m->aliases; line && *line;
	     line = strchr(line, '\n'), line += line != NULL) {
		const char *pattern = line + 6, *module;

		if (strncmp(line, "alias ", 6) != 0)
			continue;
		module = strpbrk(pattern, " \n");
		if (module && *module == ' ' &&
		    alias_matches(pattern, (size_t)(module - pattern), modalias))
			add_word(ret, module + 1, strcspn(module + 1, "\n"));
	}
}

/* Adds modules of entries like "e1000.alias=pci:v00008086d*...\0". */
static void match_builtin(const struct modules *m, const char *modalias, char **ret)
{
	const char *end = m->builtin + m->builtin_size;

	for (const char *p = m->builtin; p && p < end; p += strlen(p) + 1) {
		const char *dot = strchr(p, '.');

		if (dot && !strncmp(dot, ".alias=", 7) &&
		    alias_matches(dot + 7, strlen(dot + 7), modalias))
			add_word(ret, p, (size_t)(dot - p));
	}
}

char *modules_for(const struct modules *m, const char *modalias)
{
	char *list = NULL;

	match_aliases(m, modalias, &list);
	match_builtin(m, modalias, &list);
	return list;
}

static bool is_installed(const struct modules *m, const char *firmware)
{
	static const char *const dirs[] = { "/lib/firmware", "/lib/firmware/updates",
					    "/usr/lib/firmware" };
	static const char *const ends[] = { "", ".xz", ".zst" };

	for (size_t d = 0; d < ARRAY_SIZE(dirs); d++)
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			cleanup_free char *path =
				xasprintf("%s%s/%s%s", m->root, dirs[d], firmware, ends[i]);

			if (!access(path, F_OK))
				return true;
		}
	return false;
}

static void want(const struct modules *m, const char *firmware, char **ret)
{
	if (!is_installed(m, firmware))
		add_word(ret, firmware, strlen(firmware));
}

/* Adds the firmware of the .modinfo section of a module's file: "firmware=NAME\0". */
static void scan_modinfo(const struct modules *m, const char *path, char **ret)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 && elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	size_t names;

	if (elf && !elf_getshdrstrndx(elf, &names))
		for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
			GElf_Shdr h;
			Elf_Data *d;
			const char *name = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name)
							       : NULL;

			if (!name || strcmp(name, ".modinfo") != 0 || !(d = elf_getdata(s, NULL)) ||
			    !d->d_buf)
				continue;
			for (size_t at = 0; at < d->d_size;) {
				cleanup_free char *text =
					xstrndup((const char *)d->d_buf + at, d->d_size - at);

				if (!strncmp(text, "firmware=", 9))
					want(m, text + 9, ret);
				at += strlen(text) + 1;
			}
		}
	elf_end(elf);
}

/* Returns the file of a module from modules.dep: "kernel/drivers/net/x.ko: ...". The caller frees
 * it. */
static char *file_of(const struct modules *m, const char *module)
{
	cleanup_free char *text = small_read("%s/lib/modules/%s/modules.dep", m->root, m->release);
	size_t n = strlen(module);

	for (const char *line = text; line && *line;
	     line = strchr(line, '\n'), line += line != NULL) {
		size_t end = strcspn(line, ":\n"), i;
		const char *slash = memrchr(line, '/', end), *base = slash ? slash + 1 : line;

		for (i = 0; i < n && (base[i] == module[i] || (base[i] == '-' && module[i] == '_'));
		     i++)
			;
		if (i == n && !strncmp(base + n, ".ko", 3))
			return xasprintf("%s/lib/modules/%s/%.*s", m->root, m->release, (int)end,
					 line);
	}
	return NULL;
}

char *modules_missing_firmware(const struct modules *m, const char *module)
{
	const char *end = m->builtin ? m->builtin + m->builtin_size : NULL;
	cleanup_free char *path = m->release ? file_of(m, module) : NULL;
	size_t n = strlen(module);
	char *list = NULL;

	for (const char *p = m->builtin; p && p < end; p += strlen(p) + 1)
		if (!strncmp(p, module, n) && !strncmp(p + n, ".firmware=", 10))
			want(m, p + n + 10, &list);
	if (path)
		scan_modinfo(m, path, &list);
	return list;
}
