//@ cmd: -d parse
//@ err
//@ exit: 1
provider p { probe q(int a) : (int b, int a); probe r(int a, int a); };
