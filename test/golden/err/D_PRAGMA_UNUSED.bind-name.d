//@ cmd: -d bind
//@ err
//@ exit: 1
inline int known = 1;
int var;
#pragma D attributes Stable/Stable/Common known
#pragma D attributes Stable/Stable/Common nobody
#pragma D attributes Stable/Stable/Common var
BEGIN { exit(known); }
