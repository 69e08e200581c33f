// Options of the results page. All questions of the page share them, and the address holds them, so that a link shows
// the same page.
import { h, percent } from "./dom.js"
import { t } from "./owners.js"

export const LEVELS = ["0.9", "0.95", "0.99"]
/** @type {Record<string, string>} */
export const METHODS = {
	unbiased: t("unbiased"),
	efficient: t("efficient (least variance)"),
	simplex: t("projected onto valid shares"),
	mle: t("maximum likelihood"),
	bayes: t("shrunk (empirical Bayes)"),
	best: t("best of projected and shrunk"),
}
/** @type {Record<string, string>} */
export const SORTS = { "": t("automatic"), list: t("as in the survey"), share: t("by share"), label: t("by name") }
/** What groups are compared with. @type {Record<string, string>} */
export const AGAINST = {
	first: t("each group minus the first"),
	pairs: t("every two groups"),
	rest: t("each group minus all others together"),
}

/** Milliseconds after the last key before a filter applies, because browsers limit changes of the address. */
const TYPING = 150

/** @typedef {{ method: string, level: string, view: string, sort: string, filter: string, against: string }} Options */

/**
 * Reads options from an address; unknown ones have their defaults.
 * @param {URLSearchParams} parameters
 * @returns {Options}
 */
export function readOptions(parameters) {
	const one = (/** @type {string} */ name, /** @type {string[]} */ known, /** @type {string} */ usual) => {
		const stated = parameters.get(name) ?? usual
		return known.includes(stated) ? stated : usual
	}
	return {
		method: one("method", Object.keys(METHODS), "unbiased"),
		level: one("level", LEVELS, "0.95"),
		view: one("view", ["bars", "map"], ""),
		sort: one("sort", Object.keys(SORTS), ""),
		filter: parameters.get("filter") ?? "",
		against: one("against", Object.keys(AGAINST), "first"),
	}
}

/** Options of this page. */
export const chosen = readOptions(new URLSearchParams(location.search))

/** @type {((name: keyof Options) => void)[]} */
const listeners = []

/** Calls a function after each change of an option. @param {(name: keyof Options) => void} act */
export const onChoice = (act) => void listeners.push(act)

/** Changes an option, the address, and all controls of the option. @param {keyof Options} name @param {string} value */
export function choose(name, value) {
	chosen[name] = value
	const address = new URL(location.href)
	if (value) address.searchParams.set(name, value)
	else address.searchParams.delete(name)
	history.replaceState(null, "", address)
	for (const control of document.querySelectorAll(`[data-option="${name}"]`))
		if (control !== document.activeElement) Object.assign(control, { value })
	for (const act of listeners) act(name)
}

/**
 * Creates a labelled choice of an option.
 * @param {"method" | "level" | "sort" | "against"} name
 * @param {Record<string, string>} entries
 * @param {string} title
 * @param {string} tag
 */
export function optionField(name, entries, title, tag) {
	const select = h(
		"select",
		{ id: `${name}${tag}`, "data-option": name, onchange: () => choose(name, select.value) },
		...Object.entries(entries).map(([value, label]) => h("option", { value, selected: chosen[name] === value }, label)),
	)
	return h("div", { class: "field" }, h("label", { for: select.id }, title), select)
}

/** Creates the field that filters values by their names. @param {string} tag */
export function filterField(tag) {
	let timer = 0
	const field = h("input", {
		type: "search",
		id: `filter${tag}`,
		"data-option": "filter",
		value: chosen.filter,
		oninput: () => {
			clearTimeout(timer)
			timer = window.setTimeout(() => choose("filter", field.value), TYPING)
		},
	})
	return h("div", { class: "field" }, h("label", { for: field.id }, t("Find a value")), field)
}

/** Returns the options that differ from their defaults, as a query. @param {(keyof Options)[]} names */
export function queryOf(names) {
	const usual = readOptions(new URLSearchParams())
	return new URLSearchParams(
		names.filter((name) => chosen[name] !== usual[name]).map((name) => [name, chosen[name]]),
	).toString()
}

/** Names the level and the method of the estimates. @param {{ method: string, level: string }} options */
export const aboutEstimates = ({ method, level } = chosen) =>
	t("{level} intervals, {method} estimate", { level: percent(Number(level), 0), method: METHODS[method] })

/** Returns the date of today, for files. */
export const today = () => new Date().toISOString().slice(0, 10)
