// Elements, files and numbers: the few things that every page needs.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/** @param {Element} element @param {Attributes} attributes @param {Child[]} children */
function fill(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
		else if (name === "value") Object.assign(element, { value })
		else if (value === true) element.setAttribute(name, "")
		else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, String(value))
	}
	for (const child of children) if (child || child === 0) element.append(child instanceof Node ? child : String(child))
}

/** An element of the page. @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Attributes} [attributes]
 * @param {Child[]} children @returns {HTMLElementTagNameMap[T]} */
export function h(tag, attributes = {}, ...children) {
	const element = document.createElement(tag)
	fill(element, attributes, children)
	return element
}

/** An element of a chart. @param {string} tag @param {Attributes} [attributes] @param {Child[]} children @returns {SVGElement} */
export function s(tag, attributes = {}, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
	fill(element, attributes, children)
	return element
}

/** The element of the page with this id. @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id)

/** A share as per cent. @param {number} share */
export function percent(share, digits = 1) {
	const text = (100 * share).toFixed(digits)
	return `${text.replace(/^-/, "−").replace(/^−(0\.?0*)$/, "$1")}%`
}

/** A bound as per cent: never shown lower than it is. @param {number} share */
export const atMost = (share) => `${Math.min(100, Math.ceil(1000 * share - 1e-9) / 10)}%`

/** @param {number} n */
export const whole = (n) => Math.round(n).toLocaleString("en")

/** @param {string} name @param {Blob} content */
export function download(name, content) {
	const address = URL.createObjectURL(content), link = h("a", { href: address, download: name })
	link.click()
	setTimeout(() => URL.revokeObjectURL(address), 10000)
}

/** Rows as a CSV file. @param {any[][]} rows */
export function csv(rows) {
	const cell = (/** @type {any} */ value) => {
		const text = value === null || value === undefined ? "" : String(value)
		return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
	}
	return new Blob([rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" })
}

/** A link in a field, with a button that copies it. @param {string} text @param {string} about */
export function copyable(text, about) {
	const field = h("input", { type: "text", readonly: true, value: text, "aria-label": about, onfocus: () => field.select() })
	const button = h("button", { type: "button", onclick: async () => {
		field.select()
		try {
			await navigator.clipboard.writeText(text)
			button.textContent = "Copied"
		} catch {
			button.textContent = "Selected"
		}
		setTimeout(() => (button.textContent = "Copy"), 2000)
	} }, "Copy")
	return h("div", { class: "copy" }, field, button)
}
