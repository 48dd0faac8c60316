//@ cmd: -d bind
int twice(int n) { return 2 * n; }
void say(string s) { printf("%s\n", s); }
BEGIN { for (this->i = 0; this->i < 3; this->i++) if (this->i) continue; x = twice(3); say("x"); }
