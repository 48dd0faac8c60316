//@ cmd: -d parse
BEGIN { this->p = (struct task_struct *)curthread; trace(this->p->real_parent->pid); exit(0); }
