// Questions about numbers in Studio: a scale of whole numbers, or any number, which devices put into bins of equal
// width.
import { h } from "./dom.js"
import { t } from "./owners.js"

/** Maximum numbers of a scale, and maximum bins. */
const MOST_STEPS = 100,
	MOST_BINS = 1000

/** Whether the answers to a question are numbers. @param {{ kind: string }} question */
export const isNumber = ({ kind }) => kind === "scale" || kind === "number"

/** Returns the properties of a new question about numbers. */
export const newNumbers = () => ({
	low: 1,
	high: 5,
	from: 0,
	to: 100,
	bins: 10,
	learn: "shares",
	lowLabel: "",
	highLabel: "",
})

/** Returns what is to be learned from numbers, or "" for the share of every value. @param {any} question */
export const learnOf = (question) =>
	isNumber(question) && question.learn !== "shares" ? String(question.learn ?? "") : ""

/** Returns the width of the range of a question about numbers. @param {any} question */
export const spanOf = (question) =>
	question.kind === "scale" ? question.high - question.low : question.to - question.from

/** Returns the document of the domain. @param {any} question */
export function numericDomain({ kind, low, high, from, to, bins }) {
	if (kind === "scale") {
		if (
			!(Number.isInteger(low) && Number.isInteger(high) && low < high && high - low < MOST_STEPS && Math.abs(low) < 1e9)
		)
			throw new Error(
				t("A scale has two whole numbers at its ends, the smaller one first, and at most {most} steps.", {
					most: MOST_STEPS,
				}),
			)
		return { low, high: high + 1 }
	}
	if (!(Number.isFinite(from) && Number.isFinite(to) && from < to))
		throw new Error(t("Enter the least and the greatest number, the smaller one first."))
	if (!(Number.isInteger(bins) && bins >= 2 && bins <= MOST_BINS))
		throw new Error(t("Enter a number of bins from 2 to {most}.", { most: MOST_BINS }))
	// Documents have numbers with places as strings, which are exact.
	const exact = (/** @type {number} */ number) => (Number.isInteger(number) ? number : String(number))
	return { low: exact(from), high: exact(to), bins }
}

/**
 * Creates the inputs of a question about numbers.
 * @param {any} current
 * @param {{ field: any, input: any, oneOf: any, then: () => void, save: () => void, show: () => void }} tools
 */
export function numericInputs(current, { field, input, oneOf, then, save, show }) {
	const number = (
		/** @type {string} */ name,
		/** @type {string} */ label,
		/** @type {number | string} */ step,
		/** @type {string} */ hint = "",
	) => field(name, label, input(current, name, { type: "number", id: name, step }, then), hint)
	const words = (/** @type {string} */ name, /** @type {string} */ label) =>
		field(name, label, input(current, name, { type: "text", id: name, maxlength: 200 }, save), t("Optional."))
	const numbers =
		current.kind === "scale"
			? [
					h("div", { class: "row" }, number("low", t("Lowest number"), 1), number("high", t("Highest number"), 1)),
					h(
						"div",
						{ class: "row" },
						words("lowLabel", t("Words at the lowest number")),
						words("highLabel", t("Words at the highest number")),
					),
				]
			: [
					h(
						"div",
						{ class: "row" },
						number("from", t("Least number"), "any"),
						number("to", t("Greatest number"), "any"),
						number("bins", t("Bins of equal width"), 1),
					),
					h(
						"p",
						{ class: "hint" },
						t(
							"Participants enter a number. Their device finds its bin and sends a random reply about the bin. Numbers outside the range count in the nearest bin.",
						),
					),
				]
	return [
		...numbers,
		oneOf(
			current,
			"learn",
			t("What do you want to learn?"),
			[
				["shares", t("The share of each value"), t("as for a list")],
				["mean", t("The mean"), t("with much less error than from shares")],
				["distribution", t("The share of people up to each value"), t("for medians and other quantiles")],
			],
			() => {
				show()
				then()
			},
		),
	]
}
