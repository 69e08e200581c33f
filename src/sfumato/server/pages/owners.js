// The language of the pages for owners and readers: chosen on the page, kept in this browser, else that of the browser.
// A module that imports this
// one runs after the messages are loaded. The key of a message is its English wording; `owners-de.js` and
// `owners-ar.js` translate it, and
// `owners-en.js` has only the English forms for one thing, and words that are keys of `messages.js`.
import { h } from "./dom.js"
import { currentLanguage, keepLanguage, LANGUAGES, number, t, useLanguage, wantedLanguage } from "./messages.js"

export { number, t }

/**
 * Returns a message as text and the elements for its places.
 * @param {string} message
 * @param {Record<string, Node>} elements
 */
export const pieces = (message, elements) =>
	message
		.split(/(\{\w+\})/)
		.filter(Boolean)
		.map((part) => elements[part.slice(1, -1)] ?? part)

await useLanguage(wantedLanguage(), "owners")

/** Locale of dates; digits are Western in all languages. */
const locale = () => (currentLanguage() === "en" ? "en-GB" : `${currentLanguage()}-u-nu-latn`)
/** Formats Unix seconds as date and time. @param {number} seconds */
export const moment = (seconds) =>
	new Date(seconds * 1000).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" })
/** Formats Unix seconds as a date. @param {number} seconds */
export const dateOf = (seconds) => new Date(seconds * 1000).toLocaleDateString(locale(), { dateStyle: "medium" })

/** Translates the words that the HTML file of the page contains, and adds the choice of the language. */
function translatePage() {
	for (const element of document.querySelectorAll("[data-t]"))
		element.textContent = t((element.textContent ?? "").trim())
	document.title = t(document.title)
	const choice = h(
		"select",
		{
			onchange: () => {
				keepLanguage(choice.value)
				const address = new URL(location.href)
				address.searchParams.set("lang", choice.value)
				location.assign(address)
			},
		},
		...Object.entries(LANGUAGES).map(([code, name]) =>
			h("option", { value: code, lang: code, selected: code === currentLanguage() }, name),
		),
	)
	document
		.querySelector("header.top")
		?.append(h("label", { class: "language" }, h("span", { class: "unseen" }, t("Language")), choice))
}
translatePage()
