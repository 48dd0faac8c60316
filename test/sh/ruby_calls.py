"""A Ruby program with all ways to call a method, the calls and returns that a TracePoint counts in it, and those that descry counts."""
from live import *

# Between begin_work and end_work, every call is counted. A process that is told to wait does so first.
AROUND = r"""
def begin_work() end
def end_work() end

def measured(how)
  $stdout.sync = true
  if how == "waits"
    puts "ready"
    $stdin.gets
  end
  counts = Hash.new(0)
  trace = TracePoint.new(:call, :return) do |t|
    counts[[t.event, t.defined_class, t.method_id, t.path]] += 1
  end
  begin_work
  trace.enable if how == "truth"
  yield
  trace.disable if how == "truth"
  end_work
  require "json"
  # the name of the class that a method belongs to; of a singleton class, of the class whose it is
  names = Hash.new do |all, owner|
    of = owner.singleton_class? ? ObjectSpace.each_object(owner).find { |o| Module === o && o.singleton_class == owner } : owner
    all[owner] = of && of.name || "<unknown>"
  end
  said = Hash.new(0)
  counts.each { |(event, owner, id, path), n| said[[event, names[owner], id, path]] += n if path != "<internal:trace_point>" }
  puts said.to_a.to_json if how == "truth"
end
"""
PROGRAM = AROUND + r"""
class Base
  def greet(x) x end
  def each_one
    return to_enum(:each_one) unless block_given?
    3.times { |i| yield leaf(i) }
  end
  def leaf(n = 2) n + 1 end
  def method_missing(name, *args)
    return super unless name == :ghost
    leaf(*args)
  end
  def respond_to_missing?(name, all = false) name == :ghost || super end
end

module Loud
  def greet(x) super(x).to_s + "!" end
end

class Order < Base
  prepend Loud
  include Comparable
  attr_accessor :n
  def initialize(n, *rest, kind: leaf, **more) @n = n end
  def <=>(other) n <=> other.n end
  def greet(x) super end
  alias greeting greet
  define_method(:dynamic) { |a, b = leaf(a)| a + b }
  define_method(:stops) { |a| [1, 2].each { |x| return x if x == a }; 0 }
  def self.make(n) new(n, 1, 2, kind: 3, other: 4) end
  class << self
    def of_class(x) make(x).dynamic(2) end
  end
  def forwards(...) optional(...) end
  def optional(a, b = leaf(a), c = b, *d, e: c, &f) f ? f.call(a) : a end
  def early; [1, 2].each { |x| return leaf(x) }; end
  def fails(n) raise ArgumentError, "no" if n == 0; fails(n - 1) end
  def ensures; return 1; ensure leaf end
  def retries
    tries = 0
    begin
      tries += 1
      fails(1) if tries < 3
    rescue ArgumentError
      retry
    end
  end
  def throws(n) throw :done, n if n == 0; throws(n - 1) end
  def mutates(s) s =~ /b(.)/; $~ && $1 end
  def evals(b) eval("leaf(3) + x", b) end
  def frame(x) evals(binding) end
end

Point = Struct.new(:x, :y) do
  def far() x + y end
end
anonymous = Class.new { def nameless() 1 end }

module Short
  refine Integer do
    def twice() self * 2 end
  end
end
using Short

def top(o) o.leaf(1) end
o = Object.new
def o.single() 1 end

measured(ARGV[0]) do
  9.times do |i|
    a = Order.make(i)
    b = Order.of_class(i) && Order.new(i)
    a.greet(1)
    a.greeting(2)
    a.each_one { |x| top(a) }
    a.each_one.to_a
    e = a.each_one
    e.next
    e.next
    a.dynamic(1)
    a.dynamic(1, 2)
    a.stops(2)
    a.ghost(3)
    a.respond_to?(:ghost)
    a.nothing rescue 0
    a == b && a.clamp(a, b)
    [a, b].sort.max
    a.forwards(1, 2, 3, 4, e: 5) { |x| top(a) }
    a.optional(1)
    a.early
    a.ensures
    a.retries
    a.optional rescue 0
    catch(:done) { a.throws(3) }
    a.mutates("abc")
    a.frame(1)
    [1, 2].map(&a.method(:leaf)).each(&:twice)
    a.send(:leaf, 5)
    a.public_send(:greet, 5)
    Point.new(1, 2).far
    anonymous.new.nameless
    o.single
    a.instance_eval { leaf(7) }
    a.singleton_class.class_eval { def own() leaf(8) end }
    a.own
    Fiber.new { a.leaf(Fiber.yield(a.leaf(1))) }.tap(&:resume).resume(4)
    ->(x) { a.leaf(x) }.curry[1]
    4.times { [[1, 2].first, a.class, 3.integer?, a.frozen?] } # Ruby's own, which may have no frame
    [3, 1, 2].sort_by { |x| a.leaf(x) }.inject { |x, y| a.leaf(x) + y }
  end
  Thread.new { 9.times { |i| Order.make(i).greet(i) } }.join
end
"""
# real code: Ruby's own libraries
LIBRARIES = AROUND + r"""
require "erb"
require "optparse"
require "set"
require "ostruct"
require "forwardable"
require "pp"
require "time"
require "uri"
require "stringio"
require "logger"
require "delegate"
begin
  require "csv"
  require "rake"
rescue LoadError
  # not with every version
end

measured(ARGV[0]) do
  2.times do |i|
    ERB.new("<% 3.times do |x| %>line <%= x %>\n<% end %>", trim_mode: "-").result(binding)
    OptionParser.new { |p| p.banner = "x"; p.on("-v", "--[no-]verbose", "more") { } ; p.on("-nN", Integer) { } }.parse(%w[-v -n 3 file])
    if defined?(CSV)
      CSV.parse("a,b\n1,2\n\"x\"\"y\",z\n", headers: true).map(&:to_h)
      CSV.generate { |c| c << [1, "two", nil] << [3.5, "a,b", "c\"d"] }
    end
    Set.new([1, 2, 3]).subset?(Set.new([1, 2, 3, 4]))
    OpenStruct.new(a: 1, b: i).b
    PP.pp({ "key" => [1, 2, { deep: "x" * 60 }] * 3 }, StringIO.new)
    Time.parse("2024-02-03 04:05:06 UTC").iso8601
    URI.parse("http://example.org:80/a/b?c=d#e").route_to("http://example.org/a/x").to_s
    Logger.new(StringIO.new).info { "text" }
    SimpleDelegator.new([1, 2]).size
    next unless defined?(Rake)
    app = Rake.application
    Rake::Task.clear
    Rake::Task.define_task(:one) { }
    Rake::Task.define_task(:two => :one) { }
    Rake::Task[:two].invoke
    Rake::FileList["/usr/lib/ruby/3.1.0/op*.rb"].ext("txt").to_a
  end
end
"""
COUNT = """
ruby$target:::method-entry /copyinstr(arg1) == "begin_work"/ { on = 1; }
ruby$target:::method-entry /on/ { @["call", copyinstr(arg0), copyinstr(arg1), copyinstr(arg2)] = count(); @line[copyinstr(arg2), copyinstr(arg1), arg3] = count(); }
ruby$target:::method-return /on/ { @["return", copyinstr(arg0), copyinstr(arg1), copyinstr(arg2)] = count(); }
ruby$target:::method-entry /copyinstr(arg1) == "end_work"/ { on = 0; }
"""


