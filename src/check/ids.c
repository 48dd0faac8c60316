/* Looks up names of PCI and USB devices. */
#define _GNU_SOURCE
#include "check/hardware.h"

#include "check/small.h"

/* Reads pci.ids or usb.ids from where distributions install it. */
static char *read_ids(const char *root, const char *name)
{
	static const char *const dirs[] = { "/usr/share/misc", "/usr/share/hwdata",
					    "/var/lib/usbutils" };
	char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !text; i++)
		text = small_read("%s%s/%s", root, dirs[i], name);
	return text;
}

void ids_open(struct ids *ids, const char *root)
{
	ids->pci = read_ids(root, "pci.ids");
	ids->usb = read_ids(root, "usb.ids");
}

void ids_close(struct ids *ids)
{
	free(ids->pci);
	free(ids->usb);
}

/* Returns the text behind `start` in the first line, from p on, that begins with it. within: stops
 * at a line that begins with neither a tab nor '#'. */
static const char *line_of(const char *p, const char *start, bool within)
{
	size_t n = strlen(start);

	for (; p && *p; p = strchr(p, '\n'), p += p != NULL) {
		if (!strncmp(p, start, n))
			return p + n + strspn(p + n, " ");
		if (within && *p != '\t' && *p != '#' && *p != '\n')
			return NULL;
	}
	return NULL;
}

static char *two_levels(const char *text, const char *first, const char *second)
{
	const char *a = text ? line_of(text, first, false) : NULL, *b;

	if (!a)
		return NULL;
	b = strchr(a, '\n');
	b = b ? line_of(b + 1, second, true) : NULL;
	if (!b)
		return xstrndup(a, strcspn(a, "\n"));
	return *first == 'C'
		       ? xstrndup(b, strcspn(b, "\n"))
		       : xasprintf("%.*s %.*s", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

char *ids_name(const char *text, unsigned vendor, unsigned device)
{
	char first[16], second[16];

	snprintf(first, sizeof(first), "%04x ", vendor);
	snprintf(second, sizeof(second), "\t%04x ", device);
	return two_levels(text, first, second);
}

char *ids_class(const char *text, unsigned class, unsigned sub)
{
	char first[16], second[16];

	snprintf(first, sizeof(first), "C %02x ", class);
	snprintf(second, sizeof(second), "\t%02x ", sub);
	return two_levels(text, first, second);
}
