// A board on which users mark values with a brush: a list or a map, by mouse, touch or keyboard.
import { h } from "./dom.js"
import { t } from "./owners.js"

/** @typedef {{ name: string, className: string, mark: string }} Brush */

/**
 * Creates a board. `order` holds the indices of the values in reading order; `columns` is 0 for a list.
 * @param {{ names: string[], order: number[], columns: number, marks: number[], brushes: Brush[], brush: number,
 *   about: string, onpaint: (place: number, brush: number) => void, onbrush: (brush: number) => void, background?: Node
 *   | null }} what
 */
export function painter({ names, order, columns, marks, brushes, brush, about, onpaint, onbrush, background = null }) {
	let active = 0
	const palette = h(
		"div",
		{ class: "brushes", role: "group", "aria-label": t("Brush") },
		...brushes.map((option, i) =>
			h(
				"button",
				{ type: "button", "aria-pressed": String(i === brush), onclick: () => choose(i) },
				h("span", { class: `swatch ${option.className}` }),
				option.name,
			),
		),
	)
	const cells = order.map((place, i) =>
		h("button", { type: "button", class: "cell", tabindex: i ? -1 : 0, "data-cell": i }),
	)
	const board = h(
		"div",
		{ class: columns ? "cells map" : "cells", role: "group", "aria-label": about },
		...cells,
		background,
	)
	board.style.setProperty("--columns", String(columns || 1))

	function show(i = 0) {
		const { name, className, mark } = brushes[marks[order[i]]],
			cell = cells[i]
		cell.className = `cell ${className}`
		cell.setAttribute("aria-label", `${names[order[i]]}: ${name}`)
		cell.title = columns ? `${names[order[i]]}: ${name}` : ""
		cell.replaceChildren(
			...(columns ? [] : [names[order[i]]]),
			...(mark ? [h("span", { class: "mark", "data-mark": mark })] : []),
		)
	}
	function paint(i = 0, mark = brush) {
		if (marks[order[i]] === mark) return
		marks[order[i]] = mark
		show(i)
		onpaint(order[i], mark)
	}
	function choose(index = 0) {
		brush = index
		;[...palette.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === index)))
		onbrush(index)
	}
	// The tab key reaches one cell: the one that last had the focus.
	board.addEventListener("focusin", ({ target }) => {
		cells[active].tabIndex = -1
		active = Math.max(0, cells.indexOf(/** @type {HTMLButtonElement} */ (target)))
		cells[active].tabIndex = 0
	})
	/** Returns the cell that an arrow key moves to: by rows on a map, cell by cell in a list. @param {string} key */
	function next(key) {
		const step = /** @type {Record<string, number>} */ ({
			ArrowLeft: -1,
			ArrowRight: 1,
			ArrowUp: -(columns || 1),
			ArrowDown: columns || 1,
		})[key]
		return step && cells[active + step] ? active + step : active
	}
	const cellAt = (/** @type {PointerEvent} */ event) => {
		const under = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-cell]")
		return under && board.contains(under) ? Number(under.getAttribute("data-cell")) : -1
	}

	// A stroke paints all cells that it crosses. With two brushes, a stroke that begins on a painted cell erases instead.
	let stroke = -1
	board.addEventListener("pointerdown", (event) => {
		const i = cellAt(event)
		if (i < 0 || event.button) return
		stroke = brushes.length === 2 && marks[order[i]] === brush ? 1 - brush : brush
		if (event.pointerType === "mouse") event.preventDefault()
		board.setPointerCapture(event.pointerId)
		paint(i, stroke)
		cells[i].focus()
	})
	board.addEventListener("pointermove", (event) => {
		const i = stroke < 0 ? -1 : cellAt(event)
		if (i >= 0) paint(i, stroke)
	})
	for (const end of ["pointerup", "pointercancel"]) board.addEventListener(end, () => (stroke = -1))
	board.addEventListener("keydown", (event) => {
		const number = Number(event.key)
		if (event.key.startsWith("Arrow")) {
			cells[next(event.key)].focus()
			if (event.shiftKey) paint(active)
		} else if (event.key === " " || event.key === "Enter") {
			paint(active, brushes.length === 2 && marks[order[active]] === brush ? 1 - brush : brush)
		} else if (number >= 1 && number <= brushes.length && brushes.length > 2) {
			choose(number - 1)
			paint(active)
		} else return
		event.preventDefault()
	})
	cells.forEach((_, i) => show(i))
	return h("div", {}, palette, board)
}
