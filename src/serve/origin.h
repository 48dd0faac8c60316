/* Finds the page that a request comes from, by headers that the browser sets and a page of another
 * site cannot change (Fetch, 3.2 and Fetch Metadata Request Headers). Texts are as in the headers,
 * NULL where a header is missing.
 */
#ifndef DESCRY_SERVE_ORIGIN_H
#define DESCRY_SERVE_ORIGIN_H

#include <stdbool.h>

/* Returns true when `host` is an address, "localhost" or `machine`, with any port. An attacker may
 * resolve another name to this machine (DNS rebinding). The port is that of the near end of a
 * tunnel. */
bool origin_host_is_ours(const char *host, const char *machine);
/* Returns true when a request comes from the page itself, or from no page. `origin` and `site` are
 * the headers Origin and Sec-Fetch-Site. Programs other than browsers do not send them. */
bool origin_is_page(const char *host, const char *origin, const char *site);

#endif
