//@ cmd: -d bind
//@ err
//@ exit: 1
struct nowhere_at_all; BEGIN { this->p = (struct nowhere_at_all *)0; trace(this->p->x); }
