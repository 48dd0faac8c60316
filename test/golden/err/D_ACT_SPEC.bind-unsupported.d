//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { this->s = speculation(); speculate(this->s); panic(); }
