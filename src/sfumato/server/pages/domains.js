// Domains from their documents (docs/collector.md): values in order, and their display names.
import { quoted, t } from "./messages.js"

/**
 * @typedef {{ values?: any[], size?: number, low?: any, high?: any, bins?: number, edges?: any[], closed?: string,
 * missing?: string, grid?: any,
 * product?: Record<string, any>, order?: string[] }} DomainDocument
 */

/**
 * Returns the factors of a product or a grid, in order; other domains have one factor without a name.
 * @param {DomainDocument} domain
 */
export function factorsOf(domain) {
	const { grid, product, order } = domain
	if (grid)
		return [
			{ name: "row", labels: numbers(grid.rows) },
			{ name: "column", labels: numbers(grid.columns) },
		]
	if (!product)
		return [
			{
				name: "",
				labels: domain.values ?? [...numericLabels(domain), ...(domain.missing === undefined ? [] : [domain.missing])],
			},
		]
	return (order ?? Object.keys(product)).map((name) => {
		const factor = product[name]
		return { name, labels: /** @type {any[]} */ (Array.isArray(factor) ? factor : labelsOf(factor)) }
	})
}

const numbers = (size = 0) => Array.from({ length: size }, (_, i) => i)

/**
 * Returns the labels of numbers, without the label of missing values.
 * @param {DomainDocument} domain
 * @returns {any[]}
 */
function numericLabels({ size = 0, low, high, bins, edges, closed }) {
	if (!edges && !bins) return low === undefined ? numbers(size) : numbers(high - low).map((i) => low + i)
	const right = closed === "right",
		names = edges ? edges.map(String) : evenEdges(low, high, bins ?? 1),
		last = names.length - 2
	return numbers(last + 1).map(
		(i) => `${right && i ? "(" : "["}${names[i]}, ${names[i + 1]}${right || i === last ? "]" : ")"}`,
	)
}

/** Returns the edges of equal bins in plain digits: exact decimals, or fractions. @param {any} low @param {any} high */
function evenEdges(low, high, bins = 1) {
	const [[a, b], [c, d]] = [low, high].map((bound) => {
		const [, digits, places = "", by = "1"] = /^(-?\d+)(?:\.(\d+))?(?:\/(\d+))?$/.exec(String(bound)) ?? ["", "0"]
		return [BigInt(digits + places), BigInt(by) * 10n ** BigInt(places.length)]
	})
	return numbers(bins + 1).map((i) => {
		let n = a * d * BigInt(bins - i) + c * b * BigInt(i),
			rest = b * d * BigInt(bins),
			divisor = n < 0n ? -n : n
		for (let other = rest; other;) [divisor, other] = [other, divisor % other]
		n /= divisor
		rest /= divisor
		const base = 10n ** BigInt(rest.toString(2).length),
			size = n < 0n ? -n : n
		if (base % rest) return `${n}/${rest}`
		const places = `${(size % rest) * (base / rest)}`.padStart(`${base}`.length - 1, "0").replace(/0+$/, "")
		return `${n < 0n ? "-" : ""}${size / rest}${places && "." + places}`
	})
}

/**
 * Returns all values in order; the last factor of a product varies fastest.
 * @param {DomainDocument} domain
 * @returns {any[]}
 */
export function labelsOf(domain) {
	const factors = factorsOf(domain)
	if (factors.length === 1 && !domain.product) return factors[0].labels
	return factors.reduce(
		(all, { labels }) => all.flatMap((tuple) => labels.map((label) => [...tuple, label])),
		/** @type {any[][]} */ ([[]]),
	)
}

/**
 * Whether values are marks of a multiple choice: every attribute is an option, "no" or "yes".
 * @param {DomainDocument} domain
 */
export const isMarks = (domain) =>
	!!domain.product && factorsOf(domain).every(({ labels }) => labels.join() === "no,yes")

/** A bin of numbers: its ends, and whether each belongs to it. */
const BIN = /^([[(])(.+), (.+)([\])])$/

/** Returns the display name of a value. @param {any} value @param {DomainDocument} domain */
export function nameOf(value, domain) {
	const [, start, low, high, end] =
		((domain.bins || domain.edges) && typeof value === "string" && BIN.exec(value)) || []
	if (start) return t(end === ")" ? "bin-below" : start === "(" ? "bin-above" : "bin-both", { low, high })
	if (domain.grid) return t("cell", { row: value[0] + 1, column: value[1] + 1 })
	if (isMarks(domain) && Array.isArray(value))
		return (
			factorsOf(domain)
				.filter((_, i) => value[i] === "yes")
				.map(({ name }) => name)
				.join(", ") || t("none-marked")
		)
	return Array.isArray(value) ? value.join(" · ") : String(value)
}

/**
 * Returns rows and columns if the values are cells of a map or a grid, or pairs, else null. The first row of a map is
 * the southernmost, so it is
 * displayed last.
 * @param {DomainDocument} domain
 */
export function gridOf(domain) {
	const factors = factorsOf(domain)
	if (factors.length !== 2 || isMarks(domain)) return null
	const [rows, columns] = factors.map(({ labels }) => labels.length),
		map = !!domain.grid?.latitude
	/** Indices of the values in reading order. */
	const order = Array.from({ length: rows * columns }, (_, i) => {
		const row = Math.floor(i / columns)
		return (map ? rows - 1 - row : row) * columns + (i % columns)
	})
	return { rows, columns, order, rowNames: factors[0].labels, columnNames: factors[1].labels, map }
}

/** Joins names for a sentence: at most `most` of them, then how many more. @param {string[]} names */
export function listed(names, most = 6, count = names.length) {
	const shown = names.slice(0, most).map(quoted),
		more = count - shown.length
	if (more > 0) return t("or-more", { names: shown.join(", "), count: more })
	return shown.length < 2
		? shown.join("")
		: t("or", { first: shown.slice(0, -1).join(", "), last: shown[shown.length - 1] })
}
