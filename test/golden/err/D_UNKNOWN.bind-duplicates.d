//@ cmd: -d bind
//@ err
//@ exit: 1
enum twice { one = 1, one = 2 };
struct twice { int x; char x; };
BEGIN { trace(offsetof(struct task_struct, no_such)); }
