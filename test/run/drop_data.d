//@ engine: interp,kernel,inproc
/* A record without room in the buffer is counted, per CPU. */
//@ err
//@ sub: /^descry: script .*\n//
//@ sub: /^descry: \d+ drops? on CPU \d+/descry: N drops on CPU C/
#pragma D option quiet
#pragma D option bufsize=4k
string s;

BEGIN { s = "x"; printf("first\n"); }
BEGIN { printf("%.1s%.1s%.1s%.1s%.1s%.1s%.1s%.1s", s, s, s, s, s, s, s, s); }
BEGIN { printf("%.1s%.1s%.1s%.1s%.1s%.1s%.1s%.1s", s, s, s, s, s, s, s, s); }
BEGIN { printf("%.1s%.1s%.1s%.1s%.1s%.1s%.1s%.1s", s, s, s, s, s, s, s, s); }
BEGIN { printf("%.1s%.1s%.1s%.1s%.1s%.1s%.1s%.1s", s, s, s, s, s, s, s, s); }
BEGIN { printf("%.1s%.1s%.1s%.1s%.1s%.1s%.1s%.1s", s, s, s, s, s, s, s, s); }
BEGIN { exit(0); }
