//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(offsetof(struct that_is_nowhere, x)); }
