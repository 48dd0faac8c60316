//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { this->p = alloca(1000000); }
