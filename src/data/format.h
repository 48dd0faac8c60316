/* printf()/printa() formats, parsed once. The binder checks the arguments against them, and render
 * prints by them. */
#ifndef DESCRY_DATA_FORMAT_H
#define DESCRY_DATA_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

enum conv_kind {
	CONV_LITERAL,    /* text */
	CONV_SIGNED,     /* d i */
	CONV_UNSIGNED,   /* o u x X */
	CONV_CHAR,       /* c, wc lc */
	CONV_ESC_CHAR,   /* C */
	CONV_STRING,     /* s ls ws */
	CONV_ESC_STRING, /* S */
	CONV_POINTER,    /* p */
	CONV_KADDR,      /* a */
	CONV_UADDR,      /* A */
	CONV_STACK,      /* k */
	CONV_TIME,       /* T */
	CONV_DATE,       /* Y */
	CONV_FLOAT,      /* e f g E G */
	CONV_PORT,       /* P: a port in host order, by its name in /etc/services if it has one */
	CONV_INET,       /* I: an internet address: its bytes, or a text */
};

enum conv_flag {
	CONV_LEFT = 1,
	CONV_PLUS = 2,
	CONV_ALT = 4,
	CONV_ZERO = 8,
	CONV_SPACE = 16,
	CONV_GROUP = 32 /* ' */,
	CONV_AGG = 64 /* @ */,
	CONV_DYN_WIDTH = 128,
	CONV_DYN_PREC = 256,
	CONV_HAS_PREC = 512,
};

struct conv {
	enum conv_kind kind;
	uint32_t flags;
	int32_t width, prec;
	char spec;        /* the conversion letter, 'd' */
	uint8_t size;     /* from h l ll: 2, 8, 8; hh: 1; 0: the argument's own size */
	const char *text; /* literal text with %% resolved, NUL-terminated, length in len */
	uint32_t len;
	uint32_t pos; /* offset of '%' in the format, for carets */
};

struct format {
	const char *text;
	struct conv *convs;
	uint32_t n;
};

/* Parses text into *ret, allocated in a. On failure sets *ret_error to a message and *ret_pos to
 * its place in text. */
bool format_parse(struct arena *a, const char *text, struct format **ret, const char **ret_error,
		  uint32_t *ret_pos);
/* Returns the number of arguments that the format takes: conversions that consume one, dynamic
 * widths and precisions. Does not count %@. */
uint32_t format_nargs(const struct format *f);

#endif
