// The background of a map: shapes with names behind its cells, such as districts. Shapes come from a GeoJSON file that
// Studio reads in the browser; no map is
// requested from other hosts. Names are text, never HTML. Points are in ten-thousandths of the width and the height of
// the map, from its south-west corner.
import { h, s } from "./dom.js"
import { t } from "./messages.js"

/** @typedef {{ name?: string, rings: number[][][] }} Shape */
/** @typedef {{ shapes: Shape[], districts?: number[] }} Background */

export const UNIT = 10000

/** Returns the background of a collection, or null. @param {any} collection @returns {Background | null} */
export const backgroundOf = (collection) => collection?.presentation?.background ?? null

/** Returns the name of the district of a cell, or "". @param {Background | null} background @param {number} x */
export const districtName = (background, x) => {
	const district = background?.districts?.[x] ?? -1
	return district < 0 ? "" : background?.shapes[district].name || t("district", { number: district + 1 })
}

/**
 * Creates the outlines of a background and the names that fit into their shapes, for a map of this size with its
 * north-west corner at (left, top).
 * @param {Background} background
 * @param {number} width
 * @param {number} height
 * @param {number} font size of the names
 */
export function outlines({ shapes }, width, height, font, left = 0, top = 0) {
	const at = (/** @type {number[]} */ [x, y]) => [left + (x / UNIT) * width, top + (1 - y / UNIT) * height]
	return shapes
		.flatMap(({ name = "", rings }) => {
			const placed = rings.map((ring) => ring.map(at)),
				xs = placed.flat().map(([x]) => x),
				ys = placed.flat().map(([, y]) => y)
			const [low, high] = [Math.max(left, Math.min(...xs)), Math.min(left + width, Math.max(...xs))],
				[upper, lower] = [Math.max(top, Math.min(...ys)), Math.min(top + height, Math.max(...ys))]
			const outline = s(
				"path",
				{
					d: placed
						.map((ring) => `M${ring.map((point) => point.map((c) => Number(c.toFixed(3))).join(" ")).join("L")}`)
						.join(""),
					class: "outline",
				},
				s("title", {}, name),
			)
			const fits = name && name.length * font * 0.56 < high - low && font * 1.3 < lower - upper
			const label =
				fits &&
				s(
					"text",
					{ x: (low + high) / 2, y: (upper + lower) / 2, "text-anchor": "middle", class: "district-name" },
					name,
				)
			// The style sheet has a size for the text of charts.
			if (label) label.style.setProperty("font-size", `${font}px`)
			return [outline, label]
		})
		.filter((one) => one instanceof Node)
}

/** Units of the side of a cell in a layer. */
const CELL = 40

/**
 * Creates the layer of a background over the cells of a board.
 * @param {Background | null} background
 * @param {number} rows
 * @param {number} columns
 */
export function layer(background, rows, columns) {
	const width = columns * CELL,
		height = rows * CELL
	return (
		background &&
		s(
			"svg",
			{ class: "background", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
			...outlines(background, width, height, Math.max(14, width / 26)),
		)
	)
}

/** Steps of the zoom. */
const ZOOMS = [1, 1.5, 2, 3, 4, 6]

/**
 * Creates a frame in which a map can be enlarged; `draw` applies a zoom.
 * @param {HTMLElement} board
 * @param {(zoom: number) => void} draw
 * @param {string} about
 */
export function zoomable(board, draw, about) {
	let step = 0
	const change = (/** @type {number} */ by) => {
		step = Math.min(ZOOMS.length - 1, Math.max(0, step + by))
		draw(ZOOMS[step])
		smaller.setAttribute("aria-disabled", String(step === 0))
		larger.setAttribute("aria-disabled", String(step === ZOOMS.length - 1))
		view.classList.toggle("enlarged", step > 0)
		said.textContent = `${Math.round(100 * ZOOMS[step])}%`
	}
	const button = (/** @type {string} */ sign, /** @type {string} */ name, /** @type {number} */ by) =>
		h("button", { type: "button", class: "plain", "aria-label": name, title: name, onclick: () => change(by) }, sign)
	const smaller = button("−", t("zoom-out"), -1),
		larger = button("+", t("zoom-in"), 1),
		said = h("span", { class: "quiet small", role: "status" }, "100%")
	smaller.setAttribute("aria-disabled", "true")
	const view = h("div", { class: "view", tabindex: 0, role: "group", "aria-label": about }, board)
	return h(
		"div",
		{ class: "zoomable" },
		h("div", { class: "zoom", role: "group", "aria-label": t("zoom") }, smaller, larger, said),
		view,
	)
}
