/* From which page a request comes, as the browser says: headers that a page of another site cannot
 * change (Fetch, 3.2 and Fetch Metadata Request Headers). Texts are as in the headers, NULL where
 * there is none.
 */
#ifndef DESCRY_SERVE_ORIGIN_H
#define DESCRY_SERVE_ORIGIN_H

#include <stdbool.h>

/* Is `host` an address, "localhost" or `machine`, with any port? Another name may be one that
 * somebody else resolves to this machine (DNS rebinding). The port is that of the near end of a
 * tunnel. */
bool origin_host_is_ours(const char *host, const char *machine);
/* Does a request come from the page itself, or from no page at all? `origin` and `site` are the
 * headers Origin and Sec-Fetch-Site, which a program other than a browser does not send. */
bool origin_is_page(const char *host, const char *origin, const char *site);

#endif
