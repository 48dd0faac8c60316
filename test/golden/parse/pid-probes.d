//@ cmd: -d parse -p 1
pid$target:libc.so.6:malloc:entry,
pid$target:a.out::return,
pid123:a.out::1f,
pid$target::-:4a0,
pid$target:libstdc?*:_ZN*:entry,
pid$target:a.out:std::vector<int>::push_back(int const&):entry,
pid$target:a.out:Foo::~Foo:return,
pid$target:a.out:operator\ new:entry
{
}
pid$target::main.(*Server).Serve:entry,
pid$target:a.out:net\/http.(*conn).serve:entry,
pid$target::memcpy@@GLIBC_2.14:entry,
python$target:::function-entry,
pid*:::entry
{ trace(probefunc); }
