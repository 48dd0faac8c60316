"use strict";
/* The page around a heat map: title, series, scale, details of a cell or range, and the state behind the # of the address. */
(function () {
	var HUES = 6, TOP = 50, CHIPS = 40;
	var data = JSON.parse(document.getElementById("data").textContent), root = document.getElementById("heat");
	document.getElementById("data").textContent = "";

	function make(tag, parent, attributes, text) {
		var e = document.createElement(tag);
		Object.keys(attributes || {}).forEach(function (k) { e.setAttribute(k, attributes[k]); });
		if (text !== undefined)
			e.textContent = text;
		parent.appendChild(e);
		return e;
	}
	function number(v) { return v.toLocaleString("en"); }

	var header = make("header", root), h1 = make("h1", header, { id: "title" }, data.title);
	make("span", header, { id: "subtitle" }, data.subtitle);
	var tools = make("span", header, { id: "tools" });
	make("label", tools, { for: "scale" }, "colours by ");
	var scale = make("select", tools, { id: "scale", title: "rank: the part of the cells that have no more (c)" });
	["rank", "linear", "log"].forEach(function (n) { make("option", scale, { value: n }, n); });
	var legend = make("canvas", tools, { id: "legend", width: 120, height: 12 });
	var most = make("span", tools, { id: "most" });
	var unzoom = make("button", tools, { id: "unzoom", title: "Escape" }, "Whole map");
	var save = make("button", tools, { id: "save", title: "save as PNG (s)" }, "PNG");
	var chips = make("nav", root, { id: "series" });
	var middle = make("div", root, { id: "middle" }), plot = make("div", middle, { id: "plot" });
	var panel = make("aside", middle, { id: "panel" });
	var footer = make("footer", root), details = make("span", footer, { id: "details" });
	make("span", footer, { id: "hint" }, "drag: range, z: zoom in, arrows and Enter: a cell, 1-9: isolate, 0: all, c: colours");
	var heat = DescryHeat(plot, { status: function (s) { details.textContent = s; } });
	window.descryHeat = heat;

	/* --- series --- */

	function drawChips() {
		var s = heat.state();
		chips.textContent = "";
		if (data.series.length < 2)
			return;
		data.series.slice(0, CHIPS).forEach(function (e, i) {
			var off = s.without.indexOf(i) >= 0 || (s.only !== null && s.only !== i);
			var chip = make("span", chips, { "class": "chip" + (off ? " off" : "") + (s.only === i ? " only" : "") });
			var b = make("button", chip, { "data-series": i, "aria-pressed": s.only === i, title: "show only this one" + (i < 9 ? " (" + (i + 1) + ")" : "") });
			make("i", b).style.background = heat.seriesColor(Math.min(i, HUES));
			make("b", b, {}, e.name);
			make("small", b, {}, number(e.count));
			make("button", chip, { "class": "without", "data-without": i, title: "leave out" }, s.without.indexOf(i) >= 0 ? "+" : "\u00d7");
		});
		if (data.series.length > CHIPS)
			make("span", chips, { "class": "more" }, number(data.series.length - CHIPS) + " more");
	}

	function isolate(i) { heat.isolate(heat.state().only === i ? null : i); }
	function exclude(i) { heat.exclude(i, !heat.excluded(i)); }

	chips.addEventListener("click", function (e) {
		var b = e.target.closest("button");
		if (b && b.dataset.without)
			exclude(+b.dataset.without);
		else if (b)
			isolate(+b.dataset.series);
	});

	/* --- details of a cell or a range --- */

	function drawPanel(d, what) {
		var table, top;
		panel.textContent = "";
		panel.classList.toggle("open", !!d);
		if (!d)
			return;
		make("button", panel, { id: "close", title: "close" }, "\u00d7");
		make("h2", panel, {}, what);
		make("p", panel, {}, d.text);
		make("p", panel, { id: "count" }, number(d.count) + (d.count === 1 ? " event" : " events"));
		table = make("table", panel);
		d.parties.slice(0, TOP).forEach(function (p) {
			var tr = make("tr", table, { "data-series": p.index, title: "click: show only " + p.series }), td = make("td", tr, { "class": "n" }, number(p.count));
			td = make("td", tr);
			make("i", td).style.background = heat.seriesColor(Math.min(p.index, HUES));
			make("span", td, {}, p.name);
			make("td", tr, { "class": "n" }, (100 * p.count / d.count).toFixed(1) + "%");
		});
		top = d.parties.length - TOP;
		if (top > 0)
			make("p", panel, {}, "and " + number(top) + " more");
	}

	plot.addEventListener("heatcell", function (e) { drawPanel(e.detail, "Cell"); heat.redraw(); });
	plot.addEventListener("heatrange", function (e) { drawPanel(e.detail, "Range"); heat.redraw(); });
	panel.addEventListener("click", function (e) {
		var tr = e.target.closest("tr");
		if (e.target.id === "close")
			drawPanel(null);
		else if (tr)
			isolate(+tr.dataset.series);
	});

	/* --- tools --- */

	function drawLegend() {
		var ctx = legend.getContext("2d"), s = heat.state(), i, series = s.only !== null ? s.only : 0;
		for (i = 0; i < legend.width; i++) {
			ctx.fillStyle = heat.seriesColor(Math.min(series, HUES), 1 + Math.floor(i * 254 / (legend.width - 1)));
			ctx.fillRect(i, 0, 1, legend.height);
		}
		scale.value = s.scale;
		most.textContent = s.max ? "1 to " + number(s.max) : "";
		unzoom.disabled = !s.view;
	}

	function remember() {
		var s = heat.state(), h = [];
		if (s.scale !== "rank")
			h.push("c=" + s.scale);
		if (s.only !== null)
			h.push("i=" + s.only);
		if (s.without.length)
			h.push("x=" + s.without.join(","));
		if (s.view)
			h.push("z=" + [s.view.from, s.view.to, s.view.bottom, s.view.top].join(","));
		try {
			history.replaceState(null, "", "#" + h.join("&"));
		} catch (e) { /* a document without an address */ }
	}

	function recall() {
		location.hash.slice(1).split("&").forEach(function (kv) {
			var k = kv.slice(0, 2), v = kv.slice(2), z = v.split(",").map(Number);
			if (k === "c=" && ["rank", "linear", "log"].indexOf(v) >= 0)
				heat.setScale(v);
			else if (k === "i=" && data.series[+v])
				heat.isolate(+v);
			else if (k === "x=")
				z.forEach(function (i) { if (data.series[i]) heat.exclude(i, true); });
			else if (k === "z=" && z.length === 4 && z.every(Number.isInteger))
				heat.zoom({ from: z[0], to: z[1], bottom: z[2], top: z[3] });
		});
	}

	function drawAll() {
		drawChips();
		drawLegend();
		heat.redraw();
	}

	function png() {
		heat.canvas.toBlob(function (blob) {
			var a = document.createElement("a");
			a.href = URL.createObjectURL(blob);
			a.download = "heatmap.png";
			a.click();
			setTimeout(function () { URL.revokeObjectURL(a.href); }, 1000);
		});
	}

	plot.addEventListener("heatview", function () { drawAll(); remember(); });
	scale.addEventListener("change", function () { heat.setScale(scale.value); });
	unzoom.addEventListener("click", function () { heat.zoom(null); });
	save.addEventListener("click", png);
	window.addEventListener("keydown", function (e) {
		var names = ["rank", "linear", "log"], i = "123456789".indexOf(e.key), c = heat.state().cursor;
		if (e.ctrlKey || e.metaKey || e.altKey || e.target === scale || e.defaultPrevented)
			return;
		if (i >= 0 && data.series[i] && data.series.length > 1)
			isolate(i);
		else if (e.key === "0")
			heat.isolate(null);
		else if (e.key === "c")
			heat.setScale(names[(names.indexOf(heat.state().scale) + 1) % 3]);
		else if (e.key === "s")
			png();
		else if ((e.key === "i" || e.key === "x") && c) {
			var d = heat.describe({ from: c.column, to: c.column, bottom: c.row, top: c.row });
			if (d.parties.length)
				(e.key === "i" ? isolate : exclude)(d.parties[0].index);
		} else if (e.key === "Escape")
			drawPanel(null);
		else if (e.target !== heat.canvas && (e.key.slice(0, 5) === "Arrow" || e.key === "Enter") && e.target.tagName !== "BUTTON") {
			heat.canvas.focus();
			heat.canvas.dispatchEvent(new KeyboardEvent("keydown", { key: e.key, shiftKey: e.shiftKey }));
		}
	});

	document.title = data.title;
	if (data.lost)
		make("span", header, { id: "lost" }, number(data.lost) + " lost by the tracer");
	if (!h1.textContent)
		h1.textContent = "Heat map";
	heat.setMatrix(data);
	recall();
	drawAll();
	document.body.dataset.ms = heat.state().ms.toFixed(1);
	document.body.dataset.cells = heat.state().cells;
	heat.canvas.focus();
})();
