//@ cmd: -d parse
a:::b /x / 2 == 1/ { y = x / 2 / 3; }
a:::b/x/{y=x/2/3}
a:::b
/
x
/
y
/
{ z /= 2; }
a:::b / x / /* c */ { }
a:::b / (x / y) > 1 && z[a / b] / // c
{ }
