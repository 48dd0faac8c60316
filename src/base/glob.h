/* D's probe-name patterns: * ? [abc] [a-z] [!x] \x. The empty pattern matches
 * everything. */
#ifndef DESCRY_BASE_GLOB_H
#define DESCRY_BASE_GLOB_H

#include <stdbool.h>

bool glob_match(const char *pattern, const char *text);
bool glob_is_pattern(const char *s); /* holds an unescaped * ? or [ */

#endif
