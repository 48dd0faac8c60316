/* Node.js: the arguments of node$target:::http-server-request. */
#pragma D depends_on library types.d

typedef struct node_http_request {
	string method;
	string url;
	string forwardedFor;	/* always empty */
} node_http_request_t;

/* The numbers of llhttp's methods. */
inline string __node_method[uint8_t N] =
	N == 0 ? "DELETE" : N == 1 ? "GET" : N == 2 ? "HEAD" : N == 3 ? "POST" : N == 4 ? "PUT" : N == 5 ? "CONNECT" :
	N == 6 ? "OPTIONS" : N == 7 ? "TRACE" : N == 28 ? "PATCH" : "other";

/* P is the parser, a llhttp_t. src/probe/node.c sets the variables. */
translator node_http_request_t < uint64_t P > {
	method = __node_method[*(uint8_t *)copyin((uintptr_t)(P + 73), 1)];
	url = self->__node_parser == P ? self->__node_url : "";
	forwardedFor = "";
};
