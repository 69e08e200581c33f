// SVG charts, drawn at their display width; the style sheet sets the colours.
import { outlines } from "./districts.js"
import { h, percent, s, whole } from "./dom.js"
import { t } from "./messages.js"

/** @typedef {{ frequency: number, low: number, high: number }} Share */
/** @typedef {Share & { value: any, standard_error: number }} Row */

/** Maximum bars of a chart. */
export const MOST_BARS = 40

/**
 * Draws a chart, and draws it again whenever its width changes.
 * @param {HTMLElement} place
 * @param {(width: number) => Element} draw
 */
export function chart(place, draw) {
	const redraw = () => {
		const width = Math.floor(place.clientWidth)
		if (width > 0) place.replaceChildren(draw(width))
		widths.set(place, width)
	}
	drawings.set(place, redraw)
	resized.observe(place)
	redraw()
}

/** Removes a chart. @param {HTMLElement} place */
export function noChart(place) {
	drawings.delete(place)
	place.replaceChildren()
}

const drawings = new WeakMap(),
	widths = new WeakMap()
const resized = new ResizeObserver((entries) => {
	for (const { target } of entries) if (widths.get(target) !== Math.floor(target.clientWidth)) drawings.get(target)?.()
})

/** @param {number} width @param {number} height @param {string} about @param {import("./dom.js").Child[]} children */
export const frame = (width, height, about, ...children) =>
	s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about }, ...children)

/**
 * Creates a label.
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {import("./dom.js").Attributes} [more]
 */
export const label = (x, y, content, more = {}) => s("text", { x, y, ...more }, content)

/** @param {number[][]} points */
export const path = (points) => `M${points.map((point) => point.map((c) => c.toFixed(2)).join(" ")).join("L")}`

/** Returns a step between ticks: 1, 2 or 5 times a power of ten. */
export function stepFor(span = 1, most = 5) {
	const rough = span / most,
		power = 10 ** Math.floor(Math.log10(rough))
	return power * ([1, 2, 5].find((m) => m * power >= rough * 0.999) ?? 10)
}

/**
 * Draws the error region of tests between two values: false alarm rate on the x-axis, missed detection rate on the
 * y-axis.
 * @param {number[][]} points
 * @param {number} width
 */
export function regionChart(points, width) {
	const size = Math.min(width, 360),
		left = 66,
		bottom = 46,
		side = size - left - 24,
		top = 10
	const x = (/** @type {number} */ v) => left + v * side,
		y = (/** @type {number} */ v) => top + (1 - v) * side
	const curve = points.map(([a, b]) => [x(a), y(b)])
	const ticks = [0, 0.5, 1].flatMap((v) => [
		label(x(v), y(0) + 18, percent(v, 0), { "text-anchor": "middle", class: "quiet" }),
		label(left - 8, y(v) + 4, percent(v, 0), { "text-anchor": "end", class: "quiet" }),
	])
	const height = top + side + bottom
	return frame(
		size,
		height,
		t(
			"Error region: false alarm and missed detection rates of all tests between the two values that are hardest to tell apart",
		),
		s("path", { d: `${path([...curve, [x(1), y(1)]])}Z`, class: "area" }),
		s("path", {
			d: path([
				[x(0), y(0)],
				[x(1), y(0)],
			]),
			class: "axis",
		}),
		s("path", {
			d: path([
				[x(0), y(0)],
				[x(0), y(1)],
			]),
			class: "axis",
		}),
		s("path", {
			d: path([
				[x(0), y(1)],
				[x(1), y(0)],
			]),
			class: "other",
		}),
		s("path", { d: path(curve), class: "line" }),
		...ticks,
		label(x(0.5), height - 6, t("false alarms"), { "text-anchor": "middle" }),
		label(14, y(0.5), t("missed"), { "text-anchor": "middle", transform: `rotate(-90 14 ${y(0.5)})` }),
	)
}

/**
 * Draws the predicted error against n; both curves fall as 1/√n.
 * @param {{ n: number, tv: number, classical: number | null }} plan
 * @param {number} width
 */
