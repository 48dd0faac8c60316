"use strict";
(function () {
	var svg = document.documentElement.tagName === "svg" ? document.documentElement : document.querySelector("svg");
	var total = +svg.dataset.total, pad = +svg.dataset.pad, letter = +svg.dataset.letter;
	var width = svg.viewBox.baseVal.width - 2 * pad;
	var frames = [], zoomed = null, current = null, term = "", ignoreCase = false;
	var byId = function (id) { return document.getElementById(id); };

	Array.prototype.forEach.call(byId("frames").children, function (g, i) {
		var title = g.querySelector("title").textContent;
		g.frame = {
			g: g, i: i, s: +g.dataset.s, n: +g.dataset.n, d: +g.dataset.d, title: title,
			name: title.replace(/ \([^(]*\)$/, ""), rect: g.querySelector("rect"), text: g.querySelector("text")
		};
		frames.push(g.frame);
	});

	function fit(f, w) {
		var room = Math.floor(w / letter), s = Array.from(f.name), tick = s.indexOf("`");
		if (s.length > room && tick > 0 && tick + 1 < s.length)
			s = s.slice(tick + 1); /* the function alone */
		var label = room < 3 ? "" : s.length <= room ? s.join("") : s.slice(0, room - 2).join("") + "..";
		if (!f.text && label) {
			f.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
			f.text.setAttribute("y", +f.rect.getAttribute("y") + 10.5);
			f.g.appendChild(f.text);
		}
		if (f.text)
			f.text.textContent = label;
	}

	function place(f, from, n) {
		var scale = width / n, lo = Math.max(f.s, from), hi = Math.min(f.s + f.n, from + n);
		var x = pad + (lo - from) * scale, w = (hi - lo) * scale;
		f.rect.setAttribute("x", x.toFixed(1));
		f.rect.setAttribute("width", w.toFixed(1));
		fit(f, w);
		if (f.text)
			f.text.setAttribute("x", (x + 3).toFixed(2));
	}

	/* f fills the width; what is below it in the stack stays, pale; what is beside it goes. */
	function zoom(f) {
		zoomed = f && f.d ? f : null;
		f = zoomed || frames[0];
		if (!f)
			return;
		frames.forEach(function (e) {
			var inside = e.d >= f.d && e.s >= f.s && e.s + e.n <= f.s + f.n;
			var under = e.d < f.d && e.s <= f.s && e.s + e.n >= f.s + f.n;
			e.g.classList.toggle("hide", !inside && !under);
			e.g.classList.toggle("above", under);
			if (inside || under)
				place(e, f.s, f.n);
		});
		byId("unzoom").classList.toggle("on", !!zoomed);
		remember();
	}

	/* Of frames that match, the lowest in each stack count, so that nothing counts twice. */
	function search(t) {
		var re = null, sum = 0, end = 0;
		term = t || "";
		try {
			re = term ? new RegExp(term, ignoreCase ? "i" : "") : null;
			byId("matched").textContent = "";
		} catch (e) {
			byId("matched").textContent = "not an expression";
		}
		frames.forEach(function (f) { /* from left to right, parents first */
			var hit = !!re && f.d > 0 && re.test(f.name);
			f.g.classList.toggle("match", hit);
			if (hit && f.s >= end) {
				sum += f.n;
				end = f.s + f.n;
			}
		});
		if (re)
			byId("matched").textContent = "Matched: " + (100 * sum / total).toFixed(1) + "%";
		byId("search").textContent = term ? "Reset search" : "Search";
		byId("search").classList.toggle("on", !!term);
		remember();
	}

	function ask() {
		if (term)
			return search("");
		var t = prompt("Search for a regular expression" + (ignoreCase ? ", ignoring case" : ""), "");
		if (t)
			search(t);
	}

	function setIgnoreCase(on) {
		ignoreCase = on;
		byId("ignorecase").classList.toggle("on", on);
		search(term);
	}

	/* The state stands behind the # of the address: a link shows the same. */
	function remember() {
		var h = [];
		if (zoomed)
			h.push("z=" + zoomed.i);
		if (term)
			h.push("s=" + encodeURIComponent(term));
		if (ignoreCase)
			h.push("i=1");
		try {
			history.replaceState(null, "", "#" + h.join("&"));
		} catch (e) { /* a document without an address */ }
	}

	function recall() {
		var p = Object.create(null);
		location.hash.slice(1).split("&").forEach(function (kv) {
			var at = kv.indexOf("=");
			try {
				p[kv.slice(0, at)] = decodeURIComponent(kv.slice(at + 1));
			} catch (e) { /* no text */ }
		});
		if (p.i)
			setIgnoreCase(true);
		if (p.z && frames[+p.z])
			zoom(frames[+p.z]);
		if (p.s)
			search(p.s);
	}

	function show(f) {
		if (current)
			current.g.classList.remove("current");
		current = f;
		byId("details").textContent = f ? f.title : "";
	}

	function select(f) {
		if (!f)
			return;
		show(f);
		f.g.classList.add("current");
	}

	function visible(f) { return !f.g.classList.contains("hide"); }

	function step(key) {
		var c = current || zoomed || frames[0], up = svg.dataset.inverted === "1" ? "ArrowDown" : "ArrowUp";
		if (!c)
			return;
		var near = frames.filter(function (f) {
			if (!visible(f))
				return false;
			if (key === "ArrowLeft")
				return f.d === c.d && f.s < c.s;
			if (key === "ArrowRight")
				return f.d === c.d && f.s > c.s;
			if (key === up)
				return f.d === c.d + 1 && f.s >= c.s && f.s + f.n <= c.s + c.n;
			return f.d === c.d - 1 && f.s <= c.s && f.s + f.n >= c.s + c.n;
		});
		select(key === "ArrowLeft" ? near[near.length - 1] : near[0]);
	}

	function frameOf(e) {
		var g = e.target.closest ? e.target.closest("#frames > g") : null;
		return g && g.frame;
	}
	svg.addEventListener("click", function (e) {
		var f = frameOf(e), id = e.target.id;
		if (f)
			zoom(f);
		else if (id === "unzoom")
			zoom(null);
		else if (id === "search")
			ask();
		else if (id === "ignorecase")
			setIgnoreCase(!ignoreCase);
	});
	svg.addEventListener("mouseover", function (e) { var f = frameOf(e); if (f) show(f); });
	svg.addEventListener("mouseout", function (e) { if (frameOf(e)) show(null); });
	window.addEventListener("keydown", function (e) {
		var k = e.key;
		if (k === "F3" || k === "/" || (e.ctrlKey && k === "f"))
			ask();
		else if (e.ctrlKey && k === "i")
			setIgnoreCase(!ignoreCase);
		else if (k === "Escape")
			term ? search("") : zoom(null);
		else if (k === "Enter" && current)
			zoom(current);
		else if (k.slice(0, 5) === "Arrow")
			step(k);
		else
			return;
		e.preventDefault();
	});
	recall();
	/* A picture higher than the window opens where the stacks begin. */
	if (svg === document.documentElement && svg.dataset.inverted !== "1")
		window.scrollTo(0, svg.viewBox.baseVal.height);
})();