def truth(ruby, app):
    said = subprocess.run([ruby, app, "truth"], capture_output=True, text=True, check=True).stdout
    return {tuple(k): n for k, n in json.loads(said.splitlines()[-1])}


def judge(name, r, want, leaves=False):
    """leaves: a TracePoint misses calls of methods of Ruby's own that have no frame (3.3); descry counts them."""
    around = ("begin_work", "end_work", "measured")
    got = {k: v for k, v in r.aggs().items() if k[2] not in around}
    differ = {k: (got.get(k), want.get(k)) for k in got.keys() | want.keys() if got.get(k) != want.get(k) and k[2] not in around and
              not (leaves and k[3].startswith("<internal:") and got.get(k, 0) > want.get(k, 0))}
    check(not differ and got, name, "calls and returns (here, TracePoint)", differ, r.err)
    print("%s: %d calls and returns of %d methods, %d differ" % (name, sum(got.values()), len(got), len(differ)))


def lines_of(text):
    """First lines of methods: {(name, line)}."""
    return {(m.group(1), i) for i, line in enumerate(text.splitlines(), 1)
            for m in re.finditer(r"\bdef (?:self\.|o\.)?([\w?]+|<=>)|define_method\(:(\w+)\)", line) if m.group(1)}


def judge_lines(name, r, app, text):
    """The first lines of the methods that are called are those of the definitions."""
    lines = {(k[1], k[2]) for k in r.aggs("line") if k[0] == app}
    wrong = {x for x in lines - lines_of(text) if x[0] not in ("dynamic", "stops")}
    check(len(lines) > 30 and not wrong, name, "lines", len(lines), wrong, r.err)
