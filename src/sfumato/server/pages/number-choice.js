// Inputs for numbers on the survey page: a scale of a few numbers, or a field for any number, which the device puts into a bin.
import { labelsOf, nameOf } from "./domains.js"
import { h } from "./dom.js"
import { t } from "./messages.js"

/** Maximum numbers of a scale; longer ranges have a field. */
const MOST_STEPS = 12

/** Whether the values of a domain are whole numbers or bins of numbers. @param {any} domain */
export const isNumeric = (domain) => domain.low !== undefined || !!domain.bins || !!domain.edges

/** Creates the input for a number. `place` returns the index of a number, or −1 if the domain has no place for it.
 * @param {any} domain @param {(value: any) => number} place @param {{ low_label?: string, high_label?: string }} presentation @param {(value: any) => void} chosen */
export function numberChoice(domain, place, presentation, chosen) {
	const labels = labelsOf(domain), isWhole = !domain.bins && !domain.edges
	return isWhole && labels.length <= MOST_STEPS ? scale(labels, presentation, chosen) : field(domain, labels, isWhole, place, chosen)
}

/** Creates a row of numbers, with the author's words at both ends. @param {any[]} labels @param {{ low_label?: string, high_label?: string }} presentation @param {(value: any) => void} chosen */
function scale(labels, { low_label: low = "", high_label: high = "" }, chosen) {
	const inputs = labels.map((label, i) => h("input", { type: "radio", name: "answer-0", value: i, onchange: () => chosen(label) }))
	const end = (/** @type {string} */ words, /** @type {string} */ side) => words && h("span", { class: `end ${side}`, dir: "auto" }, words)
	// Screen readers announce the words of an end with its number.
	const named = (/** @type {number} */ i) => [String(labels[i]), i === 0 && low, i === labels.length - 1 && high].filter(Boolean).join(": ")
	const row = h("div", { class: "scale" }, ...inputs.map((input, i) => {
		if ((i === 0 && low) || (i === labels.length - 1 && high)) input.setAttribute("aria-label", named(i))
		return h("label", { class: "choice" }, input, h("span", { dir: "auto" }, String(labels[i])))
	}))
	const value = () => {
		const at = inputs.findIndex(({ checked }) => checked)
		return at < 0 ? undefined : labels[at]
	}
	return { element: h("fieldset", {}, h("legend", {}, t("your-answer")), (low || high) && h("div", { class: "ends" }, end(low, "low"), end(high, "high")), row), value, check: false }
}

/** Creates a field for a number. @param {any} domain @param {any[]} labels @param {boolean} isWhole @param {(value: any) => number} place @param {(value: any) => void} chosen */
function field(domain, labels, isWhole, place, chosen) {
	const [low, high] = isWhole ? [domain.low, domain.high - 1] : domain.edges ? [domain.edges[0], domain.edges[domain.edges.length - 1]] : [domain.low, domain.high]
	const counted = h("p", { class: "quiet", "aria-live": "polite", id: "counted" }, t("not-chosen"))
	const input = h("input", { type: "number", id: "number", step: isWhole ? 1 : "any", inputmode: "decimal", autocomplete: "off", oninput: () => show(),
		// The enter key checks the number, and does not send it.
		onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && value() === undefined && event.preventDefault() })
	const none = domain.missing === undefined ? null : h("input", { type: "checkbox", id: "number-missing", onchange: () => {
		input.disabled = !!none?.checked
		show()
	} })
	const value = () => {
		if (none?.checked) return domain.missing
		const number = input.value.trim() === "" ? NaN : Number(input.value)
		return Number.isFinite(number) && place(number) >= 0 ? number : undefined
	}
	/** @param {any} given */
	const nameFor = (given) => nameOf(labels[place(given)], domain)
	const show = () => {
		const given = value()
		counted.textContent = given === undefined ? (input.value || input.validity.badInput ? t(isWhole ? "number-whole" : "number-wrong", { low, high }) : t("not-chosen")) : t("counted-as", { name: `“${nameFor(given)}”` })
		if (given !== undefined) chosen(given)
	}
	const hint = `${t("number-range", { low, high })}${domain.out_of_range === "refuse" ? "" : ` ${t("number-nearest")}`}`
	const element = h("div", { class: "field" }, h("label", { for: "number" }, t("your-number"), h("span", { class: "hint" }, hint)), input,
		none && h("label", { class: "choice" }, none, h("span", { dir: "auto" }, String(domain.missing))), counted)
	return { element, value, check: true, describe: (/** @type {any} */ given) => (typeof given === "number" && !isWhole ? t("number-counted", { number: given, name: nameFor(given) }) : nameFor(given)) }
}