export function errorChart({ n, tv, classical }, width) {
	const height = Math.min(300, Math.max(220, width * 0.6)),
		left = 52,
		bottom = 44,
		top = 16,
		right = 18
	const low = Math.log10(n) - 1.2,
		high = Math.log10(n) + 1.2
	const atN = (/** @type {number} */ one, /** @type {number} */ log) => one * Math.sqrt(n / 10 ** log)
	const most = Math.min(1, Math.max(tv, classical ?? 0) * 2.2)
	const x = (/** @type {number} */ log) => left + ((log - low) / (high - low)) * (width - left - right)
	const y = (/** @type {number} */ v) => top + (1 - Math.min(v, most) / most) * (height - top - bottom)
	const curve = (/** @type {number} */ one) => {
		const logs = Array.from({ length: 81 }, (_, i) => low + ((high - low) * i) / 80).filter(
			(log) => atN(one, log) <= most,
		)
		return logs.length > 0 && path(logs.map((log) => [x(log), y(atN(one, log))]))
	}
	const step = stepFor(most, 4),
		marks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step)
	const powers = Array.from({ length: 12 }, (_, i) => i).filter((log) => log >= low && log <= high)
	return frame(
		width,
		height,
		t("Predicted error against the number of people: {bound} at {number}", { bound: percent(tv), number: whole(n) }),
		...marks.flatMap((v) => [
			s("path", {
				d: path([
					[left, y(v)],
					[width - right, y(v)],
				]),
				class: v ? "rule" : "axis",
			}),
			label(left - 8, y(v) + 4, percent(v, step < 0.01 ? 1 : 0), { "text-anchor": "end", class: "quiet" }),
		]),
		...powers.map((log) =>
			label(x(log), height - bottom + 20, whole(10 ** log), { "text-anchor": "middle", class: "quiet" }),
		),
		label((left + width - right) / 2, height - 4, t("people who answer"), { "text-anchor": "middle" }),
		classical !== null && s("path", { d: curve(classical), class: "other" }),
		s("path", { d: curve(tv), class: "line" }),
		s("path", {
			d: path([
				[x(Math.log10(n)), y(0)],
				[x(Math.log10(n)), y(tv)],
			]),
			class: "rule",
		}),
		s("circle", { cx: x(Math.log10(n)), cy: y(tv), r: 5, class: "dot" }),
		label(x(Math.log10(n)) - 10, y(tv) + 18, percent(tv), { "text-anchor": "end" }),
	)
}

/** Returns whether there are too few answers to tell a value from 0: its interval contains 0. @param {Share} row */
export const unsure = ({ low }) => !(low > 0)

/** Greatest upper limit of a value that counts as rare. */
const RARE = 0.1

/** Returns whether a value is rare: its interval contains 0, and its upper limit is low. @param {Share} row */
export const rare = (row) => unsure(row) && row.high <= RARE

/** @param {number} share */
const within = (share) => Math.min(1, Math.max(0, share))

/**
 * Draws bars with intervals, for one or more groups.
 * @param {{ name: string, rows: Share[] }[]} groups
 * @param {string[]} names
 * @param {number[]} places indices of the values to draw, in order
 * @param {number} width
 */
