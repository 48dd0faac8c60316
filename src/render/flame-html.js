"use strict";
(function () {
	var began = performance.now();
	var byId = function (id) { return document.getElementById(id); };
	var data = JSON.parse(byId("data").textContent), parsed = performance.now();
	byId("data").textContent = "";
	var count = data.depth.length, rowHeight = data.height;
	var depth = new Uint32Array(data.depth), name = new Uint32Array(data.name);
	var self = new Float64Array(data.self), total = new Float64Array(self);
	var before = data.differential ? new Float64Array(data.before) : null;
	var start = new Float64Array(count), end = new Uint32Array(count), parent = new Int32Array(count);
	var names = data.names, colors = data.colors, deepest = 0;
	var zoomed = 0, current = -1, hits = null, term = "";
	var canvas = byId("canvas"), view = byId("view"), ctx = canvas.getContext("2d");
	var pad = 10, letter = 6.9, last = null, css = [], wide = null;
	data.depth = data.name = data.self = data.before = null;

	/* From preorder and depths: the parent, the end of the subtree, totals, and where each frame begins. */
	(function () {
		var open = [], i, d;
		for (i = 0; i < count; i++) {
			d = depth[i];
			deepest = Math.max(deepest, d);
			while (open.length > d)
				end[open.pop()] = i;
			parent[i] = d ? open[d - 1] : -1;
			open.push(i);
		}
		while (open.length)
			end[open.pop()] = count;
		for (i = count - 1; i > 0; i--)
			total[parent[i]] += total[i];
		var next = new Float64Array(deepest + 1);
		for (i = 0; i < count; i++) {
			d = depth[i];
			start[i] = d ? next[d - 1] : 0;
			if (d)
				next[d - 1] += total[i];
			next[d] = start[i] + self[i];
		}
	})();

	/* Texts of colours, made once. */
	function color(i) {
		var k = data.differential ? i : name[i];
		return css[k] || (css[k] = "#" + (0x1000000 + colors[k]).toString(16).slice(1));
	}
	function rowTop(d) { return (data.inverted ? d : deepest - d) * rowHeight; }

	/* The frames wide enough to be seen, by row; a frame too narrow takes its subtree with it. They stay until the zoom or the
	 * width changes, so that scrolling, hovering and searching look at nothing else.
	 */
	function layout(w) {
		if (wide && wide.zoomed === zoomed && wide.w === w)
			return wide;
		var z0 = start[zoomed], z1 = z0 + total[zoomed], scale = z1 > z0 ? (w - 2 * pad) / (z1 - z0) : 0;
		var rows = [], culled = 0, i = 0, a, b;
		while (i < count) {
			a = start[i];
			b = a + total[i];
			if (b <= z0 || a >= z1) {
				i = end[i];
				continue;
			}
			if ((Math.min(b, z1) - Math.max(a, z0)) * scale < 0.5) {
				culled += end[i] - i;
				i = end[i];
				continue;
			}
			(rows[depth[i]] || (rows[depth[i]] = [])).push(i);
			i++;
		}
		wide = { zoomed: zoomed, w: w, z0: z0, z1: z1, scale: scale, rows: rows, culled: culled };
		return wide;
	}

	/* Of the rows in sight, first the boxes, then the names: the colour changes less often. */
	function draw() {
		var t0 = performance.now(), ratio = window.devicePixelRatio || 1;
		var w = view.clientWidth, h = view.clientHeight, top = view.scrollTop;
		if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
			canvas.width = Math.round(w * ratio);
			canvas.height = Math.round(h * ratio);
			canvas.style.width = w + "px";
			canvas.style.height = h + "px";
		}
		var l = layout(w), drawn = 0, d, k, tick, i, x, y, fw, row, room, s, fill, lastFill = "";
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.clearRect(0, 0, w, h);
		ctx.font = "12px Verdana, sans-serif";
		ctx.textBaseline = "middle";
		for (d = 0; d < l.rows.length; d++) {
			row = l.rows[d];
			y = rowTop(d) - top;
			if (!row || y + rowHeight <= 0 || y >= h)
				continue;
			drawn += row.length;
			ctx.globalAlpha = d < depth[zoomed] ? 0.5 : 1;
			for (k = 0; k < row.length; k++) {
				i = row[k];
				x = Math.max(start[i], l.z0);
				fw = (Math.min(start[i] + total[i], l.z1) - x) * l.scale;
				fill = hits && hits[name[i]] && i ? "#e600e6" : color(i);
				if (fill !== lastFill)
					ctx.fillStyle = lastFill = fill;
				ctx.fillRect(pad + (x - l.z0) * l.scale, y, fw > 2 ? fw - 0.5 : fw, rowHeight - 1);
			}
			ctx.fillStyle = lastFill = "#000000";
			for (k = 0; k < row.length; k++) {
				i = row[k];
				x = Math.max(start[i], l.z0);
				fw = (Math.min(start[i] + total[i], l.z1) - x) * l.scale;
				x = pad + (x - l.z0) * l.scale;
				room = Math.floor((fw - 6) / letter);
				if (room >= 3) {
					s = names[name[i]];
					if (s.length > room && (tick = s.indexOf("`")) > 0 && tick + 1 < s.length)
						s = s.slice(tick + 1); /* the function alone */
					if (s.length > room)
						s = Array.from(s.slice(0, room + 2)).slice(0, room - 2).join("") + "..";
					ctx.fillText(s, x + 3, y + rowHeight / 2);
				}
				if (i === current)
					ctx.strokeRect(x + 0.5, y + 0.5, Math.max(fw - 1, 1), rowHeight - 2);
			}
		}
		ctx.globalAlpha = 1;
		byId("culled").textContent = l.culled ? l.culled.toLocaleString("en") + " frames too narrow to be shown" : "";
		last = { ms: performance.now() - t0, drawn: drawn, culled: l.culled };
		document.body.dataset.drawn = drawn;
		document.body.dataset.culled = l.culled;
		document.body.dataset.ms = last.ms.toFixed(1);
	}

	/* The frame at a point of the canvas, -1 for none. */
	function at(x, y) {
		var row = Math.floor((y + view.scrollTop) / rowHeight), d = data.inverted ? row : deepest - row;
		var z0 = start[zoomed], pos = z0 + (x - pad) / (view.clientWidth - 2 * pad) * total[zoomed], i = 0, j;
		if (d < 0 || d > deepest || pos < z0 || pos >= z0 + total[zoomed])
			return -1;
		while (depth[i] < d) {
			for (j = i + 1; j < end[i] && pos >= start[j] + total[j];)
				j = end[j];
			if (j >= end[i] || pos < start[j])
				return -1;
			i = j;
		}
		return i;
	}

	function details(i) {
		var s = "";
		if (i >= 0) {
			s = names[name[i]] + " (" + total[i].toLocaleString("en") + " " + data.unit + ", " +
				(100 * total[i] / total[0]).toFixed(2) + "%";
			if (before) {
				var change = (self[i] - before[i]) * (data.negate ? -1 : 1);
				s += "; " + (change > 0 ? "+" : "") + (100 * change / total[0]).toFixed(2) + "%";
			}
			s += ")";
		}
		byId("details").textContent = s;
		canvas.title = s;
	}

	function zoom(i) {
		zoomed = i < 0 ? 0 : i;
		byId("unzoom").disabled = !zoomed;
		note(zoomed); /* before it is drawn: it takes room */
		draw();
		remember();
	}

	/* What the page knows of a frame beyond its size. */
	function note(i) {
		var lines = data.notes && data.notes[i];
		byId("note").hidden = !lines;
		byId("note").textContent = lines ? names[name[i]] + ": " + lines.join("\n") : "";
	}

	function search() {
		var re = null, sum = 0, i;
		term = byId("search").value;
		hits = null;
		byId("matched").textContent = "";
		try {
			re = term ? new RegExp(term, byId("ignorecase").checked ? "i" : "") : null;
		} catch (e) {
			byId("matched").textContent = "not an expression";
		}
		if (re) {
			hits = new Uint8Array(names.length);
			for (i = 0; i < names.length; i++)
				hits[i] = re.test(names[i]) ? 1 : 0;
			for (i = 1; i < count;) {
				if (hits[name[i]]) {
					sum += total[i];
					i = end[i];
				} else {
					i++;
				}
			}
			byId("matched").textContent = "Matched: " + (100 * sum / total[0]).toFixed(1) + "%";
		}
		draw();
		remember();
	}

	function remember() {
		var h = [];
		if (zoomed)
			h.push("z=" + zoomed);
		if (term)
			h.push("s=" + encodeURIComponent(term));
		if (byId("ignorecase").checked)
			h.push("i=1");
		try {
			history.replaceState(null, "", "#" + h.join("&"));
		} catch (e) { /* a document without an address */ }
	}

	function recall() {
		location.hash.slice(1).split("&").forEach(function (kv) {
			var cut = kv.indexOf("="), k = kv.slice(0, cut), v;
			try {
				v = decodeURIComponent(kv.slice(cut + 1));
			} catch (e) {
				return; /* no text */
			}
			if (k === "z" && +v < count)
				zoomed = +v;
			else if (k === "s")
				byId("search").value = v;
			else if (k === "i")
				byId("ignorecase").checked = true;
		});
	}

	function select(i) {
		if (i < 0)
			return;
		current = i;
		details(i);
		var y = rowTop(depth[i]);
		if (y < view.scrollTop || y + rowHeight > view.scrollTop + view.clientHeight)
			view.scrollTop = Math.max(0, y - view.clientHeight / 2);
		draw();
	}

	/* The brother before (-1) or behind (1) with anything in it. */
	function brother(i, way) {
		var p = parent[i], j, found = -1;
		if (p < 0)
			return -1;
		for (j = p + 1; j < end[p]; j = end[j]) {
			if (way < 0 && j >= i)
				break;
			if (way > 0 && j > i)
				return j;
			if (way < 0)
				found = j;
		}
		return found;
	}

	function key(e) {
		var k = e.key, c = current < 0 ? zoomed : current, up = data.inverted ? "ArrowDown" : "ArrowUp";
		if (e.target === byId("search")) {
			if (k === "Escape") {
				byId("search").value = "";
				search();
				view.focus();
			}
			return;
		}
		if (k === "/" || k === "F3" || (e.ctrlKey && k === "f"))
			byId("search").focus();
		else if (k === "Escape")
			zoom(0);
		else if (k === "Enter")
			zoom(c);
		else if (k === "ArrowLeft")
			select(brother(c, -1));
		else if (k === "ArrowRight")
			select(brother(c, 1));
		else if (k === up)
			select(end[c] > c + 1 ? c + 1 : -1);
		else if (k === "ArrowUp" || k === "ArrowDown")
			select(parent[c]);
		else
			return;
		e.preventDefault();
	}

	document.title = data.title;
	byId("title").textContent = data.title;
	byId("subtitle").textContent = data.subtitle;
	byId("space").style.height = (deepest + 1) * rowHeight + "px";
	recall();
	byId("unzoom").disabled = !zoomed;
	note(zoomed);
	view.scrollTop = data.inverted ? 0 : (deepest + 1) * rowHeight;
	search();
	document.body.dataset.first = (performance.now() - began).toFixed(1);
	draw();
	document.body.dataset.parsed = (parsed - began).toFixed(1);
	document.body.dataset.began = began.toFixed(1);
	document.body.dataset.loaded = performance.now().toFixed(1);
	byId("search").addEventListener("input", search);
	byId("ignorecase").addEventListener("change", search);
	byId("unzoom").addEventListener("click", function () { zoom(0); });
	canvas.addEventListener("click", function (e) { var i = at(e.offsetX, e.offsetY); if (i >= 0) zoom(i); });
	canvas.addEventListener("mousemove", function (e) { details(at(e.offsetX, e.offsetY)); });
	canvas.addEventListener("mouseleave", function () { details(-1); });
	view.addEventListener("scroll", draw);
	window.addEventListener("resize", draw);
	window.addEventListener("keydown", key);
})();
