//@ cmd: -d parse
# 1 "script.d"
# 1 "/usr/include/one.h" 1
typedef int first_t;
# 2 "script.d" 2
first_t one;
BEGIN { trace((first_t)-1); }