export function estimateChart(groups, names, places, width) {
	const narrow = width < 520,
		numbers = groups.length > 2 ? 16 : 0,
		left = numbers + (narrow ? 18 : Math.min(220, 30 + 7.4 * Math.max(...places.map((x) => names[x].length))))
	const each = 22,
		gap = narrow ? 34 : 16,
		right = 104,
		top = 8,
		bottom = 34
	const tall = each * groups.length,
		height = top + places.length * (tall + gap) + bottom
	const shown = groups.flatMap(({ rows }) => places.map((x) => rows[x]))
	const low = 0,
		high = Math.max(0.01, ...shown.flatMap((row) => [within(row.high), within(row.frequency)]))
	const x = (/** @type {number} */ v) => left + ((v - low) / (high - low)) * (width - left - right)
	const step = stepFor(high - low, narrow ? 3 : 5),
		first = Math.ceil(low / step),
		last = Math.floor(high / step)
	const marks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step)
	return frame(
		width,
		height,
		t("Estimated shares of {number} values with their intervals; the table has the same numbers", {
			number: places.length,
		}),
		...marks.flatMap((v) => [
			s("path", {
				d: path([
					[x(v), top],
					[x(v), height - bottom],
				]),
				class: Math.abs(v) < 1e-12 ? "axis" : "rule",
			}),
			label(x(v), height - bottom + 20, percent(v, step < 0.01 ? 1 : 0), { "text-anchor": "middle", class: "quiet" }),
		]),
		...places.flatMap((place, i) => {
			const start = top + i * (tall + gap) + gap - (narrow ? 4 : 8)
			const name = narrow
				? label(left - numbers, start - 5, cut(names[place], width / 8))
				: label(left - 12 - numbers, start + tall / 2 + 4, cut(names[place], (left - numbers) / 7.4), {
						"text-anchor": "end",
					})
			return [name, ...groups.map(({ rows }, g) => bar(rows[place], start + g * each + each / 2, g))]
		}),
	)

	/** @param {Share} row @param {number} middle @param {number} group */
	function bar(row, middle, group) {
		const ends = [x(within(row.low)), x(within(row.high))],
			share = within(row.frequency)
		const said = rare(row) ? t("at most {bound}", { bound: percent(row.high) }) : percent(share)
		return s(
			"g",
			{ class: `${group ? "second" : "first"} group-${group % 6}${unsure(row) ? " unsure" : ""}` },
			s("rect", { x: x(0), y: middle - 7, width: x(share) - x(0), height: 14, rx: 3, class: "bar" }),
			s("path", {
				d: path([
					[ends[0], middle],
					[ends[1], middle],
				]),
				class: "whisker",
			}),
			...ends.map((end) =>
				s("path", {
					d: path([
						[end, middle - 5],
						[end, middle + 5],
					]),
					class: "whisker",
				}),
			),
			s("circle", { cx: x(share), cy: middle, r: 4.5, class: "dot" }),
			groups.length > 2 &&
				label(x(0) - 6, middle + 4, String(group + 1), { class: "number-of-group", "text-anchor": "end" }),
			label(Math.max(ends[1], x(share)) + 9, middle + 4, said, { class: unsure(row) ? "quiet" : "" }),
		)
	}
}

/** Draws the share of people up to each value as steps, with the band of its intervals.
 * @param {{ answer: any, value: number, low: number, high: number }[]} answers @param {number} width */
export function distributionChart(answers, width) {
	const height = Math.min(320, Math.max(220, width * 0.5)),
		left = 52,
		bottom = 44,
		top = 12,
		right = 18
	const x = (/** @type {number} */ i) => left + (i / answers.length) * (width - left - right)
	const y = (/** @type {number} */ v) => top + (1 - Math.min(1, Math.max(0, v))) * (height - top - bottom)
	const steps = (/** @type {"value" | "low" | "high"} */ name) =>
		answers.flatMap((row, i) => [
			[x(i), y(row[name])],
			[x(i + 1), y(row[name])],
		])
	const every = Math.max(1, Math.ceil((answers.length * 60) / (width - left - right)))
	return frame(
		width,
		height,
		t("Estimated share of people up to each of {number} values; the table has the same numbers", {
			number: answers.length,
		}),
		...[0, 0.25, 0.5, 0.75, 1].flatMap((v) => [
			s("path", {
				d: path([
					[left, y(v)],
					[width - right, y(v)],
				]),
				class: v ? "rule" : "axis",
			}),
			label(left - 8, y(v) + 4, percent(v, 0), { "text-anchor": "end", class: "quiet" }),
		]),
		s("path", { d: `${path([...steps("low"), ...steps("high").reverse()])}Z`, class: "area" }),
		s("path", { d: path(steps("value")), class: "line" }),
		...answers.flatMap((row, i) =>
			i % every
				? []
				: [label(x(i), height - bottom + 20, cut(String(row.answer), 8), { "text-anchor": "middle", class: "quiet" })],
		),
		label((left + width - right) / 2, height - 4, t("value"), { "text-anchor": "middle" }),
	)
}

