"use strict";
(function () {
	var pristine = "<!DOCTYPE html>\n" + document.documentElement.outerHTML;
	var byId = function (id) { return document.getElementById(id); };
	/* What the server told: texts by number, aggregations, ticks by their number from `first` on. */
	var S = { frames: [], stacks: [], aggs: {}, order: [], ticks: [], first: 0, ms: 1000, history: 600, program: "", host: "", allowD: false, drops: [] };
	/* What is looked at. to: the last tick shown, -1 the newest; sel: ticks from..to, and values lo..hi where not null. */
	var V = { paused: false, frozen: -1, sel: null, filters: [], zoom: [], term: null, heat: -1, flame: -1, decompose: -1, scale: "rank" };
	var DIST = { quantize: 1, lquantize: 1, llquantize: 1 }, ADDS = { count: 1, sum: 1 };
	var ROW = 17, ROWS = 200, source = null, dirty = true, heat = null, flame = null, stats = { ticks: 0 }, hues = new Map();
	/* Objects whose keys are names of traced programs: "constructor" and "__proto__" are names like others. */
	function byName() { return Object.create(null); }
	var map = DescryHeat(byId("heat"), { time: tickTime, empty: nothing, status: function (text) { byId("cell").textContent = text[0] === "," ? "" : text; } });

	/* --- what comes in --- */

	function put(list, news) {
		if (news)
			for (var i = 0; i < news[1].length; i++)
				list[news[0] + i] = news[1][i];
	}

	function aggOf(a) {
		var g = S.aggs[a.id], fresh = false;
		if (!g) {
			g = S.aggs[a.id] = { id: a.id, name: a.name, func: a.func, unit: a.unit || "", stacks: a.stacks, rows: [], buckets: [], bounds: {}, normal: 1, dropped: 0 };
			S.order.push(g);
			S.order.sort(function (x, y) { return x.id - y.id; });
			fresh = true;
		}
		fresh = fresh || !g.rows.length;
		put(g.rows, a.rows);
		put(g.buckets, a.buckets);
		if (a.buckets)
			a.buckets[1].forEach(function (b) { g.bounds[b[0]] = b; });
		g.normal = a.normal || g.normal;
		g.dropped = a.dropped || 0;
		if (fresh)
			choices();
		return g;
	}

	function take(m) {
		if (m.type === "hello") {
			S.frames = []; S.stacks = []; S.aggs = {}; S.order = []; S.ticks = []; S.first = 0;
			S.told = true; S.running = m.running; S.status = m.status; S.drops = [];
			S.ms = m.ms; S.history = m.history; S.program = m.program; S.host = m.host; S.allowD = m.allowD;
			V.sel = null; V.frozen = -1; V.heat = V.flame = -1;
			byId("program").textContent = m.program.replace(/\s+/g, " ");
			byId("program").title = m.program;
			byId("dbox").hidden = !m.allowD;
			byId("heapbox").hidden = !m.allowHeap;
			if (!byId("d").value)
				byId("d").value = m.program;
			byId("events").textContent = "";
			document.title = "descry: " + m.host;
			choices();
		}
		S.drops = m.drops || S.drops;
		put(S.frames, m.frames);
		put(S.stacks, m.stacks);
		var d = {};
		(m.aggs || []).forEach(function (a) {
			aggOf(a);
			if (a.d)
				d[a.id] = a.d;
		});
		if (m.type === "tick") {
			if (!S.ticks.length || m.tick !== S.first + S.ticks.length) {
				S.ticks = []; /* the first, or some were missed */
				S.first = m.tick;
			}
			S.ticks.push({ tick: m.tick, time: m.time, d: d, lines: m.lines || [], dropped: m.linesDropped || 0 });
			while (S.ticks.length > S.history) {
				S.ticks.shift();
				S.first++;
			}
			S.running = m.running; S.status = m.status; S.stacksDropped = m.stacksDropped || 0;
			stats.ticks++;
		}
		if (!V.paused || m.type === "hello")
			dirty = true;
		state();
	}

	function state(lost) {
		var e = byId("state");
		e.className = lost ? "lost" : S.running ? "live" : "over";
		e.textContent = lost ? "not connected" : V.paused ? "paused" : S.running ? "live" : !S.told ? "connecting" : S.program ? "ended, status " + S.status : "no program";
		byId("pause").textContent = V.paused ? "Go on" : "Pause";
	}

	/* Why nothing is there to be seen. */
	function nothing() {
		if (!S.told)
			return "Waiting for the server.";
		if (!S.running && !S.program)
			return "No program runs: write one below.";
		if (!S.ticks.length)
			return "Waiting for the first " + (S.ms === 1000 ? "second." : S.ms % 1000 ? S.ms + " ms." : S.ms / 1000 + " seconds.");
		if (V.filters.length || V.sel || V.frozen >= 0)
			return "Nothing was counted in this range.";
		return S.running ? "Nothing was counted so far." : "The program counted nothing.";
	}

	/* --- what is chosen --- */

	function dists() { return S.order.filter(function (g) { return DIST[g.func]; }); }
	function stacked() { return S.order.filter(function (g) { return g.stacks && (DIST[g.func] || ADDS[g.func]); }); }
	function label(g) { return "@" + g.name + " " + g.func + "()"; }

	function fill(select, list, value) {
		select.textContent = "";
		list.forEach(function (x) {
			var o = document.createElement("option");
			o.value = x[0];
			o.textContent = x[1];
			select.appendChild(o);
		});
		select.value = value;
		select.hidden = list.length < 2;
	}

	function choices() {
		var d = dists(), s = stacked(), keys = [[-1, "nothing"]], g;
		if (!S.aggs[V.heat])
			V.heat = d.length ? d[0].id : -1;
		if (!S.aggs[V.flame])
			V.flame = s.length ? s[0].id : -1;
		fill(byId("heatagg"), d.map(function (g) { return [g.id, label(g)]; }), V.heat);
		fill(byId("flameagg"), s.map(function (g) { return [g.id, label(g)]; }), V.flame);
		g = S.aggs[V.heat];
		for (var i = 0; g && g.rows[0] && i < g.rows[0].k.length; i++)
			keys.push([i, "key " + (i + 1)]);
		if (V.decompose >= keys.length - 1)
			V.decompose = -1;
		fill(byId("decompose"), keys, V.decompose);
		byId("decomposelabel").hidden = keys.length < 2;
		byId("heattitle").textContent = V.heat < 0 ? "Time" : "Heat map " + label(S.aggs[V.heat]);
	}

	function last() { return V.frozen >= 0 ? Math.min(V.frozen, S.first + S.ticks.length - 1) : S.first + S.ticks.length - 1; }

	/* The ticks that count: those selected, otherwise all up to the last one shown. */
	function ticks() {
		var from = V.sel ? V.sel.from : S.first, to = V.sel ? V.sel.to : last();
		return S.ticks.slice(Math.max(0, from - S.first), Math.max(0, to - S.first + 1));
	}

	/* Which rows of an aggregation pass the filters; null: all. An aggregation without such a key is not filtered. */
	function passing(g) {
		var ok = null;
		V.filters.forEach(function (f) {
			if (!g.rows.some(function (r) { return r.k.indexOf(f.text) >= 0; }))
				return;
			ok = ok || new Uint8Array(g.rows.length).fill(1);
			g.rows.forEach(function (r, i) {
				if ((r.k.indexOf(f.text) >= 0) === f.without)
					ok[i] = 0;
			});
		});
		return ok;
	}

	function filter(text, without) {
		V.filters = V.filters.filter(function (f) { return f.text !== text; });
		V.filters.push({ text: text, without: without });
		filtersChanged();
	}

	function filtersChanged() {
		var box = byId("filters");
		box.textContent = "";
		V.filters.forEach(function (f) {
			var b = document.createElement("button");
			b.className = "chip" + (f.without ? " without" : "");
			b.textContent = f.text + " \u00d7";
			b.title = (f.without ? "without " : "only ") + f.text + "; click to undo";
			b.onclick = function () {
				V.filters.splice(V.filters.indexOf(f), 1);
				filtersChanged();
			};
			box.appendChild(b);
		});
		dirty = true;
	}

	/* Calls fn(row, bucket or -1, count) for what was counted in the ticks. */
	function each(g, list, fn) {
		var ok = passing(g), dist = DIST[g.func];
		list.forEach(function (t) {
			var d = t.d[g.id], i;
			for (i = 0; d && i < d.length; i += dist ? 3 : 2)
				if (!ok || ok[d[i]])
					fn(d[i], dist ? d[i + 1] : -1, d[i + (dist ? 2 : 1)], t);
		});
	}

	/* --- numbers and canvases --- */

	function number(n) {
		return Math.abs(n) >= 1e15 ? n.toExponential(3) : Math.round(n).toLocaleString("en");
	}

	/* Steps from a unit to the next larger one. */
	var PLAIN = [["", 1e4], ["K", 1000], ["M", 1000], ["G", 1000], ["T", 1000], ["P", 1000]];
	var TIMES = [["ns", 1000], ["us", 1000], ["ms", 1000], ["s", 60], ["min", 60], ["h", 24], ["d", Infinity]];

	function scaled(n, units, i) {
		for (; i < units.length - 1 && Math.abs(n) >= units[i][1]; i++)
			n /= i ? units[i][1] : 1000;
		return { n: n, unit: units[i][0], whole: !i };
	}

	function short(n) {
		var s = scaled(n, PLAIN, 0);
		return (s.whole ? s.n : +s.n.toFixed(1)) + s.unit;
	}

	/* A value of an aggregation: times in the unit that a person would say, other numbers whole. */
	function value(g, n) {
		var i = TIMES.findIndex(function (u) { return u[0] === g.unit; }), s = i < 0 ? null : scaled(n, TIMES, i);
		return s ? +s.n.toPrecision(4) + " " + s.unit : number(n);
	}

	function bound(g, lo, hi) {
		var text = function (n) { return g.unit ? value(g, n) : short(n); };
		if (lo === null)
			return "\u2264 " + text(hi);
		return hi === null ? "\u2265 " + text(lo) : lo === hi ? text(lo) : text(lo) + " to " + text(hi);
	}

	function clock(ms) { return new Date(ms).toTimeString().slice(0, 8); }

	function canvas(c, w, h) {
		var ratio = window.devicePixelRatio || 1, ctx = c.getContext("2d");
		if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
			c.width = Math.round(w * ratio);
			c.height = Math.round(h * ratio);
		}
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.clearRect(0, 0, w, h);
		ctx.font = "12px system-ui, 'DejaVu Sans', sans-serif";
		return ctx;
	}

	/* --- the heat map, or the bare course of time where there is no distribution --- */

	function tickTime(n) {
		var t = S.ticks[n - S.first], end = S.ticks[S.ticks.length - 1];
		return t ? clock(t.time) : end && n === end.tick + 1 ? clock(end.time + S.ms) : "";
	}

	/* The bounds of a bucket that nothing was in yet, from those around it. */
	function between(g, before, next, left) {
		var lo = before[2] + 1;
		return g.func === "quantize" && before[1] > 0 ? [0, lo, 2 * lo - 1] : [0, lo, lo + Math.floor((next[1] - lo) / left) - 1];
	}

	/* The last columns that there is room for; cells: what is in them, by column * 1000 + row. */
	function makeHeat(w) {
		var fit = Math.max(10, Math.floor((w - 94) / 7)), end = last(), from = Math.max(S.first, end - fit + 1);
		var g = S.aggs[V.heat], rows = [], at = {}, m = { from: from, n: Math.min(fit, end - from + 1), fit: fit, base: 0 };
		var list = S.ticks.slice(from - S.first, end - S.first + 1), series = byName(), b, next;
		if (g) {
			var seen = g.buckets.map(function (b) { return b[0]; }).sort(function (a, b) { return a - b; });
			m.base = seen[0];
			for (b = seen[0], next = 0; seen.length && b <= seen[seen.length - 1] && rows.length < 400; b++) {
				if (seen[next] === b)
					next++;
				at[b] = rows.length;
				rows.push(g.bounds[b] ? g.bounds[b].slice() : between(g, rows[rows.length - 1], g.bounds[seen[next]], seen[next] - b));
				rows[rows.length - 1][0] = b;
			}
		} else {
			rows.push([0, null, null]);
			at[-1] = 0;
		}
		m.rows = rows;
		m.cells = new Map();
		function count(col, row, n, who) {
			var key = col * 1000 + row, c = m.cells.get(key);
			if (!c)
				m.cells.set(key, c = { col: col, row: row, n: 0, who: byName() });
			c.n += n;
			c.who[who] = (c.who[who] || 0) + n;
		}
		if (g) {
			each(g, list, function (row, bucket, n, t) {
				var k = g.rows[row].k, who = V.decompose >= 0 ? k[V.decompose] : k.join(", ");
				if (at[bucket] !== undefined)
					count(t.tick - from, at[bucket], n, who);
			});
		} else {
			S.order.forEach(function (a) {
				if (ADDS[a.func])
					each(a, list, function (row, bucket, n, t) { count(t.tick - from, 0, Math.max(0, n), "@" + a.name); });
			});
			list.forEach(function (t) {
				if (t.lines.length)
					count(t.tick - from, 0, t.lines.length, "lines");
			});
		}
		m.cells.forEach(function (c) {
			for (var who in c.who)
				series[who] = (series[who] || 0) + c.who[who];
		});
		m.series = series;
		m.order = Object.keys(series).sort(function (a, b) { return series[b] - series[a] || (a < b ? -1 : 1); });
		m.g = g;
		return m;
	}

	/* The document that heat.js draws. Decomposed, each key is a series, otherwise a party of the one series. */
	function matrix(m) {
		var parties = new Map(), columns = [], split = V.decompose >= 0, doc = {
			title: "", subtitle: "", mode: "", scale: V.scale, time: { first: m.from, step: 1, columns: m.fit },
			value: { unit: m.g ? m.g.unit : "", rows: m.rows.map(function (r) { return [r[1], r[2]]; }) }, series: [], parties: [], columns: columns
		};
		/* a colour once given stays, whoever is the largest later */
		m.order.forEach(function (who) {
			if (split && !hues.has(who))
				hues.set(who, hues.size);
			parties.set(who, doc.parties.length);
			doc.parties.push(split ? [hues.get(who), null] : [0, who || null]);
		});
		doc.series = split ? Array.from(hues.keys()).map(function (who) { return { name: who || "\u2014", count: m.series[who] || 0 }; }) : [{ name: "all", count: 0 }];
		Array.from(m.cells.values()).sort(function (a, b) { return a.row - b.row; }).forEach(function (c) {
			var col = columns[c.col] || (columns[c.col] = { column: c.col, cells: [] });
			for (var who in c.who)
				if (c.who[who])
					col.cells.push(c.row, parties.get(who), c.who[who]);
		});
		doc.columns = columns.filter(Boolean);
		return doc;
	}

	function drawHeat() {
		var e = byId("heat"), t0 = performance.now(), was = heat, m, s = V.sel;
		if (e.clientWidth < 20 || e.clientHeight < 20)
			return;
		m = heat = makeHeat(e.clientWidth);
		if (s && s.lo !== null && was && was.g === m.g) { /* a lower bucket has come in */
			s.lo += was.base - m.base;
			s.hi += was.base - m.base;
		}
		map.update(matrix(m), s && {
			from: s.from - m.from, to: s.to - m.from, bottom: s.lo === null ? 0 : s.lo, top: s.lo === null ? m.rows.length - 1 : s.hi
		});
		map.redraw();
		legend(m);
		stats.heat = performance.now() - t0;
	}

	function legend(m) {
		var box = byId("legend");
		box.textContent = "";
		if (V.decompose < 0)
			return;
		m.order.slice(0, 8).forEach(function (s) {
			var span = document.createElement("span"), mark = document.createElement("i");
			mark.style.background = map.seriesColor(hues.get(s));
			span.appendChild(mark);
			keyButtons(span, s);
			box.appendChild(span);
		});
		if (m.order.length > 8)
			box.appendChild(document.createTextNode("and " + (m.order.length - 8) + " more"));
	}

	/* A key's text that isolates it, and a cross that excludes it. */
	function keyButtons(to, text) {
		var only = document.createElement("button"), not = document.createElement("button");
		only.className = "key";
		only.textContent = text === "" ? "\u2014" : text;
		only.title = "only " + text;
		only.onclick = function () { filter(text, false); };
		not.className = "not";
		not.textContent = "\u00d7";
		not.title = "without " + text;
		not.setAttribute("aria-label", "without " + text);
		not.onclick = function () { filter(text, true); };
		to.appendChild(only);
		to.appendChild(not);
	}

	/* Columns and rows as heat.js tells them; all rows are no range of values. */
	function select(r) {
		var all = !heat.g || (r.rows.from === 0 && r.rows.to === heat.rows.length - 1), newest = last();
		V.sel = heat.from + r.columns.from > newest ? null : { /* what is yet to come has nothing in it */
			from: Math.min(heat.from + r.columns.from, newest), to: Math.min(heat.from + r.columns.to, newest),
			lo: all ? null : r.rows.from, hi: all ? null : r.rows.to
		};
		dirty = true;
	}

	/* --- the flame graph --- */

	function makeFlame() {
		var g = S.aggs[V.flame], heatAgg = S.aggs[V.heat], weights = new Map(), root = { name: "all", total: 0, self: 0, kids: new Map(), depth: 0 }, deepest = 0, frames = 1;
		var lo = null, hi = null;
		if (V.sel && V.sel.lo !== null && heatAgg && heatAgg.stacks) { /* the cells selected are made of stacks themselves */
			g = heatAgg;
			lo = heat.rows[V.sel.lo][0];
			hi = heat.rows[V.sel.hi][0];
		}
		if (g)
			each(g, ticks(), function (row, bucket, n) {
				if (lo === null || (bucket >= lo && bucket <= hi))
					weights.set(row, (weights.get(row) || 0) + n);
			});
		weights.forEach(function (n, row) {
			var r = g.rows[row], node = root, path = r.k.slice();
			if (n <= 0)
				return;
			if (r.s !== undefined)
				S.stacks[r.s].forEach(function (id) { path.push(S.frames[id]); });
			root.total += n;
			path.forEach(function (frame) { /* "name", or ["name", "kind"] */
				var key = String(frame), kid = node.kids.get(key), native = typeof frame === "string";
				if (!kid) {
					node.kids.set(key, kid = { key: key, name: native ? frame : frame[0], kind: native ? "native" : frame[1], total: 0, self: 0, kids: new Map(), parent: node, depth: node.depth + 1 });
					frames++;
				}
				kid.total += n;
				node = kid;
			});
			node.self += n;
			deepest = Math.max(deepest, node.depth);
		});
		return { root: root, deepest: deepest, frames: frames, g: g };
	}

	function hash(s) {
		for (var h = 2166136261, i = 0; i < s.length; i++)
			h = Math.imul(h ^ s.charCodeAt(i), 16777619);
		return (h >>> 0) / 4294967296;
	}

	var colors = byName(), kinds = { kernel: [238, 165, 60], inlined: [150, 210, 238], jit: [120, 190, 120], end: [205, 205, 205] };
	function color(n) {
		var base, h;
		if (colors[n.key])
			return colors[n.key];
		h = hash(n.name);
		base = kinds[n.kind] || (/^\[/.test(n.name) ? [205, 205, 205] : /::/.test(n.name) ? [240, 226, 96] : [224, 138, 92]);
		return (colors[n.key] = "rgb(" + base.map(function (x) { return Math.round(x + (h - 0.5) * 34); }).join(",") + ")");
	}

	function drawFlame(keep) {
		var box = byId("flamescroll"), c = byId("flame"), w = box.clientWidth, rows, h, ctx, t0 = performance.now(), f, zoomed, z0 = 0, drawn = 0, culled = 0, sum = 0;
		var atBottom = box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
		if (!keep || !flame)
			flame = makeFlame();
		f = flame;
		rows = f.deepest + 1;
		h = Math.max(box.clientHeight - 1, rows * ROW);
		c.style.width = w + "px";
		c.style.height = h + "px";
		ctx = canvas(c, w, h);
		ctx.textBaseline = "middle";
		zoomed = f.root;
		V.zoom.forEach(function (key) { zoomed = zoomed.kids.get(key) || zoomed; });
		f.zoomed = zoomed;
		f.boxes = [];
		function box1(n, x, bw) {
			var y = h - (n.depth + 1) * ROW, hit = V.term && n.parent && V.term.test(n.name), s, room;
			if (bw < 0.5) {
				culled++;
				return;
			}
			drawn++;
			ctx.globalAlpha = n.depth < zoomed.depth ? 0.5 : 1;
			ctx.fillStyle = hit ? "#e600e6" : n.parent ? color(n) : "#e4e4e4";
			ctx.fillRect(x, y, bw > 2 ? bw - 0.5 : bw, ROW - 1);
			room = Math.floor((bw - 6) / 6.8);
			if (room >= 3) {
				s = n.name;
				if (s.length > room && s.indexOf("`") > 0)
					s = s.slice(s.indexOf("`") + 1); /* the function alone */
				ctx.fillStyle = "#000";
				ctx.fillText(s.length > room ? Array.from(s.slice(0, room)).slice(0, room - 2).join("") + ".." : s, x + 3, y + ROW / 2);
			}
			f.boxes.push({ x: x, y: y, w: bw, n: n });
		}
		for (var up = zoomed.parent; up; up = up.parent)
			box1(up, 4, w - 8);
		var todo = f.root.total ? [[zoomed, 4, w - 8]] : [], item, scale = zoomed.total ? (w - 8) / zoomed.total : 0;
		while ((item = todo.pop())) {
			var x = item[1];
			if (item[2] < 0.5) {
				culled++;
				continue;
			}
			box1(item[0], x, item[2]);
			Array.from(item[0].kids.values()).sort(function (a, b) { return a.name < b.name ? -1 : 1; }).forEach(function (k) {
				todo.push([k, x, k.total * scale]);
				x += k.total * scale;
			});
		}
		ctx.globalAlpha = 1;
		if (!f.root.total) {
			ctx.fillStyle = "#777";
			ctx.fillText(stacked().length || !S.order.length ? nothing() :
				"No aggregation has stack() or ustack() among its keys" + (S.running ? " so far." : "."), 12, h / 2);
		}
		(function match(n) {
			if (V.term && n.parent && V.term.test(n.name))
				sum += n.total;
			else
				n.kids.forEach(match);
		})(f.root);
		byId("matched").textContent = V.term ? "Matched: " + (f.root.total ? 100 * sum / f.root.total : 0).toFixed(1) + "%" : "";
		byId("unzoom").disabled = !V.zoom.length;
		if (atBottom || !keep)
			box.scrollTop = box.scrollHeight;
		stats.flame = performance.now() - t0;
		stats.drawn = drawn;
		stats.culled = culled;
	}

	function frameAt(e) {
		var found = null;
		(flame ? flame.boxes : []).forEach(function (b) {
			if (e.offsetX >= b.x && e.offsetX < b.x + b.w && e.offsetY >= b.y && e.offsetY < b.y + ROW)
				found = b.n;
		});
		return found;
	}

	function frameDetails(n) {
		var g = flame && flame.g, text = g && n ? g.func === "sum" ? value(g, n.total) : number(n.total) + " counts" : "";
		byId("frame").textContent = n ? n.name + " (" + text + ", " + (100 * n.total / flame.root.total).toFixed(2) + "%)" : "";
	}

	function zoomTo(n) {
		V.zoom = [];
		for (; n && n.parent; n = n.parent)
			V.zoom.unshift(n.key);
		drawFlame(true);
	}

	/* --- the table and the events --- */

	/* What an aggregation counted in these ticks, the largest first. Stacks are the flame graph's: rows of equal keys become one. */
	function tableRows(g, list) {
		var sums = new Map(), merged = new Map(), adds = DIST[g.func] || ADDS[g.func];
		each(g, list, function (row, bucket, n) { sums.set(row, adds ? (sums.get(row) || 0) + n : n); });
		sums.forEach(function (n, row) {
			var k = g.rows[row].k, key = k.join("\0"), m = merged.get(key);
			if (g.rows[row].s !== undefined && !k.length && S.order.length > 1)
				return;
			if (ADDS[g.func])
				n /= g.normal;
			if (m && adds)
				m.n += n;
			else
				merged.set(key, { k: k, n: n });
		});
		return Array.from(merged.values()).sort(function (a, b) { return b.n - a.n; });
	}

	function makeTable(g, rows) {
		var table = document.createElement("table"), caption = table.createCaption(), body = table.createTBody(), top = 0, note = [];
		rows.forEach(function (r) { top = Math.max(top, r.n); });
		if (rows.length > ROWS)
			note.push("the first " + ROWS + " of " + number(rows.length) + " rows");
		if (g.dropped)
			note.push(number(g.dropped) + " rows too many");
		caption.textContent = label(g) + (DIST[g.func] ? ": how many values" : "") + (note.length ? "; " + note.join(", ") : "");
		rows.slice(0, ROWS).forEach(function (r) {
			var tr = body.insertRow(), v = tr.insertCell();
			v.className = "v";
			v.textContent = DIST[g.func] || g.func === "count" ? number(r.n) : value(g, r.n);
			v.style.setProperty("--part", top > 0 ? 100 * r.n / top + "%" : "0%");
			r.k.forEach(function (k) { keyButtons(tr.insertCell(), k); });
		});
		return table;
	}

	function drawTable() {
		var box = byId("table"), list = ticks();
		byId("tablenote").textContent = S.stacksDropped ? number(S.stacksDropped) + " stacks too many" : "";
		box.textContent = "";
		S.order.forEach(function (g) {
			var rows = tableRows(g, list);
			if (rows.length)
				box.appendChild(makeTable(g, rows));
		});
		if (!box.firstChild)
			box.textContent = nothing();
	}

	/* What was lost, each kind once: all of the run, and the option that helps. */
	function drawDrops() {
		var box = byId("drops");
		box.textContent = "";
		S.drops.forEach(function (d) {
			var line = box.appendChild(document.createElement("div"));
			line.textContent = number(d[0]) + " " + d[1] + (d[2] ? ": " + d[2] : "");
		});
	}

	function drawEvents() {
		var box = byId("events"), lines = [], dropped = 0, atBottom = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
		ticks().forEach(function (t) {
			lines = lines.concat(t.lines);
			dropped += t.dropped;
		});
		byId("eventnote").textContent = (lines.length > 1000 ? "the last 1,000 of " + number(lines.length) : "") + (dropped ? " " + number(dropped) + " lines too many" : "");
		box.textContent = "";
		lines.slice(-1000).forEach(function (l) {
			var d = document.createElement("div");
			d.textContent = l[1];
			if (l[0])
				d.className = "m";
			box.appendChild(d);
		});
		if (atBottom)
			box.scrollTop = box.scrollHeight;
	}

	function draw() {
		var back = byId("back"), s = V.sel;
		dirty = false;
		drawHeat();
		drawFlame(false);
		drawTable();
		drawEvents();
		drawDrops();
		back.max = Math.max(0, S.ticks.length - 1);
		back.value = back.max - (S.first + S.ticks.length - 1 - last());
		byId("range").textContent = s ? "of " + (s.to - s.from + 1) + " ticks" + (s.lo !== null && heat && heat.g ? ", " +
			bound(heat.g, heat.rows[s.lo][1], heat.rows[s.hi][2]) : "") + (heat && s.lo !== null && heat.g && !heat.g.stacks ? " (the time of this range)" : "") : "";
		document.body.dataset.ticks = S.ticks.length;
		document.body.dataset.total = flame ? flame.root.total : 0;
		document.body.dataset.frames = flame ? flame.frames : 0;
	}

	function frame() {
		if (dirty)
			draw();
		window.requestAnimationFrame(frame);
	}

	/* --- what the user does --- */

	function pause(on) {
		V.paused = on;
		V.frozen = on ? S.first + S.ticks.length - 1 : -1;
		dirty = true;
		state();
	}

	function all() {
		V.sel = null;
		V.zoom = [];
		V.filters = [];
		filtersChanged();
		pause(false);
	}

	/* Everything that is known, in this page: it needs no server. */
	function page() {
		var data = JSON.stringify({ S: S, V: { heat: V.heat, flame: V.flame, decompose: V.decompose, scale: V.scale, filters: V.filters, sel: V.sel } }).replace(/</g, "\\u003c");
		return pristine.replace(/(<script type="application\/json" id="saved">)[^<]*(<\/script>)/, function (x, a, b) { return a + data + b; });
	}

	function save() {
		var a = document.createElement("a");
		a.href = URL.createObjectURL(new Blob([page()], { type: "text/html" }));
		a.download = "descry-" + new Date().toISOString().slice(0, 19).replace(/:/g, "") + ".html";
		a.click();
		setTimeout(function () { URL.revokeObjectURL(a.href); }, 10000);
	}

	function send(text) {
		byId("ran").textContent = "";
		fetch("run", { method: "POST", headers: { "X-Descry": "1" }, body: text }).then(function (r) {
			return r.ok ? "" : r.text();
		}).then(function (t) { byId("ran").textContent = t; }, function (e) { byId("ran").textContent = String(e); });
	}

	/* Asks again until the heap was read. */
	function heapAsk() {
		fetch("heap").then(function (r) {
			if (r.status === 202) {
				setTimeout(heapAsk, 300);
				return;
			}
			return r.text().then(function (t) {
				byId("readheap").disabled = false;
				byId("heapnote").textContent = new Date().toLocaleTimeString();
				byId("heaptext").textContent = t;
			});
		}).catch(heapFailed);
	}
	function heapFailed(e) {
		byId("readheap").disabled = false;
		byId("heapnote").textContent = String(e);
	}
	function heapRead() {
		byId("readheap").disabled = true;
		byId("heapnote").textContent = "is being read";
		fetch("heap", { method: "POST", headers: { "X-Descry": "1" } }).then(function (r) {
			if (r.ok)
				heapAsk();
			else
				r.text().then(heapFailed);
		}, heapFailed);
	}

	byId("readheap").onclick = heapRead;
	byId("pause").onclick = function () { pause(!V.paused); };
	byId("all").onclick = all;
	byId("save").onclick = save;
	byId("run").onclick = function () { send(byId("d").value); };
	byId("stop").onclick = function () { send(""); };
	byId("unzoom").onclick = function () { zoomTo(null); };
	byId("back").oninput = function () {
		V.paused = true;
		V.frozen = S.first + +byId("back").value;
		dirty = true;
		state();
	};
	[["heatagg", "heat"], ["flameagg", "flame"], ["decompose", "decompose"]].forEach(function (p) {
		byId(p[0]).onchange = function () {
			V[p[1]] = +byId(p[0]).value;
			if (p[1] === "heat")
				V.sel = null;
			if (p[1] !== "flame") {
				hues = new Map();
			}
			choices();
			dirty = true;
		};
	});
	byId("scale").onchange = function () { V.scale = byId("scale").value; dirty = true; };
	byId("search").oninput = function () {
		try {
			V.term = byId("search").value ? new RegExp(byId("search").value) : null;
		} catch (e) {
			V.term = null;
		}
		drawFlame(true);
	};
	byId("heat").addEventListener("heatrange", function (e) {
		if (e.detail)
			select(e.detail);
		else
			V.sel = null;
		dirty = true;
	});
	byId("heat").addEventListener("heatcell", function (e) { select(e.detail); });
	byId("flame").addEventListener("click", function (e) { var n = frameAt(e); if (n) zoomTo(n); });
	byId("flame").addEventListener("mousemove", function (e) { frameDetails(frameAt(e)); });
	byId("flame").addEventListener("mouseleave", function () { frameDetails(null); });
	window.addEventListener("resize", function () { dirty = true; });
	window.addEventListener("keydown", function (e) {
		if (/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) {
			if (e.key === "Escape")
				e.target.blur();
			return;
		}
		if (e.key === " " && e.target.tagName !== "BUTTON" && !e.defaultPrevented)
			pause(!V.paused);
		else if (e.key === "/")
			byId("search").focus();
		else if (e.key === "Escape")
			all();
		else
			return;
		e.preventDefault();
	});

	/* For tests, and for the curious. */
	window.descry = {
		S: S, V: V, stats: stats, draw: draw, take: take, pause: pause, filter: filter, all: all, page: page,
		select: function (from, to, lo, hi) { V.sel = { from: from, to: to, lo: lo === undefined ? null : lo, hi: hi === undefined ? null : hi }; draw(); },
		heat: function () { return heat; }, map: map, flame: function () { return flame; }
	};

	var saved = byId("saved").textContent;
	if (saved) {
		saved = JSON.parse(saved);
		Object.assign(S, saved.S);
		Object.assign(V, saved.V);
		S.order = Object.keys(S.aggs).map(function (id) { return S.aggs[id]; });
		S.running = false;
		S.told = true;
		document.title = "descry: " + S.host + " (saved)";
		byId("program").textContent = S.program.replace(/\s+/g, " ");
		byId("scale").value = V.scale;
		choices();
		filtersChanged();
		state();
	} else {
		source = new EventSource("events");
		source.onmessage = function (e) { take(JSON.parse(e.data)); };
		source.onerror = function () { state(true); };
	}
	frame();
})();
