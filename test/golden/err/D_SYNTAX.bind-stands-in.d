//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(offsetof(vnode_t, v_count)); }
BEGIN { trace(offsetof(struct file, v_count)); }
typedef struct mine { int a, b; } mine_t;
BEGIN { trace(offsetof(vnode_t, f_pos) == offsetof(struct file, f_pos) && offsetof(mine_t, b) == 4); }