/** Shortens a name to at most this many characters. @param {string} name @param {number} most */
const cut = (name, most) => (name.length > most ? `${name.slice(0, Math.max(1, Math.floor(most) - 1))}…` : name)

/**
 * Draws a map whose cells are darker for larger shares, and dashed where there are too few answers.
 * @param {Row[]} rows
 * @param {{ rows: number, columns: number, order: number[], rowNames: any[], columnNames: any[], map: boolean }} grid
 * @param {string[]} names
 * @param {number} width
 * @param {number} most the share of the darkest colour
 * @param {import("./districts.js").Background | null} [background]
 * @param {number} [widest] the largest side of a cell
 */
export function heatMap(rows, grid, names, width, most, background = null, widest = 76) {
	const left = grid.map ? 0 : Math.min(130, 16 + 7.4 * Math.max(...grid.rowNames.map((name) => String(name).length))),
		top = grid.map ? 0 : 26
	const side = Math.max(4, Math.min(widest, (width - left) / grid.columns)),
		legend = 46
	const paint = getComputedStyle(document.documentElement)
	const [from, to] = ["--sunken", "--accent"].map((name) => rgb(paint.getPropertyValue(name)))
	const colour = (/** @type {number} */ share) =>
		from.map((c, i) => Math.round(c + (to[i] - c) * Math.min(1, Math.max(0, share))))
	const height = top + grid.rows * side + legend,
		whole = left + grid.columns * side
	const cells = grid.order.map((place, i) => {
		const row = rows[place],
			open = unsure(row),
			share = within(row.frequency),
			fill = colour(open && !rare(row) ? 0 : share / most)
		const x = left + (i % grid.columns) * side,
			y = top + Math.floor(i / grid.columns) * side
		return s(
			"g",
			{},
			s(
				"rect",
				{ x, y, width: side, height: side, rx: 3, class: "patch", fill: `rgb(${fill})` },
				s(
					"title",
					{},
					`${names[place]}: ${rare(row) ? t("at most {bound}", { bound: percent(row.high) }) : open ? t("not enough answers yet") : percent(share)}, ${t("{low} to {high}", { low: percent(row.low), high: percent(row.high) })}`,
				),
			),
			open &&
				side > 14 &&
				s("rect", { x: x + 4, y: y + 4, width: side - 8, height: side - 8, rx: 2, class: "unsettled" }),
			side >= 44 &&
				!open &&
				label(x + side / 2, y + side / 2 + 4, percent(share), {
					"text-anchor": "middle",
					class: luminance(fill) > 0.18 ? "on-light" : "on-dark",
				}),
		)
	})
	const scale = Array.from({ length: 24 }, (_, i) =>
		s("rect", { x: left + i * 6, y: height - 30, width: 6.5, height: 12, fill: `rgb(${colour(i / 23)})` }),
	)
	return frame(
		Math.min(width, Math.max(whole, left + 240)),
		height,
		t("Map of estimated shares; the table has the same numbers"),
		...(grid.map
			? []
			: [
					...grid.rowNames.map((name, i) =>
						label(left - 10, top + (i + 0.5) * side + 4, cut(String(name), left / 7.4), { "text-anchor": "end" }),
					),
					...grid.columnNames.map((name, i) =>
						label(left + (i + 0.5) * side, 16, cut(String(name), side / 7.4), { "text-anchor": "middle" }),
					),
				]),
		...cells,
		...(background ? outlines(background, grid.columns * side, grid.rows * side, 13, left, top) : []),
		...scale,
		label(left, height - 4, "0%", { class: "quiet" }),
		label(left + 144, height - 4, percent(most), { "text-anchor": "end", class: "quiet" }),
	)
}

