/* How much memory a JSON document takes when jansson has read it.
 *
 * In: the document's text. Out: an error when it takes more than a document of its size may, or
 * half of the memory that is free. `{},` is three bytes of text and 230 of memory.
 */
#ifndef DESCRY_INPUT_JSON_ROOM_H
#define DESCRY_INPUT_JSON_ROOM_H

#include <stddef.h>

#include "base/err.h"

struct err *json_room(const char *text, size_t n);

#endif
