/* Makes JSON values from text and fields. */
#ifndef DESCRY_RENDER_JSON_H
#define DESCRY_RENDER_JSON_H

#include "render/render.h"

/* Writes a quoted string in valid UTF-8, whatever the bytes. */
void json_string(struct out *o, const char *s, size_t n);
/* Writes a character as \u0041, in two halves above U+FFFF. */
void json_character(struct out *o, uint32_t c);
/* Writes a field by its kind and type: number, string, true/false; pointers as "0x.."; stacks as
 * arrays of frames {"address":"0x..","module":"..","function":"..","offset":n}; memory as hex
 * digits. */
void json_field(struct sink *s, struct out *o, const struct field *f, uint32_t traits,
		const uint8_t *data);
/* Writes print(): the result of value_json(). */
void json_print_action(struct sink *s, struct out *o, const struct record_view *r,
		       const struct action *a);
/* Writes a struct, union or array by its type. */
void json_bytes(struct sink *s, struct out *o, const struct field *f, const uint8_t *data);

#endif
