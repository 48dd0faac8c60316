//@ cmd: -d parse
inline int ONE = 1;
inline string NAME = "x" ;
inline uint32_t *P = (uint32_t *)0;
inline bare = 3;
inline int twice[int n] = n * 2;
inline fileinfo_t fds[int fd] = xlate <fileinfo_t>(fd >= 0 && fd < 4 ? `table[fd] : NULL);
inline string pick[int a, string b] = a == ONE ? NAME : b;
#pragma D attributes Stable/Stable/Common ONE
#pragma D binding "1.0" NAME
BEGIN { trace(twice[ONE]); trace((ONE) - 1); trace(pick[1, "y"]); }
