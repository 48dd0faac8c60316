//@ cmd: -d bind
//@ err
//@ exit: 1
typedef no_such_t new_t;
BEGIN { trace(sizeof (new_t)); }
