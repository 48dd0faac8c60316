//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace((nosuchtype_t *)1); }
