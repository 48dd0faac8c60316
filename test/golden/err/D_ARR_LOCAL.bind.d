//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { this->a[1] = 2; }
