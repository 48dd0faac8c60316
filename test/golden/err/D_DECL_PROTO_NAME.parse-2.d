//@ cmd: -d parse
//@ err
//@ exit: 1
provider shop { probe sale(int, char *what) : (char *what, int); };
