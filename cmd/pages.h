/* The pages of `descry help`: doc/ and man/, written into a C file by tools/embed-pages at build
 * time. */
#ifndef DESCRY_CMD_PAGES_H
#define DESCRY_CMD_PAGES_H

struct page {
	const char *name; /* of its file, without the ending: "descry-flame" */
	const char *text;
};
extern const struct page pages[]; /* ended by a name that is NULL */

#endif
