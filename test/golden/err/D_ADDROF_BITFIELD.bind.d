//@ cmd: -d bind
//@ err
//@ exit: 1
struct s { int a : 3; int b; }; BEGIN { this->p = (struct s *)alloca(8); trace(&this->p->a); }
