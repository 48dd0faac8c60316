//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(self); self.x = 1; this->y = 2; }
