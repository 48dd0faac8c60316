"""Programs of stack_ruby_real.py that do what real ones do: a WEBrick application with SQLite and templates under load, rake with many
tasks, and tools of the standard library over its own sources. A handler of SIGUSR1 in a C extension writes the frames of a thread by
rb_profile_frames(), which profilers call in their handlers; what it needs is written by write(2), for it may not allocate."""

# Ruby's own headers are not needed: an object is a word.
EXTENSION = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef unsigned long VALUE;
extern int rb_profile_frames(int start, int limit, VALUE *frames, int *lines);
extern VALUE rb_profile_frame_path(VALUE frame), rb_profile_frame_base_label(VALUE frame), rb_profile_frame_method_name(VALUE frame);
extern int ruby_native_thread_p(void);
extern VALUE rb_gv_get(const char *name);
extern char *rb_string_value_ptr(volatile VALUE *string);
/* NULL in a thread that has not yet had its first turn, and old in one that waits to be used again */
extern __thread void *ruby_current_ec;
enum { FRAMES = 2000 };
static VALUE frames[FRAMES];
static int lines[FRAMES];
static char text[1 << 20];
static int file;
static VALUE none;

static const char *text_of(VALUE string)
{
	return string == none ? "?" : rb_string_value_ptr(&string);
}

static void on_signal(int sig)
{
	(void)sig;
	size_t size = 0;
	int n = ruby_current_ec && ruby_native_thread_p() ? rb_profile_frames(0, FRAMES, frames, lines) : 0;
	for (int i = 0; i < n; i++) {
		/* a C function has no line, and asking for its path might allocate */
		VALUE path = lines[i] ? rb_profile_frame_path(frames[i]) : 0;
		VALUE label = lines[i] ? rb_profile_frame_base_label(frames[i]) : rb_profile_frame_method_name(frames[i]);
		const char *name = path ? text_of(path) : "-", *base = name[0] == '<' ? NULL : strrchr(name, '/');
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s\t%s\t%d\n", base ? base + 1 : name, text_of(label), lines[i]);
	}
	size += (size_t)snprintf(text + size, sizeof(text) - size, "end\n");
	if (write(file, text, size) < 0)
		abort();
}

void Init_truth(void)
{
	none = rb_gv_get("$no_such_variable");
	file = open(getenv("TRUTH_FILE"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART }, NULL);
}
"""

WEB = r"""
require 'erb'
require 'json'
require 'logger'
require 'net/http'
require 'sqlite3'
require 'webrick'
require ENV['TRUTH']
base = SQLite3::Database.new(':memory:')
base.execute('create table orders (id integer primary key, name text, total real)')
500.times { |i| base.execute('insert into orders (name, total) values (?, ?)', ["name #{i % 37}", i * 1.5]) }
base.create_function('grade', 1) { |f, n| f.result = 'abcdef'[n % 6] }
lock = Mutex.new

class Page
  TEXT = ERB.new("<ul><% rows.each do |r| %>\n<li><%= ERB::Util.h(r.name) %> <b><%= format('%.2f', r.total) %></b> <%= r.grade %></li>\n<% end %></ul>")
  Row = Struct.new(:name, :total, :grade)
  attr_reader :rows

  def initialize(rows)
    @rows = rows.map { |r| Row.new(*r) }.sort_by { |r| -r.total }
  end

  def html
    TEXT.result(binding)
  end

  def json
    JSON.pretty_generate(@rows.map(&:to_h))
  end
end

server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: 0, AccessLog: [], Logger: Logger.new(File::NULL))
server.mount_proc('/orders') do |request, response|
  rows = lock.synchronize do
    base.execute('select name, sum(total), grade(count(*)) from orders where id > ? group by name', [request.query['after'].to_i])
  end
  page = Page.new(rows)
  response['Content-Type'] = request.query['json'] ? 'application/json' : 'text/html'
  response.body = request.query['json'] ? page.json : page.html
