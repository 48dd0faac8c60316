/* The names of Java's classes, as programmers write them. */
#include "memory/heapfile/java_name.h"

#include <string.h>

static const char *element_type(char letter)
{
	switch (letter) {
	case 'Z': return "boolean";
	case 'C': return "char";
	case 'F': return "float";
	case 'D': return "double";
	case 'B': return "byte";
	case 'S': return "short";
	case 'I': return "int";
	case 'J': return "long";
	}
	return NULL;
}

void java_name(struct out *o, const char *name)
{
	const char *element = name + strspn(name, "[");
	size_t dims = (size_t)(element - name), n = strlen(element);

	if (dims && n == 1 && element_type(*element)) {
		element = element_type(*element);
		n = strlen(element);
	} else if (dims && n > 2 && *element == 'L' && element[n - 1] == ';') {
		element++;
		n -= 2;
	}
	for (size_t i = 0; i < n; i++)
		out_char(o, element[i] == '/' ? '.' : element[i]);
	while (dims--)
		out_str(o, "[]");
}
