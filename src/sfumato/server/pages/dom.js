// Helpers for all pages: elements, number formats, downloads.
import { number, t } from "./messages.js"

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * Sets attributes, event listeners and children of an element.
 * @param {Element} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
		else if (name === "value") Object.assign(element, { value })
		else if (value === true) element.setAttribute(name, "")
		else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, String(value))
	}
	for (const child of children) if (child || child === 0) element.append(child instanceof Node ? child : String(child))
}

/** Creates an HTML element. @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Attributes} [attributes]
 * @param {Child[]} children @returns {HTMLElementTagNameMap[T]} */
export function h(tag, attributes = {}, ...children) {
	const element = document.createElement(tag)
	fill(element, attributes, children)
	return element
}

/**
 * Creates an SVG element.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
	fill(element, attributes, children)
	return element
}

/** Returns the element with this id. @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id)

/** Formats a share as a percentage. @param {number} share */
export function percent(share, digits = 1) {
	return number(share, {
		style: "percent",
		minimumFractionDigits: digits,
		maximumFractionDigits: digits,
		signDisplay: /** @type {any} */ ("negative"),
	}).replace("-", "−")
}

/** Formats a number rounded to an integer, with separators. @param {number} n */
export const whole = (n) => number(Math.round(n))

/** Saves content as a file with this name. @param {string} name @param {Blob} content */
export function download(name, content) {
	const address = URL.createObjectURL(content),
		link = h("a", { href: address, download: name })
	link.click()
	setTimeout(() => URL.revokeObjectURL(address), 10000)
}

/** Returns rows as a CSV file. @param {any[][]} rows */
export function csv(rows) {
	const cell = (/** @type {any} */ value) => {
		const given = value === null || value === undefined ? "" : String(value)
		// A spreadsheet would run a cell that begins like a formula.
		const content = /^[=+\-@\t\r\n＝＋－＠]/.test(given) && Number.isNaN(Number(given)) ? `'${given}` : given
		return /[",\r\n]/.test(content) ? `"${content.replaceAll('"', '""')}"` : content
	}
	return new Blob([rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" })
}

/**
 * Creates a field with a link or several lines, and a button that copies it.
 * @param {string} content
 * @param {string} about
 * @param {boolean} [long]
 */
export function copyable(content, about, long = false) {
	const attributes = { readonly: true, value: content, "aria-label": about, onfocus: () => field.select() }
	const field = long
		? h("textarea", { ...attributes, rows: 4, class: "short" })
		: h("input", { ...attributes, type: "text" })
	const button = h(
		"button",
		{
			type: "button",
			onclick: async () => {
				field.select()
				try {
					await navigator.clipboard.writeText(content)
					button.textContent = t("Copied")
				} catch {
					button.textContent = t("Selected")
				}
				setTimeout(() => (button.textContent = t("Copy")), 2000)
			},
		},
		t("Copy"),
	)
	return h("div", { class: "copy" }, field, button)
}
