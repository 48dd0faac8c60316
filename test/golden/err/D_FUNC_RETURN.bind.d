//@ cmd: -d bind
//@ err
//@ exit: 1
int one() { return; }
void none() { return 1; }
BEGIN { none(); x = one(); }
