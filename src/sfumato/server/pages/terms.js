// Plain words with their technical term: shown on hover, by keyboard focus and by touch, with a link to the guide of
// the collector.
import { h } from "./dom.js"
import { t } from "./owners.js"

/** The technical term of plain words, by the name of its section in guide.html. */
const TERMS = {
	level: t("Technical term: epsilon (ε), the privacy level."),
	alike: t("Technical term: classical local differential privacy, one ε for all pairs of values."),
	interval: t("Technical term: half the width of a 95% confidence interval, 1.96 standard errors."),
	misplaced: t("Technical term: total variation distance between the estimated and the true shares."),
	randomizer: t("Technical term: mechanism, a random function from values to reports."),
	simulated: t("Technical term: a draw of the counts from their law, for the expected frequencies."),
}

let count = 0

/**
 * Creates words whose technical term appears next to them. The note stays open while the mouse or the focus is on it,
 * and Escape closes it.
 * @param {keyof typeof TERMS} name
 * @param {string} words
 */
export function term(name, words) {
	const id = `term-${name}-${++count}`
	const note = h(
		"span",
		{ class: "note", id, role: "note", hidden: true },
		TERMS[name],
		" ",
		h("a", { href: `/guide#${name}`, target: "_blank" }, t("Read more")),
	)
	const button = h(
		"button",
		{
			type: "button",
			class: "term",
			"aria-expanded": "false",
			"aria-controls": id,
			onclick: () => {
				button.focus()
				show(true)
			},
		},
		words,
	)
	const show = (/** @type {boolean} */ is) => {
		note.hidden = !is
		button.setAttribute("aria-expanded", String(is))
	}
	const whole = h(
		"span",
		{
			class: "with-note",
			onfocusin: () => show(true),
			onkeydown: (/** @type {KeyboardEvent} */ event) => {
				if (event.key !== "Escape") return
				button.focus()
				show(false)
			},
			onfocusout: (/** @type {FocusEvent} */ event) =>
				whole.contains(/** @type {Node | null} */ (event.relatedTarget)) || show(false),
			onpointerenter: (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && show(true),
			onpointerleave: (/** @type {PointerEvent} */ event) =>
				event.pointerType === "mouse" && !whole.contains(document.activeElement) && show(false),
		},
		button,
		note,
	)
	return whole
}
