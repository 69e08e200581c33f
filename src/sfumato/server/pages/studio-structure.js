// The words of the author around the questions of a survey, in Studio.
import { h } from "./dom.js"
import { t } from "./owners.js"
/** @typedef {import("./structure.js").Presentation} Presentation */

/**
 * Returns the presentation that a survey states for one of its questions, or nothing. Every question has the consent
 * and the end, because each can be opened by itself.
 * @param {{ consent: string, ending: string }} survey
 * @param {{ heading?: string, section?: string, required?: boolean }} question
 * @param {Record<string, any>} [more]
 * @returns {{ presentation?: Presentation }}
 */
export function statedPresentation({ consent, ending }, { heading = "", section = "", required = false }, more = {}) {
	const words = { consent, heading, section, ending, ...more }
	const stated = Object.fromEntries(
		Object.entries(words)
			.map(([name, content]) => [name, typeof content === "string" ? content.trim() : content])
			.filter(([, content]) => content),
	)
	const presentation = { ...stated, ...(required && { required }) }
	return Object.keys(presentation).length ? { presentation } : {}
}

/**
 * Creates the fields of a question that say where it stands in the survey.
 * @param {any} current question
 * @param {(id: string, label: string, input: Node, hint?: string) => HTMLElement} field
 * @param {() => void} save
 */
export function placeFields(current, field, save) {
	const words = (/** @type {string} */ name, /** @type {any} */ attributes) =>
		h(attributes.rows ? "textarea" : "input", {
			id: name,
			...attributes,
			value: current[name] ?? "",
			oninput: (/** @type {any} */ event) => {
				current[name] = event.target.value
				save()
			},
		})
	return h(
		"details",
		{ open: !!(current.heading || current.section || current.required) },
		h("summary", {}, t("Section, required")),
		field(
			"heading",
			t("Heading of a section that begins here"),
			words("heading", { type: "text", maxlength: 200 }),
			t("Optional. Participants see it above this question."),
		),
		field("section", t("Introduction of the section"), words("section", { rows: 2, class: "short" })),
		h(
			"label",
			{ class: "choice" },
			h("input", {
				type: "checkbox",
				id: "required",
				checked: !!current.required,
				onchange: (/** @type {any} */ event) => {
					current.required = event.target.checked
					save()
				},
			}),
			h(
				"span",
				{},
				t("Required"),
				h("span", { class: "hint" }, t("the page offers no “I would rather not answer”; people can still close it")),
			),
		),
	)
}

/**
 * Creates the fields of a survey about its begin and its end.
 * @param {any} survey
 * @param {(id: string, label: string, input: Node, hint?: string) => HTMLElement} field
 * @param {() => void} save
 */
export function frameFields(survey, field, save) {
	const words = (/** @type {"consent" | "ending"} */ name) =>
		h("textarea", {
			id: name,
			rows: 3,
			maxlength: 20000,
			value: survey[name],
			oninput: (/** @type {any} */ event) => {
				survey[name] = event.target.value
				save()
			},
		})
	return [
		field(
			"consent",
			t("Consent"),
			words("consent"),
			t("Optional. Participants must agree to it before the first question. Nothing is drawn or sent before."),
		),
		field(
			"ending",
			t("Words at the end"),
			words("ending"),
			t("Optional. Participants see them after the last question."),
		),
	]
}
