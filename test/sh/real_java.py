"""Programs of stack_java_real.py that do what real ones do: an HTTP server with a thread pool and its clients, and a batch of text, tables
and archives. An agent in C has AsyncGetCallTrace() say the frames of a thread in a handler of SIGUSR1, as profilers do; a thread of the
agent then finds their names, which the handler may not."""

AGENT = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <jvmti.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { FRAMES = 1000 };
struct frame { jint bci; jmethodID method; };
struct trace { JNIEnv *env; jint n; struct frame *frames; };
static void (*get_trace)(struct trace *trace, jint depth, void *context);
static JavaVM *vm;
static jvmtiEnv *ti;
static int file, wake[2];
static struct frame frames[FRAMES];
static struct trace last;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	last = (struct trace){ .frames = frames, .n = -100 };
	if ((*vm)->GetEnv(vm, (void **)&last.env, JNI_VERSION_1_8) == JNI_OK)
		get_trace(&last, FRAMES, context);
	if (write(wake[1], "", 1) < 0)
		abort();
}

static int line_of(jmethodID method, jint bci)
{
	jint n = 0, line = 0;
	jvmtiLineNumberEntry *table = NULL;
	if (bci < 0 || (*ti)->GetLineNumberTable(ti, method, &n, &table))
		return 0;
	for (jint i = 0; i < n; i++)
		if (table[i].start_location <= bci)
			line = table[i].line_number;
	(*ti)->Deallocate(ti, (void *)table);
	return line;
}

static void put_frame(FILE *f, JNIEnv *env, const struct frame *at)
{
	char *name = NULL, *sig = NULL, *source = NULL;
	jclass class;
	if ((*ti)->GetMethodName(ti, at->method, &name, NULL, NULL) || (*ti)->GetMethodDeclaringClass(ti, at->method, &class) ||
	    (*ti)->GetClassSignature(ti, class, &sig, NULL)) {
		fprintf(f, "?\t?\t0\n");
		return;
	}
	(*ti)->GetSourceFileName(ti, class, &source);
	(*env)->DeleteLocalRef(env, class);
	sig[strlen(sig) - 1] = 0;
	for (char *c = sig; *c; c++)
		*c = *c == '/' ? '.' : *c;
	fprintf(f, "%s.%s\t%s\t%d\n", sig + 1, name, source ? source : "?", line_of(at->method, at->bci));
	(*ti)->Deallocate(ti, (void *)name), (*ti)->Deallocate(ti, (void *)sig), (*ti)->Deallocate(ti, (void *)source);
}

static void JNICALL say(jvmtiEnv *t, JNIEnv *env, void *arg)
{
	(void)t, (void)arg;
	for (char c; read(wake[0], &c, 1) == 1;) {
		char *text;
		size_t size;
		FILE *f = open_memstream(&text, &size);
		fprintf(f, "%d\n", last.n);
		for (int i = 0; i < last.n; i++)
			put_frame(f, env, &frames[i]);
		fclose(f);
		if (write(file, text, size) < 0)
			abort();
		free(text);
	}
}

static void JNICALL on_class(jvmtiEnv *t, JNIEnv *env, jthread thread, jclass class)
{
	(void)env, (void)thread;
	jint n;
	jmethodID *methods;
	/* methods need numbers before they are asked for in a handler */
	if (!(*t)->GetClassMethods(t, class, &n, &methods))
		(*t)->Deallocate(t, (void *)methods);
}

static void JNICALL on_start(jvmtiEnv *t, JNIEnv *env, jthread thread)
{
	(void)thread;
	jint n;
	jclass *classes;
	(*t)->GetLoadedClasses(t, &n, &classes);
	for (jint i = 0; i < n; i++)
		on_class(t, env, NULL, classes[i]);
	(*t)->Deallocate(t, (void *)classes);
	jclass type = (*env)->FindClass(env, "java/lang/Thread");
	jobject helper = (*env)->NewObject(env, type, (*env)->GetMethodID(env, type, "<init>", "()V"));
	(*t)->RunAgentThread(t, helper, say, NULL, JVMTI_THREAD_NORM_PRIORITY);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO }, NULL);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *java, char *options, void *reserved)
{
	(void)reserved;
	vm = java;
	file = open(options, O_WRONLY | O_CREAT | O_APPEND, 0600);
	get_trace = (void (*)(struct trace *, jint, void *))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (file < 0 || pipe(wake) || !get_trace || (*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_1_2))
		return JNI_ERR;
	(*ti)->AddCapabilities(ti, &(jvmtiCapabilities){ .can_get_line_numbers = 1, .can_get_source_file_name = 1 });
	(*ti)->SetEventCallbacks(ti, &(jvmtiEventCallbacks){ .VMInit = on_start, .ClassPrepare = on_class, .ClassLoad = on_class }, sizeof(jvmtiEventCallbacks));
	(*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_LOAD, NULL);
	(*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE, NULL);
	return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
}
"""

WEB = r"""
import com.sun.net.httpserver.*;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;
import java.util.stream.*;

public class Web {
    record Order(int id, String name, double total) {
        String html() {
            return String.format("<li>%s <b>%.2f</b></li>", name.replace("&", "&amp;"), total);
        }
    }

    interface View { String show(List<Order> orders); }

    static final Pattern PART = Pattern.compile("(\\w+)=([^&]*)&?");
    final List<Order> orders = IntStream.range(0, 500).mapToObj(i -> new Order(i, "name " + i % 37, i * 1.5)).collect(Collectors.toList());
    final Map<String, View> views = Map.of("html", this::page, "json", Web::json);
    final ConcurrentHashMap<String, Integer> seen = new ConcurrentHashMap<>();

