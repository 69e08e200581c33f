// Inputs for numbers on the survey page: a scale of a few numbers, or a field for any number, which the device puts
// into a bin.
import { labelsOf, nameOf } from "./domains.js"
import { h } from "./dom.js"
import { number as formatted, quoted, t } from "./messages.js"

/** Maximum numbers of a scale; longer ranges have a field. */
const MOST_STEPS = 12

/** Whether the numbers of a domain are divided into bins. @param {any} domain */
const isBinned = (domain) => !!domain.bins || !!domain.edges

/** Returns the least and the greatest number of a domain. @param {any} domain */
const boundsOf = ({ edges, low, high, bins }) =>
	edges ? [edges[0], edges[edges.length - 1]] : [low, bins ? high : high - 1]

/** Returns the numbers that numbers outside count as, or null if people cannot enter such numbers. @param {any} domain */
export const clippedTo = (domain) =>
	isNumeric(domain) && domain.out_of_range !== "refuse" && (isBinned(domain) || labelsOf(domain).length > MOST_STEPS)
		? boundsOf(domain)
		: null

/** Whether the values of a domain are whole numbers or bins of numbers. @param {any} domain */
export const isNumeric = (domain) => domain.low !== undefined || !!domain.bins || !!domain.edges

/**
 * The forms of a number whose places begin with a point, or with a comma; the other mark, spaces and apostrophes
 * separate thousands.
 */
const [POINT, COMMA] = [
	[",", "."],
	[".", ","],
].map(([thousands, places]) =>
	RegExp(
		`^([-+−]?)(?=[${places}٫]?\\d)(\\d*|[1-9]\\d{0,2}(?:[${thousands}\\s'’٬]\\d{3})+)(?:[${places}٫](\\d+))?(e[-+]?\\d+)?$`,
		"i",
	),
)

/**
 * Returns the numbers that a person may mean: “4.500” is 4500 in some countries and 4.5 in others.
 * @param {string} typed
 * @returns {number[]}
 */
function readings(typed) {
	const content = typed.trim().replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
	const numbers = [POINT, COMMA]
		.map((form) => form.exec(content))
		.filter((match) => match !== null)
		.map(([, sign, integer, places = "", exponent = ""]) =>
			Number(`${sign.replace("−", "-")}${integer.replace(/\D/g, "")}.${places}0${exponent}`),
		)
	return [...new Set(numbers)]
}

/**
 * Formats one of two readings so that it has only this one: a number with three places gets a fourth.
 * @param {number} reading
 */
const unambiguous = (reading) =>
	formatted(reading, {
		useGrouping: false,
		maximumFractionDigits: 20,
		minimumFractionDigits: /\.\d{3}$/.test(String(reading)) ? 4 : 0,
	})

/**
 * Creates the input for a number. `place` returns the index of a number, or −1 if the domain has no place for it.
 * @param {any} domain
 * @param {(value: any) => number} place
 * @param {{ low_label?: string, high_label?: string }} presentation
 * @param {(value: any) => void} chosen
 */
export function numberChoice(domain, place, presentation, chosen) {
	const labels = labelsOf(domain),
		isWhole = !isBinned(domain)
	return isWhole && labels.length <= MOST_STEPS
		? scale(labels, presentation, chosen)
		: field(domain, labels, isWhole, place, chosen)
}

/**
 * Creates a row of numbers, with the author's words at both ends.
 * @param {any[]} labels
 * @param {{ low_label?: string, high_label?: string }} presentation
 * @param {(value: any) => void} chosen
 */
function scale(labels, { low_label: low = "", high_label: high = "" }, chosen) {
	const inputs = labels.map((label, i) =>
		h("input", { type: "radio", name: "answer-0", value: i, onchange: () => chosen(label) }),
	)
	const end = (/** @type {string} */ words, /** @type {string} */ side) =>
		words && h("span", { class: `end ${side}`, dir: "auto" }, words)
	// Screen readers announce the words of an end with its number.
	const named = (/** @type {number} */ i) =>
		[String(labels[i]), i === 0 && low, i === labels.length - 1 && high].filter(Boolean).join(": ")
	const row = h(
		"div",
		{ class: "scale" },
		...inputs.map((input, i) => {
			if ((i === 0 && low) || (i === labels.length - 1 && high)) input.setAttribute("aria-label", named(i))
			return h("label", { class: "choice" }, input, h("span", { dir: "auto" }, String(labels[i])))
		}),
	)
	const value = () => {
		const at = inputs.findIndex(({ checked }) => checked)
		return at < 0 ? undefined : labels[at]
	}
	return {
		element: h(
			"fieldset",
			{},
			h("legend", {}, t("your-answer")),
			(low || high) && h("div", { class: "ends" }, end(low, "low"), end(high, "high")),
			row,
		),
		value,
		check: false,
	}
}

/**
 * Creates a field for a number.
 * @param {any} domain
 * @param {any[]} labels
 * @param {boolean} isWhole
 * @param {(value: any) => number} place
 * @param {(value: any) => void} chosen
 */
function field(domain, labels, isWhole, place, chosen) {
	const [low, high] = boundsOf(domain)
	const counted = h("p", { class: "quiet", "aria-live": "polite", id: "counted" }, t("not-chosen"))
	const input = h("input", {
		type: "text",
		id: "number",
		inputmode: "decimal",
		autocomplete: "off",
		oninput: () => show(),
		// The enter key checks the number, and does not send it.
		onkeydown: (/** @type {KeyboardEvent} */ event) =>
			event.key === "Enter" && value() === undefined && event.preventDefault(),
	})
	const none =
		domain.missing === undefined
			? null
			: h("input", {
					type: "checkbox",
					id: "number-missing",
					onchange: () => {
						input.disabled = !!none?.checked
						show()
					},
				})
	const value = () => {
		if (none?.checked) return domain.missing
		const [number, other] = readings(input.value)
		return Number.isFinite(number) && other === undefined && place(number) >= 0 ? number : undefined
	}
	/** @param {any} given */
	const nameFor = (given) => nameOf(labels[place(given)], domain)
	/** Returns why there is no value yet. */
	const problem = () => {
		const [first, second] = readings(input.value).map(unambiguous)
		if (second !== undefined) return t("number-two-ways", { first, second })
		return t(!input.value.trim() ? "not-chosen" : isWhole ? "number-whole" : "number-wrong", { low, high })
	}
	const show = () => {
		const given = value()
		counted.textContent = given === undefined ? problem() : t("counted-as", { name: quoted(nameFor(given)) })
		if (given !== undefined) chosen(given)
	}
	const hint = `${t("number-range", { low, high })}${domain.out_of_range === "refuse" ? "" : ` ${t("number-nearest")}`}`
	const element = h(
		"div",
		{ class: "field" },
		h("label", { for: "number" }, t("your-number"), h("span", { class: "hint" }, hint)),
		input,
		none && h("label", { class: "choice" }, none, h("span", { dir: "auto" }, String(domain.missing))),
		counted,
	)
	return {
		element,
		value,
		check: true,
		describe: (/** @type {any} */ given) =>
			typeof given === "number" && !isWhole
				? t("number-counted", { number: given, name: nameFor(given) })
				: nameFor(given),
	}
}