/** Parses a colour of the form #rrggbb. @param {string} hex */
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.trim().slice(i, i + 2), 16))

/** Returns the relative luminance of a colour, as WCAG 2 defines it. @param {number[]} colour */
export function luminance(colour) {
	const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
	return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** Width and height of a chart. @param {SVGSVGElement} svg */
const sizeOf = (svg) => ({ width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")) })

/** Height of a line of the heading of a picture. */
const LINE = 22

/**
 * Returns charts, one below another, as a PNG with a heading. Draws their shapes on a canvas, because the content
 * security policy blocks images
 * from data or blob URLs.
 * @param {SVGSVGElement[]} svgs
 * @param {string[]} lines
 * @returns {Promise<Blob>}
 */
export function png(svgs, lines, scale = 2, margin = 16) {
	const sizes = svgs.map(sizeOf),
		width = Math.max(420, ...sizes.map((size) => size.width)),
		height = sizes.reduce((sum, size) => sum + size.height + margin, lines.length * LINE)
	const canvas = h("canvas", { width: (width + 2 * margin) * scale, height: (height + 2 * margin) * scale })
	const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
	context.scale(scale, scale)
	const paint = getComputedStyle(document.documentElement)
	context.fillStyle = paint.getPropertyValue("--surface")
	context.fillRect(0, 0, width + 2 * margin, height + 2 * margin)
	context.translate(margin, margin)
	context.fillStyle = paint.getPropertyValue("--ink")
	lines.forEach((line, i) => {
		context.font = `${i ? 13 : 15}px system-ui, sans-serif`
		context.fillText(line, 0, i * LINE + 14, width)
	})
	context.translate(0, lines.length * LINE)
	svgs.forEach((svg, i) => {
		drawShapes(context, svg)
		context.translate(0, sizes[i].height + margin)
	})
	return new Promise((resolve, reject) =>
		canvas.toBlob(
			(blob) =>
				blob ? resolve(blob) : reject(new Error(t("The browser could not create the image. Try another browser."))),
			"image/png",
		),
	)
}

/** Properties of the style sheet that the shapes of a chart have. */
const INLINED = [
	"fill",
	"fill-opacity",
	"stroke",
	"stroke-width",
	"stroke-dasharray",
	"font-size",
	"font-family",
	"text-anchor",
]

/**
 * Returns charts, one below another, as an SVG file with a heading; the file holds the styles.
 * @param {SVGSVGElement[]} svgs
 * @param {string[]} lines
 */
export function svgFile(svgs, lines, margin = 16) {
	const sizes = svgs.map(sizeOf),
		width = Math.max(420, ...sizes.map((size) => size.width)) + 2 * margin,
		ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim()
	let y = margin + lines.length * LINE
	const charts = svgs.map((svg, i) => {
		const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true)),
			originals = svg.querySelectorAll("*")
		copy.querySelectorAll("*").forEach((shape, n) => {
			const style = getComputedStyle(originals[n])
			for (const name of INLINED) shape.setAttribute(name, style.getPropertyValue(name))
			shape.removeAttribute("class")
		})
		copy.setAttribute("x", String(margin))
		copy.setAttribute("y", String(y))
		y += sizes[i].height + margin
		return copy
	})
	const heading = lines.map((line, i) =>
		label(margin, margin + i * LINE + 14, line, {
			fill: ink,
			"font-size": i ? 13 : 15,
			"font-family": "system-ui, sans-serif",
		}),
	)
	const file = s(
		"svg",
		{ width, height: y, viewBox: `0 0 ${width} ${y}` },
		s("title", {}, lines.join("; ")),
		s("rect", {
			width,
			height: y,
			fill: getComputedStyle(document.documentElement).getPropertyValue("--surface").trim(),
		}),
		...heading,
		...charts,
	)
	return new Blob([new XMLSerializer().serializeToString(file)], { type: "image/svg+xml" })
}

/** Draws the shapes of a chart on a canvas. @param {CanvasRenderingContext2D} context @param {SVGSVGElement} svg */
function drawShapes(context, svg) {
	for (const shape of svg.querySelectorAll("rect, path, circle, text")) {
		const style = getComputedStyle(shape),
			number = (/** @type {string} */ name) => Number(shape.getAttribute(name) ?? 0)
		context.save()
		const turn = /rotate\((\S+) (\S+) (\S+)\)/.exec(shape.getAttribute("transform") ?? "")
		if (turn) {
			context.translate(Number(turn[2]), Number(turn[3]))
			context.rotate((Number(turn[1]) * Math.PI) / 180)
			context.translate(-Number(turn[2]), -Number(turn[3]))
		}
		if (shape.tagName === "text") {
			context.font = `${style.fontSize} ${style.fontFamily}`
			context.textAlign = /** @type {any} */ ({ middle: "center", end: "right" })[style.textAnchor] ?? "left"
			context.fillStyle = style.fill
			context.fillText(shape.textContent ?? "", number("x"), number("y"))
		} else {
			const outline = new Path2D(shape.getAttribute("d") ?? "")
			if (shape.tagName === "rect")
				outline.roundRect(number("x"), number("y"), number("width"), number("height"), number("rx"))
			if (shape.tagName === "circle") outline.arc(number("cx"), number("cy"), number("r"), 0, 7)
			if (style.fill !== "none") {
				context.globalAlpha = Number(style.fillOpacity)
				context.fillStyle = style.fill
				context.fill(outline)
				context.globalAlpha = 1
			}
			if (style.stroke !== "none") {
				context.strokeStyle = style.stroke
				context.lineWidth = parseFloat(style.strokeWidth)
				context.setLineDash((style.strokeDasharray.match(/[\d.]+/g) ?? []).map(Number))
				context.stroke(outline)
			}
		}
		context.restore()
	}
}

/**
 * Draws the share of one value over waves, with intervals.
 * @param {{ wave: number, row: Row }[]} points
 * @param {number} count of all waves
 * @param {number} most the end of the axis
 * @param {string} name
 * @param {number} width
 */
export function trendChart(points, count, most, name, width) {
	const height = 150,
		left = 44,
		right = 12,
		top = 10,
		bottom = 26,
		low = Math.min(0, ...points.map(({ row }) => row.low))
	const x = (/** @type {number} */ wave) => left + ((wave + 0.5) / count) * (width - left - right)
	const y = (/** @type {number} */ v) => top + ((most - v) / (most - low)) * (height - top - bottom)
	const step = stepFor(most - low, 3),
		first = Math.ceil(low / step),
		marks = Array.from({ length: Math.floor(most / step) - first + 1 }, (_, i) => (first + i) * step)
	const every = Math.ceil(count / Math.max(1, Math.floor((width - left - right) / 34)))
	const waves = Array.from({ length: count }, (_, i) => i).filter((i) => i % every === 0)
	return frame(
		width,
		height,
		`${name}: ${points.map(({ wave, row }) => `${t("Wave {number}", { number: wave + 1 })} ${percent(row.frequency)}, ${t("{low} to {high}", { low: percent(row.low), high: percent(row.high) })}`).join("; ")}`,
		...marks.flatMap((v) => [
			s("path", {
				d: path([
					[left, y(v)],
					[width - right, y(v)],
				]),
				class: v ? "rule" : "axis",
			}),
			label(left - 6, y(v) + 4, percent(v, step < 0.01 ? 1 : 0), { "text-anchor": "end", class: "quiet" }),
		]),
		...waves.map((wave) => label(x(wave), height - 8, String(wave + 1), { "text-anchor": "middle", class: "quiet" })),
		points.length > 1 &&
			s("path", { d: path(points.map(({ wave, row }) => [x(wave), y(row.frequency)])), class: "line" }),
		...points.flatMap(({ wave, row }) => [
			s("path", {
				d: path([
					[x(wave), y(row.low)],
					[x(wave), y(row.high)],
				]),
				class: "whisker",
			}),
			s("circle", { cx: x(wave), cy: y(row.frequency), r: 4, class: "dot" }),
		]),
	)
}