    String page(List<Order> some) {
        return some.stream().sorted(Comparator.comparingDouble(Order::total).reversed()).map(Order::html).collect(Collectors.joining("\n"));
    }

    static String json(List<Order> some) {
        StringBuilder out = new StringBuilder("[");
        for (Order o : some)
            out.append("{\"name\":\"").append(o.name()).append("\",\"total\":").append(o.total()).append("},");
        return out.append("]").toString();
    }

    synchronized List<Order> select(int after) {
        Map<String, List<Order>> groups = orders.stream().filter(o -> o.id() > after).collect(Collectors.groupingBy(Order::name, TreeMap::new, Collectors.toList()));
        List<Order> found = new ArrayList<>();
        groups.forEach((name, list) -> found.add(new Order(0, name, list.stream().mapToDouble(Order::total).sum())));
        return found;
    }

    void serve(HttpExchange exchange) throws IOException {
        Map<String, String> query = new HashMap<>();
        for (Matcher m = PART.matcher(exchange.getRequestURI().getQuery()); m.find();)
            query.put(m.group(1), m.group(2));
        byte[] body;
        try {
            seen.merge(query.get("as"), 1, Integer::sum);
            body = views.get(query.get("as")).show(select(Integer.parseInt(query.get("after")))).getBytes(StandardCharsets.UTF_8);
        } catch (NumberFormatException e) {
            body = e.toString().getBytes(StandardCharsets.UTF_8);
        }
        exchange.sendResponseHeaders(200, body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    static void ask(HttpClient client, int port) {
        for (int n = 0;; n++) {
            String after = n % 50 == 0 ? "none" : String.valueOf(n % 400);
            URI uri = URI.create("http://127.0.0.1:" + port + "/orders?as=" + (n % 2 == 0 ? "html" : "json") + "&after=" + after);
            client.sendAsync(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).thenApply(HttpResponse::body).thenApply(String::length).join();
        }
    }

    public static void main(String[] args) throws Exception {
        Web web = new Web();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/orders", web::serve);
        server.setExecutor(Executors.newFixedThreadPool(3));
        server.start();
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < 2; i++)
            new Thread(() -> ask(client, server.getAddress().getPort()), "client " + i).start();
        System.out.println("ready");
        System.out.flush();
    }
}
"""

BATCH = r"""
import java.io.*;
import java.lang.reflect.*;
import java.math.*;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.time.*;
import java.time.format.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;
import java.util.stream.*;
import java.util.zip.*;

public class Batch {
    static abstract class Step {
        abstract Object run(String text) throws Exception;
    }

    static class Words extends Step {
        Object run(String text) {
            return Arrays.stream(text.split("\\W+")).collect(Collectors.groupingBy(Function.identity(), Collectors.counting()))
                .entrySet().stream().sorted(Map.Entry.<String, Long>comparingByValue().reversed().thenComparing(Map.Entry.comparingByKey()))
                .limit(20).map(Object::toString).collect(Collectors.joining(","));
        }
    }

    static class Packs extends Step {
        Object run(String text) throws Exception {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try (GZIPOutputStream zip = new GZIPOutputStream(out)) {
                zip.write(text.getBytes(StandardCharsets.UTF_8));
            }
            try (BufferedReader in = new BufferedReader(new InputStreamReader(new GZIPInputStream(new ByteArrayInputStream(out.toByteArray()))))) {
                return in.lines().mapToInt(String::length).sum();
            }
        }
    }

    static class Digests extends Step {
        Object run(String text) throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (String line : text.split("\n"))
                digest.update(line.getBytes(StandardCharsets.UTF_8));
            return new BigInteger(1, digest.digest()).remainder(BigInteger.valueOf(97)).pow(30);
        }
    }

    static class Objects extends Step implements Serializable {
        Map<String, Object> held = new TreeMap<>();

        Object run(String text) throws Exception {
            held.put("when", LocalDate.parse("2026-01-31", DateTimeFormatter.ISO_DATE).plusDays(text.length() % 300));
            held.put("root", new BigDecimal(text.length()).sqrt(new MathContext(30)));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try (ObjectOutputStream objects = new ObjectOutputStream(out)) {
                objects.writeObject(held);
            }
            try (ObjectInputStream objects = new ObjectInputStream(new ByteArrayInputStream(out.toByteArray()))) {
                return objects.readObject();
            }
        }
    }

    static class Reflects extends Step {
        Object run(String text) throws Exception {
            Object list = Class.forName("java.util.ArrayList").getDeclaredConstructor().newInstance();
            Method add = List.class.getMethod("add", Object.class);
            Runnable each = (Runnable)Proxy.newProxyInstance(Batch.class.getClassLoader(), new Class<?>[] { Runnable.class }, (proxy, method, args) -> {
                for (int i = 0; i < 50; i++)
                    add.invoke(list, depth(i % 7));
                return null;
            });
            each.run();
            return list;
        }

        static int depth(int n) {
            try {
                if (n == 0)
                    throw new IllegalStateException("at the end");
                return depth(n - 1) + 1;
            } catch (IllegalStateException e) {
                return e.getMessage().length();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String text = IntStream.range(0, 400).mapToObj(i -> "line " + i * 7919 % 1009 + " of a text, with words\n").collect(Collectors.joining());
        List<Step> steps = List.of(new Words(), new Packs(), new Digests(), new Objects(), new Reflects());
        System.out.println("ready");
        System.out.flush();
        while (true)
            steps.parallelStream().map(s -> {
                try {
                    return s.run(text);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }).forEach(o -> o.hashCode());
    }
}
"""

PROGRAMS = {"Web": WEB, "Batch": BATCH}
