/* A heat map on a canvas: DescryHeat(element, options) draws in the element and returns what drives it.
 *
 *	setMatrix(m)      shows a document of `descry heat --json`
 *	append(c)         adds a column: {"column": number, "cells": [row, party, count, ...]}, counts of a column that is there are replaced;
 *	                  new "series" and "parties" go behind those known, "rows" replaces the rows (cells stay by their bounds);
 *	                  "keep": N lets columns fall off on the left
 *	update(m, r)      another state of the document shown: zoom, cursor and a range being drawn stay on their columns; r is selected
 *	redraw()          after the element has another size; it does so by itself when the window has
 *	setScale(name)    rank, linear, log
 *	isolate(i)        only the series i, null: all;  exclude(i, on)
 *	select(r)         {from, to, bottom, top}: columns and rows, both ends in it; null: none
 *	zoom(r)           shows only these; null: all
 *	details(r)        who is in these: {count, parties: [{name, series, who, count}]}, the largest first
 *	color(column, row)   "#rrggbb", null where nothing is
 *	state()           what is shown: for tests and for an address
 *
 * Events of the element: "heatcell" (a click: {column, row, count, parties, time, value}) and "heatrange" (a range was
 * drawn, or null when it was taken back: {time: {from, to}, value: {min, max}, columns, rows, count, parties}). Times are nanoseconds, BigInt, from
 * included, to not; values are both in it, null where open. `options.status(text)` hears what is under the pointer. `options.time(n)` is the text of
 * column n, counted from time 0 in steps. `options.empty()` is the text of a map where nothing was counted. With Shift the mouse draws a range of whole columns.
 */