end
port = server.listeners[0].addr[1]
2.times do
  Thread.new do
    (1..).each do |n|
      Net::HTTP.get(URI("http://127.0.0.1:#{port}/orders?after=#{n % 400}#{'&json=1' if n.odd?}"))
    end
  end
end
puts 'ready'
$stdout.flush
server.start
"""

RAKE = r"""
require 'rake'
require ENV['TRUTH']
include Rake::DSL
FOLDER = File.join(File.dirname(__FILE__), 'rake')
20.times do |i|
  file "#{FOLDER}/#{i}.txt" do |t|
    File.write(t.name, "text #{i}\n" * 40)
  end
end
rule(/made\/.*\.out\z/ => [->(name) { name.sub('made/', '').sub('.out', '.txt') }]) do |t|
  File.write(t.name, File.read(t.source).lines.map { |l| l.upcase.gsub(/(\d+)/) { |m| (m.to_i * 3).to_s } }.join)
end
multitask all: (0...20).map { |i| "#{FOLDER}/made/#{i}.out" }
task :sum, [:of] => :all do |_, args|
  FileList["#{FOLDER}/made/*.out"].exclude(/1\d/).ext('out').sum { |f| File.size(f) + args[:of].to_i }
end
puts 'ready'
$stdout.flush
loop do
  mkdir_p "#{FOLDER}/made", verbose: false
  Rake::Task.tasks.each(&:reenable)
  Rake::Task[:sum].invoke('3')
  FileUtils.rm_rf(Dir["#{FOLDER}/*"])
end
"""

LIBRARY = r"""
require 'bigdecimal'
require 'csv'
require 'digest'
require 'forwardable'
require 'json'
require 'optparse/time'
require 'psych'
require 'ripper'
require 'set'
require 'strscan'
require 'time'
require ENV['TRUTH']
SOURCES = $LOADED_FEATURES.select { |f| f.end_with?('.rb') && File.exist?(f) }.sort.first(40)

class Names < Ripper
  attr_reader :found

  def initialize(*)
    super
    @found = Hash.new(0)
  end

  def on_ident(name)
    @found[name] += 1
  end
end

Word = Struct.new(:count, :text) do
  include Comparable

  def <=>(other)
    [-count, text] <=> [-other.count, other.text]
  end
end

class Counts
  extend Forwardable
  include Enumerable
  def_delegators :@words, :size, :first

  def initialize(path)
    names = Names.new(File.read(path)[0, 20000], path)
    names.parse
    @words = names.found.map { |name, n| Word.new(n, name) }.sort
  end

  def each(&block)
    @words.each(&block)
  end

  def table
    CSV.generate { |csv| each { |w| csv << w.to_a } }
  end

  def method_missing(name, *args)
    name.to_s.start_with?('with_') ? select { |w| w.text.start_with?(name.to_s.delete_prefix('with_')) } : super
  end

  def respond_to_missing?(*)
    true
  end
end

def options(line)
  found = {}
  OptionParser.new { |o|
    o.on('--count N', Integer) { |n| found[:count] = n }
    o.on('--since T', Time) { |t| found[:since] = t }
  }.parse(line.split)
  found
rescue OptionParser::ParseError => e
  { error: e.message }
end

def fiber
  Enumerator.new { |y| SOURCES.each { |s| y << s } }.lazy.map { |s| File.basename(s) }.reject(&:empty?).first(9)
end

puts 'ready'
$stdout.flush
loop do
  SOURCES.each do |path|
    counts = Counts.new(path)
    CSV.parse(counts.table).each { |n, name| Digest::SHA256.hexdigest(name) if n.to_i > 1 }
    Psych.safe_load(counts.first(20).to_h { |w| [w.text, w.count] }.to_yaml)
    counts.with_a.sum { |w| BigDecimal(w.count).sqrt(20) }
    options("--count #{counts.size} --since 2026-01-0#{1 + counts.size % 9}")
    options('--count many')
    fiber.to_set
  end
end
"""

PROGRAMS = {"web.rb": WEB, "rake.rb": RAKE, "library.rb": LIBRARY}
