/* Decides by a request's Origin, Host and Fetch headers whether it comes from our own page. */
#include "serve/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 256 };

/* ":80", or nothing. */
static bool is_port(const char *s)
{
	return !*s || (*s == ':' && s[1] && strspn(s + 1, "0123456789") == strlen(s + 1));
}

/* host [":" port], host a name, an IPv4 address or an IPv6 address in brackets */
bool origin_host_is_ours(const char *host, const char *machine)
{
	bool is6 = host && *host == '[';
	const char *end = host ? strchr(host, is6 ? ']' : ':') : NULL;
	char name[HOST_MAX];
	struct in6_addr a;
	size_t n;

	if (!host || (is6 && !end))
		return false;
	n = end ? (size_t)(end - host) - is6 : strlen(host);
	if (!n || n >= sizeof(name) || (end && !is_port(end + is6)))
		return false;
	memcpy(name, host + is6, n);
	name[n] = '\0';
	if (is6)
		return inet_pton(AF_INET6, name, &a) == 1;
	return inet_pton(AF_INET, name, &a) == 1 || !strcasecmp(name, "localhost") ||
	       (machine && *machine && !strcasecmp(name, machine));
}

bool origin_is_page(const char *host, const char *origin, const char *site)
{
	static const char scheme[] = "http://";

	if (site && strcmp(site, "same-origin") != 0)
		return false;
	return !origin || (host && !strncasecmp(origin, scheme, sizeof(scheme) - 1) &&
			   !strcasecmp(origin + sizeof(scheme) - 1, host));
}
