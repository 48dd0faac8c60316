/* The D files of dlib/, as they stand in the binary (made by tools/embed-dlib at build time),
 * ordered by name. Which one must be read before which is said by their own `#pragma D depends_on
 * library`.
 */
#ifndef DESCRY_COMPILE_DLIB_H
#define DESCRY_COMPILE_DLIB_H

struct dlib_file {
	const char *name; /* "io.d" */
	const char *text; /* NUL-terminated */
	unsigned len;
};

extern const struct dlib_file dlib_files[];
extern const unsigned dlib_nfiles;

#endif