"use strict";
var DescryHeat = function (root, options) {
	options = options || {};
	var HUES = 6, PAD = { left: 78, right: 16, top: 10, bottom: 30 };
	var ONE = [0xfdeeb8, 0xf9a84a, 0xd5441f, 0x6a0f1c];
	var RAMPS = [
		[0xcfe4f3, 0x6fb0dc, 0x0072b2, 0x06304f], [0xfbdcc4, 0xef9a5b, 0xd55e00, 0x6b2b00], [0xc6ebdd, 0x5cc4a0, 0x009e73, 0x004532],
		[0xf3d9e8, 0xdc9fc3, 0xb8558f, 0x552243], [0xfbf0b4, 0xeed34f, 0xb89b00, 0x514400], [0xd4f1f6, 0x84d3e2, 0x2b9fb5, 0x0d4650],
		[0xe4e4e4, 0xb0b0b0, 0x757575, 0x2d2d2d]
	];
	var EVERY = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000];
	var UNITS = { __proto__: null, /* a unit is somebody else's word */
		ns: [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]], us: [["us", 1], ["ms", 1e3], ["s", 1e6]], ms: [["ms", 1], ["s", 1e3]],
		s: [["s", 1]], bytes: [["B", 1], ["KB", 1024], ["MB", 1048576], ["GB", 1073741824], ["TB", 1099511627776]], "%": [["%", 1]],
		"": [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]
	};
	var m = null, columns = [], nrows = 0, first = 0, scale = "rank", only = null, without = {};
	var counts = new Float64Array(0), main = new Uint8Array(0), max = 0, total = 0, ncells = 0; /* of each cell: column * nrows + row */
	var levelOf = null, levels = new Uint8Array(0), hidden = false;
	var view = null, selection = null, cursor = null, hover = null, drag = null, width = 0;
	var canvas = document.createElement("canvas"), ctx = canvas.getContext("2d");
	var raster = document.createElement("canvas"), rasterCtx = raster.getContext("2d"), pixels = null, words = null;
	var palettes = {}, box = { x: 0, y: 0, w: 1, h: 1 }, rasterOld = true, frame = 0;
	var last = { ms: 0, cells: 0 };

	canvas.tabIndex = 0;
	canvas.setAttribute("role", "img");
	canvas.setAttribute("aria-label", "heat map; arrow keys move, Enter tells what is in a cell");
	root.appendChild(canvas);

	/* --- colours: as heat_color() in picture_heat.c --- */

	function ramp(stops, level) {
		var at = level * 3, i = Math.floor(at / 255), f = at % 255, c = 0;
		if (i >= 3)
			return stops[3];
		for (var shift = 16; shift >= 0; shift -= 8) {
			var a = stops[i] >> shift & 255, b = stops[i + 1] >> shift & 255;
			c |= Math.floor((a * (255 - f) + b * f + 127) / 255) << shift;
		}
		return c;
	}

	/* 256 pixels (little-endian ABGR) of a series. */
	function palette(series) {
		var which = m.series.length <= 1 ? -1 : Math.min(series, HUES);
		if (!palettes[which]) {
			var p = palettes[which] = new Uint32Array(256);
			for (var i = 0; i < 256; i++) {
				var c = ramp(which < 0 ? ONE : RAMPS[which], i);
				p[i] = (0xff000000 | (c & 255) << 16 | (c & 0xff00) | c >> 16) >>> 0;
			}
		}
		return palettes[which];
	}

	function css(c) { return "#" + (0x1000000 + c).toString(16).slice(1); }
	function pixelCss(p) { return css((p & 255) << 16 | (p & 0xff00) | p >> 16 & 255); }
	function seriesColor(s, level) { return pixelCss(palette(s)[level || 170]); }

	/* --- counting --- */

	function shown(series) { return (only === null || only === series) && !without[series]; }

	/* One column's counts, and of each cell the series with the largest part. */
	function count(c) {
		var col = columns[c], at = c * nrows, i, n, cells, row, series, sums;
		counts.fill(0, at, at + nrows);
		if (!col)
			return;
		cells = col.cells;
		for (i = 0; i < cells.length;) {
			row = cells[i];
			sums = null;
			var best = m.parties[cells[i + 1]][0], begin = i, one = true;
			for (; i < cells.length && cells[i] === row; i += 3) {
				series = m.parties[cells[i + 1]][0];
				if (!hidden || shown(series))
					counts[at + row] += cells[i + 2];
				one = one && series === best;
			}
			if (!one) {
				sums = {};
				best = -1;
				for (n = begin; n < i; n += 3) {
					series = m.parties[cells[n + 1]][0];
					if (!hidden || shown(series))
						sums[series] = (sums[series] || 0) + cells[n + 2];
				}
				for (series in sums)
					if (best < 0 || sums[series] > sums[best] || (sums[series] === sums[best] && +series < best))
						best = +series;
			}
			main[at + row] = best < 0 ? 255 : Math.min(best, 254);
		}
	}

	function countAll() {
		var n = columns.length * nrows;
		hidden = only !== null || Object.keys(without).length > 0;
		if (counts.length !== n) {
			counts = new Float64Array(n);
			main = new Uint8Array(n);
			levels = new Uint8Array(n);
		}
		for (var c = 0; c < columns.length; c++)
			count(c);
		measure();
	}

	function measure() {
		max = total = ncells = 0;
		for (var i = 0; i < counts.length; i++)
			if (counts[i]) {
				ncells++;
				total += counts[i];
				if (counts[i] > max)
					max = counts[i];
			}
		rank();
		rasterOld = true;
	}

	/* Counts below SMALL are ranked by counting them; only the few above are sorted. */
	function rank() {
		var SMALL = 65536, i, n, sum = 0, part, large = [], seen;
		levelOf = null;
		if (scale === "rank") {
			n = Math.min(max + 1, SMALL);
			seen = new Uint32Array(n);
			for (i = 0; i < counts.length; i++) {
				if (counts[i] < n)
					seen[counts[i]]++;
				else
					large.push(counts[i]);
			}
			seen[0] = 0;
			levelOf = new Uint8Array(n);
			for (i = 1; i < n; i++) {
				sum += seen[i];
				levelOf[i] = level(sum / ncells);
			}
			large.sort(function (a, b) { return a - b; });
			var above = new Map();
			large.forEach(function (v, k) { above.set(v, level((sum + k + 1) / ncells)); });
			for (i = 0; i < counts.length; i++)
				levels[i] = counts[i] < n ? levelOf[counts[i]] : above.get(counts[i]);
			return;
		}
		part = Math.log(max + 1);
		for (i = 0; i < counts.length; i++)
			levels[i] = !counts[i] ? 0 : level(scale === "log" ? Math.log(counts[i] + 1) / part : counts[i] / max);
	}

	function level(part) { return Math.max(1, Math.min(255, Math.floor(part * 255 + 0.5))); }

	/* --- text: as picture_heat.c makes it --- */

	function number(v) { return v.toLocaleString("en"); }

	function value(v) {
		var a = Math.abs(v), parts = UNITS[m.value.unit], best, i;
		var known = !!parts;
		parts = parts || UNITS[""];
		for (i = 0; i < parts.length; i++)
			if (i === 0 || a >= parts[i][1])
				best = parts[i];
		return (v < 0 ? "-" : "") + +(a / best[1]).toFixed(3) + best[0] + (known ? "" : " " + m.value.unit);
	}

	function range(lo, hi) {
		if (lo === null && hi === null)
			return "all";
		if (lo === null)
			return "below " + value(hi + 1);
		if (hi === null)
			return value(lo) + " and more";
		return hi > lo ? value(lo) + " to " + value(hi + 1) : value(lo);
	}

	function isWall() { return first * m.time.step >= 1e17; }

	function time(c) {
		if (options.time)
			return options.time(first + c);
		var ns = BigInt(isWall() ? first + c : c) * BigInt(m.time.step), s = Number(ns / 1000000000n);
		var f = Number(ns % 1000000000n), two = function (n) { return (n < 10 ? "0" : "") + n; };
		var fraction = f ? (f / 1e9).toFixed(9).replace(/0+$/, "").slice(1) : "";
		if (!isWall())
			return s + fraction + "s";
		return two(Math.floor(s / 3600) % 24) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60) + fraction;
	}

	function who(p) {
		var party = m.parties[p];
		if (party[1] === null)
			return m.series[party[0]].name;
		return (m.series.length > 1 ? m.series[party[0]].name + ", " : "") + party[1];
	}

	/* --- drawing --- */

	function shape() {
		var v = view || { from: 0, to: columns.length - 1, bottom: 0, top: nrows - 1 };
		return { c0: v.from, nc: v.to - v.from + 1, r0: v.bottom, nr: v.top - v.bottom + 1 };
	}

	/* A pixel for each cell; the canvas scales it. */
	function paintRaster(s) {
		var c, r, at, i, series, pal = [], empty = 0;
		if (raster.width !== s.nc || raster.height !== s.nr || !words) {
			raster.width = s.nc;
			raster.height = s.nr;
			pixels = rasterCtx.createImageData(s.nc, s.nr);
			words = new Uint32Array(pixels.data.buffer);
		}
		for (i = 0; i < Math.min(m.series.length, 255); i++)
			pal[i] = palette(i);
		for (c = 0; c < s.nc; c++) {
			at = (s.c0 + c) * nrows + s.r0;
			i = (s.nr - 1) * s.nc + c;
			for (r = 0; r < s.nr; r++, at++, i -= s.nc) {
				series = levels[at];
				words[i] = series ? pal[main[at]][series] : empty;
			}
		}
		rasterCtx.putImageData(pixels, 0, 0);
		rasterOld = false;
	}

	function every(size, label) {
		var i = 0;
		while (i + 1 < EVERY.length && EVERY[i] * size < label)
			i++;
		return EVERY[i];
	}

	function roundness(n) {
		var v = Math.abs(n), bits;
		if (!v)
			return 60;
		for (; v % 10 === 0;)
			v /= 10;
		if (v === 1)
			return 50;
		bits = Math.log2(Math.abs(n));
		if (Number.isInteger(bits))
			return bits % 10 === 0 ? 50 : bits % 5 === 0 ? 30 : bits % 2 === 0 ? 20 : 10;
		return v === 5 ? 30 : v === 2 ? 25 : v < 10 ? 15 : v < 100 ? 8 : 5;
	}

	/* Rows whose lower bound has room for a label. */
	function rowLabels(s, height) {
		var labels = [], apart = Math.ceil(18 / height), at = 0, k = labelEvery(height), r, j, wanted, room;
		var rows = m.value.rows.slice(s.r0, s.r0 + s.nr);
		for (r = 0; r < rows.length && width; r++)
			if (rows[r][0] !== null)
				labels[r] = at++ % k === 0;
		for (wanted = 60; wanted > 0 && !width; wanted--)
			for (r = 0; r < rows.length; r++) {
				room = rows[r][0] !== null && roundness(rows[r][0]) === wanted;
				for (j = Math.max(0, r - apart + 1); room && j < r + apart; j++)
					room = !labels[j];
				if (room)
					labels[r] = true;
			}
		return labels;
	}

	/* The width of all rows that have two ends; 0 when they differ. */
	function rowWidth() {
		var w = 0, good = true;
		m.value.rows.forEach(function (r) {
			if (r[0] === null || r[1] === null)
				return;
			good = good && (!w || r[1] - r[0] + 1 === w);
			w = r[1] - r[0] + 1;
		});
		return good ? w || 1 : 0;
	}

	function labelEvery(height) {
		var least = every(height, 18), k;
		for (k = least; k <= 4 * least; k++)
			if (roundness(width * k) >= 25)
				return k;
		return least;
	}

	function xOf(c, s) { return box.x + (c - s.c0) * box.w / s.nc; }
	function yOf(r, s) { return box.y + box.h - (r - s.r0) * box.h / s.nr; } /* the lower edge of row r */

	function drawAxes(s) {
		var cell = box.w / s.nc, row = box.h / s.nr, fixed = isWall() || options.time, k = every(cell, fixed ? 72 : 56), labels = rowLabels(s, row), c, r, x, y;
		ctx.font = "11px Verdana, sans-serif";
		ctx.fillStyle = "#444";
		ctx.strokeStyle = "#999";
		ctx.lineWidth = 1;
		ctx.textAlign = "center";
		ctx.textBaseline = "top";
		ctx.beginPath();
		for (c = s.c0; c < s.c0 + s.nc; c++) {
			if (((fixed ? first : 0) + c) % k)
				continue;
			x = Math.round(xOf(c, s)) + 0.5;
			ctx.moveTo(x, box.y + box.h);
			ctx.lineTo(x, box.y + box.h + 5);
			ctx.fillText(time(c), x, box.y + box.h + 8);
		}
		ctx.textAlign = "right";
		ctx.textBaseline = "middle";
		for (r = 0; r < s.nr; r++) {
			if (!labels[r])
				continue;
			y = Math.round(yOf(s.r0 + r, s)) - 0.5;
			ctx.moveTo(box.x - 5, y);
			ctx.lineTo(box.x, y);
			ctx.fillText(value(m.value.rows[s.r0 + r][0]), box.x - 8, y);
		}
		ctx.stroke();
		ctx.strokeStyle = "rgba(0,0,0,0.07)";
		ctx.beginPath();
		for (r = 1; r < s.nr; r++)
			if (labels[r]) {
				y = Math.round(yOf(s.r0 + r, s)) - 0.5;
				ctx.moveTo(box.x, y);
				ctx.lineTo(box.x + box.w, y);
			}
		ctx.stroke();
		ctx.strokeStyle = "#bbb";
		ctx.strokeRect(box.x - 0.5, box.y - 0.5, box.w + 1, box.h + 1);
	}

	function outline(r, s, color, fill) {
		var x0 = xOf(Math.max(r.from, s.c0), s), x1 = xOf(Math.min(r.to + 1, s.c0 + s.nc), s);
		var y0 = yOf(Math.min(r.top + 1, s.r0 + s.nr), s), y1 = yOf(Math.max(r.bottom, s.r0), s);
		if (x1 <= x0 || y1 <= y0)
			return;
		if (fill) {
			ctx.fillStyle = fill;
			ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
		}
		ctx.strokeStyle = "#fff";
		ctx.lineWidth = 3;
		ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
		ctx.strokeStyle = color;
		ctx.lineWidth = 1.5;
		ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
	}

	/* Cells of a whole number of pixels, where that does not leave too much room. */
	function whole(size, n) {
		var w = Math.floor(size / n) * n;
		return w > 0.88 * size ? w : size;
	}

	/* Everything: from the counts of the cells to the picture. */
	function draw() {
		var t0 = performance.now(), ratio = window.devicePixelRatio || 1, s;
		var w = root.clientWidth, h = root.clientHeight;
		frame = 0;
		if (!m || !w || !h)
			return;
		if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
			canvas.width = Math.round(w * ratio);
			canvas.height = Math.round(h * ratio);
			canvas.style.width = w + "px";
			canvas.style.height = h + "px";
		}
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.clearRect(0, 0, w, h);
		s = shape();
		box = { x: PAD.left, y: PAD.top, w: Math.max(10, w - PAD.left - PAD.right), h: Math.max(10, h - PAD.top - PAD.bottom) };
		if (box.w > s.nc * 40) /* a few columns do not become bars */
			box.w = Math.max(s.nc * 40, Math.min(box.w, 320));
		box.w = whole(box.w, s.nc);
		if (s.nr)
			box.h = whole(Math.min(box.h, s.nr * 28), s.nr);
		ctx.fillStyle = "#fff";
		ctx.fillRect(box.x, box.y, box.w, box.h);
		if (!ncells) {
			ctx.font = "13px Verdana, sans-serif";
			ctx.textAlign = "center";
			ctx.fillStyle = "#555";
			ctx.fillText(hidden ? "All series are hidden." : options.empty ? options.empty() : "There are no events in the input.", box.x + box.w / 2, box.y + box.h / 2);
		}
		if (s.nc && s.nr) {
			if (rasterOld)
				paintRaster(s);
			ctx.imageSmoothingEnabled = box.w < s.nc || box.h < s.nr;
			ctx.drawImage(raster, box.x, box.y, box.w, box.h);
			drawAxes(s);
			if (hover && !drag)
				outline({ from: hover.column, to: hover.column, bottom: hover.row, top: hover.row }, s, "#000");
			if (selection)
				outline(selection, s, "#000", "rgba(0,0,0,0.10)");
			if (cursor)
				outline({ from: cursor.column, to: cursor.column, bottom: cursor.row, top: cursor.row }, s, "#c000c0");
		}
		last = { ms: performance.now() - t0, cells: ncells };
	}

	function later() {
		if (!frame)
			frame = requestAnimationFrame(draw);
	}

	/* --- asking --- */

	function at(x, y) {
		var s = shape(), c = Math.floor((x - box.x) / box.w * s.nc), r = Math.floor((box.y + box.h - y) / box.h * s.nr);
		return c < 0 || r < 0 || c >= s.nc || r >= s.nr ? null : { column: s.c0 + c, row: s.r0 + r };
	}

	function details(r) {
		var sums = new Map(), n = 0, c, i, cells, p;
		for (c = Math.max(0, r.from); c <= r.to && c < columns.length; c++) {
			cells = columns[c] ? columns[c].cells : [];
			for (i = 0; i < cells.length; i += 3) {
				p = cells[i + 1];
				if (cells[i] < r.bottom || cells[i] > r.top || !shown(m.parties[p][0]))
					continue;
				sums.set(p, (sums.get(p) || 0) + cells[i + 2]);
				n += cells[i + 2];
			}
		}
		return {
			count: n,
			parties: Array.from(sums, function (e) {
				return { party: e[0], name: who(e[0]), series: m.series[m.parties[e[0]][0]].name, index: m.parties[e[0]][0], who: m.parties[e[0]][1], count: e[1] };
			}).sort(function (a, b) { return b.count - a.count || a.party - b.party; })
		};
	}

	function describe(r) {
		var step = BigInt(m.time.step), from = BigInt(first + r.from) * step, to = BigInt(first + r.to + 1) * step, d = details(r);
		return {
			columns: { from: r.from, to: r.to }, rows: { from: r.bottom, to: r.top },
			time: { from: from, to: to },
			value: { min: m.value.rows[r.bottom][0], max: m.value.rows[r.top][1] },
			text: time(r.from) + (r.to > r.from ? " to " + time(r.to + 1) : "") + ", " + range(m.value.rows[r.bottom][0], m.value.rows[r.top][1]),
			count: d.count, parties: d.parties
		};
	}

	function tell(name, detail) { root.dispatchEvent(new CustomEvent(name, { detail: detail })); }

	function cell(p) { return { from: p.column, to: p.column, bottom: p.row, top: p.row }; }

	function status(p) {
		var d, s = "";
		if (p) {
			d = describe(cell(p));
			s = d.text + ": " + number(d.count) + (d.count && total ? " (" + (100 * d.count / total).toFixed(d.count * 1000 < total ? 3 : 1) + "%)" : "");
			if (d.parties.length && (m.parties.length > 1 || m.parties[0][1] !== null))
				s += "   " + d.parties.slice(0, 3).map(function (q) { return who(q.party) + " " + number(q.count); }).join("; ") +
					(d.parties.length > 3 ? "; .." : "");
		}
		if (options.status)
			options.status(s);
	}

	function select(r) {
		selection = r;
		tell("heatrange", r ? describe(r) : null);
		later();
	}

	function clamp(v, lo, hi) { return Math.max(lo, Math.min(hi, v)); }

	function zoom(r) {
		view = r && {
			from: clamp(r.from, 0, columns.length - 1), to: clamp(r.to, 0, columns.length - 1),
			bottom: clamp(r.bottom, 0, nrows - 1), top: clamp(r.top, 0, nrows - 1)
		};
		rasterOld = true;
		tell("heatview", null);
		later();
	}

	function pick(p) {
		cursor = p;
		if (p)
			tell("heatcell", Object.assign(describe(cell(p)), { column: p.column, row: p.row }));
		later();
	}

	/* --- mouse and keys --- */

	function point(e) {
		var r = canvas.getBoundingClientRect();
		return { x: e.clientX - r.left, y: e.clientY - r.top };
	}

	function inside(p) { return at(clamp(p.x, box.x, box.x + box.w - 0.01), clamp(p.y, box.y + 0.01, box.y + box.h)); }

	function spanOf(a, b) {
		return { from: Math.min(a.column, b.column), to: Math.max(a.column, b.column), bottom: Math.min(a.row, b.row), top: Math.max(a.row, b.row) };
	}

	canvas.addEventListener("mousedown", function (e) {
		var p = point(e), c = m && at(p.x, p.y);
		if (c && !e.button)
			drag = { start: c, x: p.x, y: p.y, moved: false, columns: e.shiftKey };
	});
	canvas.addEventListener("mousemove", function (e) {
		var p = point(e), c = m && at(p.x, p.y);
		if (c === hover || (c && hover && c.column === hover.column && c.row === hover.row))
			return;
		hover = c;
		status(hover || cursor);
		later();
	});
	canvas.addEventListener("mouseleave", function () { hover = null; if (m) status(cursor); later(); });
	window.addEventListener("mousemove", function (e) {
		var p;
		if (!drag)
			return;
		p = point(e);
		drag.moved = drag.moved || Math.abs(p.x - drag.x) + Math.abs(p.y - drag.y) > 4;
		if (drag.moved) {
			selection = spanOf(drag.start, inside(p));
			if (drag.columns) {
				selection.bottom = 0;
				selection.top = nrows - 1;
			}
			later();
		}
	});
	window.addEventListener("mouseup", function () {
		var d = drag;
		drag = null;
		if (!d)
			return;
		if (d.moved)
			select(selection);
		else {
			if (selection)
				select(null);
			pick(d.start);
		}
	});
	canvas.addEventListener("dblclick", function () { zoom(null); });
	canvas.addEventListener("keydown", function (e) {
		var s, moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, move = moves[e.key], k = e.key;
		if (!m || !columns.length || e.ctrlKey || e.metaKey || e.altKey)
			return;
		s = shape();
		if (move) {
			var was = cursor || { column: s.c0 + (move[0] < 0 ? s.nc - 1 : 0), row: s.r0 + (move[1] < 0 ? s.nr - 1 : 0) };
			var next = cursor ? { column: clamp(was.column + move[0], s.c0, s.c0 + s.nc - 1), row: clamp(was.row + move[1], s.r0, s.r0 + s.nr - 1) } : was;
			if (e.shiftKey) {
				drag = null;
				canvas.anchor = selection && canvas.anchor ? canvas.anchor : was;
				cursor = next;
				select(spanOf(canvas.anchor, next));
			} else {
				cursor = next;
			}
			status(cursor);
			later();
		} else if (k === "Enter" || k === " ") {
			pick(cursor);
		} else if (k === "z" && selection) {
			zoom(selection);
			select(null);
		} else if (k === "Escape") {
			if (selection)
				select(null);
			else
				zoom(null);
		} else {
			return;
		}
		e.preventDefault();
	});
	window.addEventListener("resize", later);

	/* --- the matrix --- */

	function boundsKey(r) { return r[0] + "," + r[1]; }

	function setMatrix(doc) {
		m = doc;
		first = m.time.first;
		scale = m.scale || "rank";
		nrows = m.value.rows.length;
		columns = new Array(m.time.columns).fill(null);
		m.columns.forEach(function (c) { columns[c.column] = { cells: c.cells }; });
		only = null;
		without = {};
		view = selection = cursor = hover = null;
		palettes = {};
		width = rowWidth();
		countAll();
		later();
	}

	function update(doc, r) {
		var off = m ? doc.time.first - first : 0, same = m && doc.value.rows.length === nrows, was = [view, cursor, hover, selection];
		var moved = function (v) { return v && Object.assign({}, v, { from: v.from - off, to: v.to - off }); };
		setMatrix(doc);
		selection = r;
		if (!same) {
			drag = null;
			return;
		}
		if (drag) {
			drag.start.column -= off;
			selection = drag.moved ? moved(was[3]) : r;
		}
		view = moved(was[0]);
		if (view && (view.from < 0 || view.to >= columns.length))
			view = null;
		hover = was[2]; /* the pointer has not moved */
		cursor = was[1] && { column: was[1].column - off, row: was[1].row };
		if (cursor && cursor.column < 0)
			cursor = null;
	}

	function append(c) {
		var at = c.column - (c.absolute ? first : 0), rows, to, n, off;
		(c.series || []).forEach(function (s) { m.series.push(s); palettes = {}; });
		(c.parties || []).forEach(function (p) { m.parties.push(p); });
		n = columns.length;
		if (c.rows) {
			rows = {};
			c.rows.forEach(function (r, i) { rows[boundsKey(r)] = i; });
			to = m.value.rows.map(function (r) { return rows[boundsKey(r)]; });
			columns.forEach(function (col) {
				for (var i = 0; col && i < col.cells.length; i += 3)
					col.cells[i] = to[col.cells[i]];
			});
			m.value.rows = c.rows;
			nrows = c.rows.length;
			width = rowWidth();
			view = selection = cursor = null;
		}
		if (at < 0)
			return;
		while (columns.length <= at)
			columns.push(null);
		columns[at] = { cells: c.cells };
		off = c.keep && columns.length > c.keep ? columns.length - c.keep : 0;
		if (off) {
			columns.splice(0, off);
			first += off;
			[view, selection].forEach(function (r) { if (r) { r.from = Math.max(0, r.from - off); r.to = Math.max(0, r.to - off); } });
			if (cursor)
				cursor.column -= off;
			if (cursor && cursor.column < 0)
				cursor = null;
		}
		m.time.first = first;
		m.time.columns = columns.length;
		if (c.rows) {
			countAll();
		} else {
			if (off) {
				counts.copyWithin(0, off * nrows);
				main.copyWithin(0, off * nrows);
			}
			resize();
			for (at = Math.max(0, Math.min(n, at) - off); at < columns.length; at++)
				count(at);
			measure();
		}
		later();
	}

	/* Room for other columns; what is counted stays. */
	function resize() {
		var n = columns.length * nrows, was = counts, wasMain = main;
		if (n === was.length)
			return;
		counts = new Float64Array(n);
		main = new Uint8Array(n);
		levels = new Uint8Array(n);
		counts.set(was.subarray(0, n));
		main.set(wasMain.subarray(0, n));
	}

	return {
		element: root,
		canvas: canvas,
		setMatrix: setMatrix,
		update: update,
		append: append,
		redraw: draw,
		/* All that a change of the data costs. */
		refresh: function () { countAll(); draw(); return last.ms; },
		matrix: function () { return m; },
		setScale: function (name) { scale = name; rank(); rasterOld = true; tell("heatview", null); later(); },
		isolate: function (i) { only = i; countAll(); tell("heatview", null); later(); },
		exclude: function (i, on) { if (on) without[i] = true; else delete without[i]; countAll(); tell("heatview", null); later(); },
		excluded: function (i) { return !!without[i]; },
		select: select,
		zoom: zoom,
		pick: pick,
		details: details,
		describe: describe,
		seriesColor: seriesColor,
		value: value,
		time: time,
		color: function (c, r) { var i = c * nrows + r; return counts[i] ? pixelCss(palette(main[i])[levels[i]]) : null; },
		count: function (c, r) { return counts[c * nrows + r]; },
		/* Where a cell is on the canvas. */
		place: function (c, r) { var s = shape(); return { x: (xOf(c, s) + xOf(c + 1, s)) / 2, y: (yOf(r, s) + yOf(r + 1, s)) / 2 }; },
		state: function () {
			return { scale: scale, only: only, without: Object.keys(without).map(Number), view: view, selection: selection, cursor: cursor,
				max: max, total: total, cells: ncells, columns: columns.length, rows: nrows, ms: last.ms };
		}
	};
};
