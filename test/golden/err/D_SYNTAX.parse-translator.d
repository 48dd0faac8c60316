//@ cmd: -d parse
//@ err
//@ exit: 1
translator a_t < int p > { x = 1; y 2; z = 3; };
translator b_t { x = 1; };
translator c_t < int p > { x = 1; }
provider p { probe q(int; probe r(int); int x; };
inline int f;
inline = 3;
BEGIN { trace(1); }
