/* The pages of `descry help`: tools/embed-pages writes doc/ and man/ into a C file at build
 * time. */
#ifndef DESCRY_CMD_PAGES_H
#define DESCRY_CMD_PAGES_H

struct page {
	const char *name; /* of its file, without the suffix: "descry-flame" */
	const char *text;
};
extern const struct page pages[]; /* ends at a NULL name */

#endif
