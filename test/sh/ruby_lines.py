"""A Ruby program with all ways to begin a line, and a comparison of the lines that a TracePoint counts in it with those that descry counts."""
from live import *

PROGRAM = r"""
def begin_work() 0 end
def end_work() 0 end

class Shop
  include Comparable
  attr_reader :n
  def initialize(n)
    @n = n
    @list = [1,
             2, 3]
  end

  def <=>(other) n <=> other.n end

  def each
    return to_enum(:each) unless block_given?
    @list.each do |x|
      yield x if x.odd?
    end
  end

  define_method(:made) do |a|
    b = a + 1
    b * 2
  end

  def fails(n)
    raise ArgumentError,
          "no" if n == 0
    begin
      fails(n - 1)
    rescue ArgumentError
      n += 1
      raise if n < 4
    ensure
      @n += 1
    end
  end

  def chooses(x)
    case x
    when 0 then :a
    when 1..3
      :b
    else
      x.even? ? 1 :
        2
    end
  end
  LONG = "x = 0\n" + (1..300).map { |i| "x += #{i}\n" }.join
  def long() eval(LONG) end
end

def work
  a = Shop.new(3)
  i = 0
  while i < 12
    a.chooses(i)
    i += 1
    next if i == 3
    a.made(i)
  end
  until i == 0; i -= 1; end
  for x in a.each
    a <=> Shop.new(x)
  end
  a.fails(3) rescue 0
  a.long
  eval("y = 1\ny += 1")
  a.instance_eval do
    @n = 1
  end
  f = Fiber.new do
    Fiber.yield 1
    2
  end
  f.resume
  f.resume
  [3, 1, 2].map { |v| v + 1 }
           .select(&:even?)
           .each_with_index do |v, k|
    v + k
  end
  catch(:done) { throw :done }
  s = <<~TEXT
    a #{a.made(1)}
    b
  TEXT
  s.each_line { |l|
    l.strip }
end

def everything
  5.times { work }
  [Thread.new { work }, Thread.new { work }].each(&:join)
  File.write(ARGV[1], "module Late\n  def self.f(x)\n    y = x\n    y + 1\n  end\nend\n")
  load ARGV[1]
  3.times { |i| Late.f(i) }
  require "erb"
  require "csv"
  require "set"
  ERB.new("<% 3.times do |x| %>line <%= x %>\n<% end %>", trim_mode: "-").result(binding)
  CSV.parse("a,b\n1,2\n\"x\"\"y\",z\n", headers: true).map(&:to_h)
  Set.new([1, 2, 3]).subset?(Set.new([1, 2, 3, 4]))
end

how = ARGV[0]
all = Hash.new { |h, thread| h[thread] = Hash.new(0) } # threads do not count together
all[Thread.current]
if how == "truth"
  trace = TracePoint.new(:line) { |t| all[Thread.current][[t.path, t.lineno]] += 1 }
  begin_work
  trace.enable
  everything
  trace.disable
elsif how == "own"
  calls = 0
  own = TracePoint.new(:call) { |t| calls += 1 if Thread.current == Thread.main }
  begin_work
  own.enable
  everything
  own.disable
  $stderr.puts "own #{calls}"
else
  begin_work
  everything
end
end_work
if how == "truth"
  require "json"
  counts = Hash.new(0)
  all.each_value { |h| h.each { |k, n| counts[k] += n } }
  puts counts.to_a.to_json
end
"""
COUNT = """
ruby$target:::method-entry /copyinstr(arg1) == "begin_work"/ { on = 1; }
ruby$target:::line /on/ { @[copyinstr(arg0), arg1] = count(); }
ruby$target:::method-entry /copyinstr(arg1) == "end_work"/ { on = 0; }
"""


def counted(ruby, app, how, *more):
    expected = {}
    for (path, line), n in json.loads(subprocess.run([ruby, *more, app, "truth", TMP + "/late.rb"], capture_output=True, text=True,
                                                     check=True).stdout):
        expected[path, line] = n
    # the places that enable and disable the TracePoint; the methods that mark the beginning and the end
    with open(app) as f:
        text = f.read().split("\n")
    frame = {(app, text.index(t) + 1) for t in ("how = ARGV[0]", "  everything", "end_work", "  trace.disable", "  own.disable", "  own.enable",
                                              "  trace.enable", "def begin_work() 0 end", "def end_work() 0 end")}
    r = descry("--json", "-x", "engine=inproc", "-n", COUNT, c=shlex.join([ruby, *more, app, how, TMP + "/late.rb"]))
    got = {(k[0], k[1]): n for k, n in r.aggs().items()}
    ours = {k: n for k, n in got.items() if k not in frame and (k[0] != app or k[1] < text.index("how = ARGV[0]")) and "trace_point" not in k[0]}
    want = {k: n for k, n in expected.items() if k not in frame and (k[0] != app or k[1] < text.index("how = ARGV[0]")) and "trace_point" not in k[0]}
    wrong = {k: (want.get(k), ours.get(k)) for k in set(want) | set(ours) if want.get(k) != ours.get(k)}
    check(r.rc == 0 and not wrong and len(want) > 300, ruby, how, more, len(want), wrong, r.err[-2000:])
    check(want.get((app, text.index("    a.chooses(i)") + 1)) == 7 * 12, "the program's own counts")
    return r
