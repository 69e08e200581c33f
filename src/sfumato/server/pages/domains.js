// Domains as their documents describe them (docs/collector.md): values in order, and names for people.

/** @typedef {{ values?: any[], size?: number, grid?: any, product?: Record<string, any>, order?: string[] }} DomainDocument */

/** The parts of a product or a grid, in order; of other domains, one part without a name. @param {DomainDocument} domain */
export function factorsOf(domain) {
	const { grid, product, order } = domain
	if (grid) return [{ name: "row", labels: numbers(grid.rows) }, { name: "column", labels: numbers(grid.columns) }]
	if (!product) return [{ name: "", labels: domain.values ?? numbers(domain.size ?? 0) }]
	return (order ?? Object.keys(product)).map((name) => {
		const factor = product[name]
		return { name, labels: /** @type {any[]} */ (Array.isArray(factor) ? factor : labelsOf(factor)) }
	})
}

const numbers = (size = 0) => Array.from({ length: size }, (_, i) => i)

/** Every value in order; the last part of a product runs fastest. @param {DomainDocument} domain @returns {any[]} */
export function labelsOf(domain) {
	const factors = factorsOf(domain)
	if (factors.length === 1 && !domain.product) return factors[0].labels
	return factors.reduce((all, { labels }) => all.flatMap((tuple) => labels.map((label) => [...tuple, label])), /** @type {any[][]} */ ([[]]))
}

/** What a value is called. @param {any} value @param {DomainDocument} domain */
export function nameOf(value, domain) {
	if (domain.grid) return `row ${value[0] + 1}, column ${value[1] + 1}`
	return Array.isArray(value) ? value.join(" · ") : String(value)
}

/** Rows and columns, where values lie on a map or are pairs; the map's first row is the southernmost, so it comes last.
 * @param {DomainDocument} domain */
export function gridOf(domain) {
	const factors = factorsOf(domain)
	if (factors.length !== 2) return null
	const [rows, columns] = factors.map(({ labels }) => labels.length)
	/** Places in reading order. */
	const order = Array.from({ length: rows * columns }, (_, i) => {
		const row = Math.floor(i / columns)
		return (domain.grid ? rows - 1 - row : row) * columns + (i % columns)
	})
	return { rows, columns, order, rowNames: factors[0].labels, columnNames: factors[1].labels, map: !!domain.grid }
}

/** Several names in a sentence. @param {string[]} names */
export function listed(names, most = 6, count = names.length) {
	const shown = names.slice(0, most).map((name) => `“${name}”`), more = count - shown.length
	if (more > 0) return `${shown.join(", ")} or ${more.toLocaleString("en")} more`
	return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} or ${shown[shown.length - 1]}`
}
