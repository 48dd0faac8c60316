//@ cmd: -d parse -p 1
#pragma D option flowindent
pid$target::handle_request:entry { self->in = 1; }
pid$target:a.out::entry,pid$target:a.out::return /self->in/ {}
pid$target::handle_request:return { self->in = 0; }
