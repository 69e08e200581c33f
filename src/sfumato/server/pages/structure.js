// The words of the author around the questions of a survey: consent, sections, the end. They are text, never HTML.
import { h } from "./dom.js"
import { t } from "./messages.js"

/**
 * How a survey page presents a collection.
 * @typedef {{ consent?: string, heading?: string, section?: string, required?: boolean, ending?: string,
 * low_label?: string, high_label?: string, background?: import("./districts.js").Background }} Presentation
 */

/** Key of the consents that were given in this tab. */
const AGREED = "sfumato-agreed"

/** Consents of this page, for browsers without storage. @type {string[]} */
let agreed = []
try {
	agreed = JSON.parse(sessionStorage.getItem(AGREED) ?? "[]")
} catch {
	// Without storage, the page asks again when it is loaded again.
}

/** Returns how a collection is presented. @param {any} collection @returns {Presentation} */
export const presentationOf = (collection) => collection?.presentation ?? {}

/** Returns the paragraphs of an author's words, in the direction of their script. @param {string} words */
export const paragraphs = (words, className = "lead") =>
	words
		.split(/\n+/)
		.filter(Boolean)
		.map((line) => h("p", { class: className, dir: "auto" }, line))

/** Whether the participant must still agree to the words of a collection. @param {any} collection */
export const needsConsent = (collection) =>
	!!presentationOf(collection).consent && !agreed.includes(String(presentationOf(collection).consent))

/**
 * Returns the content of the page that asks for consent; `then` runs after it was given.
 * @param {any} collection
 * @param {(content: HTMLElement[]) => void} show
 * @param {() => void} then
 */
export function consentPage(collection, show, then) {
	const { consent = "" } = presentationOf(collection),
		again = () => consentPage(collection, show, then)
	show([
		h("h1", {}, t("consent-title")),
		h(
			"div",
			{ class: "card", id: "consent" },
			...paragraphs(consent, ""),
			h("p", { class: "quiet" }, t("consent-more")),
			h(
				"div",
				{ class: "actions" },
				h(
					"button",
					{
						type: "button",
						class: "main",
						id: "agree",
						onclick: () => {
							agreed.push(consent)
							try {
								sessionStorage.setItem(AGREED, JSON.stringify(agreed))
							} catch {
								// The consent holds until the page is loaded again.
							}
							then()
						},
					},
					t("agree"),
				),
				h(
					"button",
					{
						type: "button",
						id: "disagree",
						onclick: () =>
							show([
								h("h1", {}, t("not-agreed")),
								h(
									"div",
									{ class: "card" },
									h("p", {}, t("not-agreed-more")),
									h("div", { class: "actions" }, h("button", { type: "button", onclick: again }, t("read-again"))),
								),
							]),
					},
					t("disagree"),
				),
			),
		),
	])
}

/** Returns the heading and the words of the section that begins with a collection, or null. @param {any} collection */
export function sectionOf(collection) {
	const { heading = "", section = "" } = presentationOf(collection)
	return heading || section
		? h(
				"div",
				{ class: "section", id: "section" },
				heading && h("p", { class: "name", dir: "auto" }, heading),
				...paragraphs(section, ""),
			)
		: null
}

/** Returns the words at the end of a survey, of the first collection that has some. @param {any[]} collections */
export function endingOf(collections) {
	const words = collections.map((one) => presentationOf(one).ending).find(Boolean)
	return words ? h("div", { id: "ending" }, ...paragraphs(words, "")) : null
}
