// The messages of the participants' pages. English is here; `messages-de.js` and `messages-ar.js` have the same keys. A
// message is
// plain text: pages insert it as text, never as HTML. `{name}` is replaced by a value. A key with `.one`, `.other` and
// so on is chosen by
// the plural rules of the language. The keys of owners' and readers' pages are the English messages themselves.

/** @type {Record<string, string>} */
export const ENGLISH = {
	loading: "Loading …",
	language: "Language",
	step: "Question {number} of {count}",
	next: "Next question",
	finish: "Finish",
	back: "Back",
	"try-again": "Try again",
	"cannot-answer": "This survey cannot be answered here",
	insecure:
		"This page was not loaded over a secure connection (https), so your browser cannot randomize your answer safely. Nothing was sent. Ask the person who sent you the link for one that begins with https.",
	"part-missing": "A part of this page could not be loaded. Nothing was sent. Reload the page to try again. ({reason})",
	"no-storage":
		"This browser does not let the page store your reply, perhaps because it blocks the data of websites or is in a private window. Without the stored reply a second visit would draw a second one, which reveals more. Nothing was drawn or sent. Open the link in another browser or window. ({reason})",
	"cannot-show": "This question cannot be shown",
	"not-found": "This survey does not exist. Check that the link is complete.",
	unreachable: "The survey cannot be reached. Try again when you are online.",
	violated:
		"This question violates its own rule: its replies would reveal more than it states. Nothing was drawn or sent. ({reason})",
	unsafe: "This question cannot be answered safely: {reason}",
	closed: "This question is closed and accepts no more answers.",
	"not-yet": "This question is not open yet. It accepts answers from {date}. Open the link again then.",
	"needs-link": "This survey needs a personal link. Open the complete link that you received.",
	"your-answer": "Your answer",
	"choose-first": "Choose an answer first, or press “I would rather not answer”.",
	"nothing-drawn": "No reply was drawn or sent.",
	"nothing-sent": "No reply was sent. {reason}",
	send: "Randomize and send",
	"send-plain": "Send",
	"send-same": "Send the same reply",
	check: "Check my choice",
	decline: "I would rather not answer",
	confirm: "Is this your choice?",
	chosen: "You chose {name}.",
	change: "Change it",
	"not-chosen": "You have not chosen an answer yet.",
	"not-chosen-cell": "You have not chosen a cell yet.",
	"chosen-now": "Chosen: {name}.",
	"mark-all": "Mark all that apply.",
	"none-marked": "none of these",
	search: "Search …",
	"search-in": "Search: {name}",
	"your-number": "Your number",
	"number-range": "From {low} to {high}.",
	"number-nearest": "A number outside counts as the nearest one.",
	"number-wrong": "Enter a number from {low} to {high}.",
	"number-whole": "Enter a whole number from {low} to {high}.",
	"number-two-ways": "This can mean {first} or {second}. Enter one of these two.",
	"counted-as": "It counts as {name}.",
	"number-counted": "{number}, which counts as {name}",
	"bin-below": "{low} to below {high}",
	"bin-above": "above {low} to {high}",
	"bin-both": "{low} to {high}",
	district: "district {number}",
	zoom: "Size of the map",
	"zoom-in": "Enlarge the map",
	"zoom-out": "Make the map smaller",
	"your-place.map": "Your place on the map",
	"your-place.grid": "Your place on the grid",
	"north-up": "North is up{edges}. Rows count from the south.",
	edges: ": {south}° to {north}° of latitude, {west}° to {east}° of longitude",
	"rows-top": "Rows count from the top.",
	"groups-shown": "The number in a cell is its group.",
	cell: "row {row}, column {column}",
	group: "group {number}",
	remembered:
		"This browser has already answered this question. It sends the reply that it drew then and draws no new one, so the reply reveals nothing more about your answer. A collector that receives both copies may see that they come from the same person. If your answer has changed since then, the reply does not reflect that.",
	"drawn-again":
		"This browser has already answered this question, when it was asked with another randomizer. That reply cannot be sent here. The browser draws a new reply, and what both replies reveal adds up.",
	repeated:
		"This browser has already answered this question, perhaps in another tab. It sent the reply that it drew then. The answer that you chose now was not used.",
	"will-be-sent": "What will be sent",
	exposed: "Your device sends a random reply. Your answer changes only the odds of each reply.",
	"exposed-likely": "Careful: the reply is likely to reveal your answer.",
	"exposed-nearly": "Careful: the reply almost always reveals your answer.",
	"exposed-always": "Careful: your answer is sent as it is. The reply always reveals it.",
	"drawn-exposed": "It was drawn at random. Your answer changed only its odds.",
	"drawn-exposed-likely": "It is likely to reveal your answer.",
	"drawn-exposed-nearly": "It almost always reveals your answer.",
	"drawn-exposed-always": "It reveals your answer.",
	unproved:
		"This page cannot check the rule of this survey ({rule}). The numbers above are computed from the randomizer itself, so they hold whatever the rule is.",
	"device-computes":
		"Your device computes these odds, draws the reply, stores it and sends it. It stores and sends nothing else about your answer. If you choose not to answer, it draws nothing.",
	guess:
		"If all answers are equally likely, a stranger’s best guess of your answer from the reply alone is correct with probability {bound} (without the reply: {chance}).",
	"guess-participant":
		"If all answers are equally likely, a stranger’s best guess of a participant’s answer from the reply alone is correct with probability {bound} (without the reply: {chance}).",
	"guess-part":
		"For a single part of your answer that the reply is about, such as one option, this guess is correct with probability up to {bound} (without the reply: {chance}).",
	"guess-participant-part":
		"For a single part of the answer, such as one option, this guess is correct with probability up to {bound} (without the reply: {chance}).",
	// Odds in words.
	"times-always": "always",
	"times-never": "never",
	"times-more": "more than 99 times in 100",
	"times-less": "less than once in 100 times",
	"times.one": "once in 100 times",
	"times.other": "{count} times in 100",
	"odds-one": "If you answer {name}, {name} is sent {bound}.",
	"odds-one-other": "If you answer something else, {name} is sent {bound}.",
	"odds-one-two": "If you answer {other}, {name} is sent {bound}.",
	"odds-set": "The reply names several answers. If you answer {name}, the reply names {name} {bound}.",
	"odds-set-other": "If you answer something else, it names {name} {bound}.",
	"odds-cells": "The reply lights some cells of the map. If your cell is {name}, it is lit {bound}.",
	"odds-cells-other": "If you choose another cell, it is lit {bound}.",
	"odds-groups": "The reply also names groups. If you answer {name}, the reply names its group {bound}.",
	"odds-attribute-one": "About {attribute}: if it is {name}, {name} is sent {bound}.",
	"odds-attribute-set": "About {attribute}: if it is {name}, the reply names {name} {bound}.",
	"odds-attribute-drawn": "The reply is about {attribute} {bound}. If it is {name}, the reply then names {name} {own}.",
	"odds-scale":
		"The reply is one bit, yes or no. If you answer {name}, yes is sent {bound}; if you answer {other}, yes is sent {least}.",
	"odds-same": "The same holds for every other answer.",
	"odds-same-few": "The same holds for {names}.",
	between: "{low} to {high}",
	// Bounds on what a stranger learns.
	"raise-all": "A stranger who sees your {seen} can raise their suspicion from {before} to at most {bound}.",
	"raise-some":
		"A stranger who sees your {seen} can raise their suspicion that it is {names} from {before} to at most {bound}.",
	"raise-group":
		"A stranger who sees your {seen} and knows your group can raise their suspicion of one value from {before} to at most {bound}.",
	"raise-group-some":
		"A stranger who sees your {seen} and knows that it is one of {names} can raise their suspicion of one of them from {before} to at most {bound}.",
	"raise-one":
		"A stranger who sees your {seen} can raise their suspicion of one value from {before} to at most {bound}.",
	"raise-across":
		"Between groups: a stranger who sees your {seen} can raise their suspicion of a value of another group from {before} to at most {bound}.",
	"raise-secret":
		"A stranger who sees your {seen} can raise their suspicion of your “{secret}” from {before} to at most {bound}.",
	"raise-secret-known":
		"A stranger who sees your {seen} can raise their suspicion of your “{secret}” from {before} to at most {bound}, however the rest of your answer depends on it.",
	"learn-secret":
		"A stranger who knows how the rest of your answer depends on your “{secret}” may learn it from your {seen}.",
	"learn-rest": "They may learn more about the rest of your answer.",
	"may-reveal-all": "Whatever your answer is, your {seen} may reveal it.",
	"may-reveal-some": "If it is {names}, your {seen} may reveal it.",
	"may-reveal-alone": "If it is {names}, the only value of its group, your {seen} may reveal it.",
	"may-reveal-group": "Your {seen} may reveal your group: {groups}.",
	"may-reveal-group-map": "Your {seen} may reveal your group, one of the numbered areas of the map.",
	"may-reveal-group-grid": "Your {seen} may reveal your group, one of the numbered areas of the grid.",
	"raise-attribute":
		"About {attribute}: a stranger who sees your {seen} can raise their suspicion from {before} to at most {bound}.",
	"reveal-attribute": "About {attribute}: your {seen} may reveal it.",
	quoted: "“{name}”",
	reply: "reply",
	or: "{first} or {last}",
	"or-more": "{names} or {count} more",
	"more-groups.one": "and 1 more group",
	"more-groups.other": "and {count} more groups",
	"more-99": "more than 99.9%",
	"less-01": "less than 0.1%",
	// All questions together.
	"together-title": "All {count} questions together",
	"together-after":
		"What the replies reveal adds up. Together they can raise a stranger’s suspicion of something about you from 10% to at most {bound}.",
	"together-certain":
		"What the replies reveal adds up. Together they can make a stranger nearly certain of something about you: from 10% to {bound}.",
	"together-guess":
		"If all answers are equally likely and independent, a stranger’s best guess of all your answers is correct with probability {bound} (without the replies: {chance}).",
	"together-same.one":
		"One question asks the same as another. Your device sends the same reply again, so it counts once here.",
	"together-same.other":
		"{count} questions ask the same as another. Your device sends the same reply again, so it counts once here.",
	"together-shows.one":
		"Question {numbers}: the reply may also reveal an answer, or a part of it, that the rule does not hide. These numbers do not include that.",
	"together-shows.other":
		"Questions {numbers}: the reply may also reveal an answer, or a part of it, that the rule does not hide. These numbers do not include that.",
	"together-missing.one": "Question {numbers} cannot be loaded now, so these numbers do not include it.",
	"together-missing.other": "Questions {numbers} cannot be loaded now, so these numbers do not include them.",
	"so-far": "What you sent so far",
	"so-far-after":
		"Together, the replies that you sent can raise a stranger’s suspicion of something about you from 10% to at most {bound}.",
	// Outcomes.
	declined: "You did not answer",
	"declined-more": "No reply was drawn or sent. Until you close it, this tab remembers that you declined.",
	"answer-after-all": "Answer after all",
	waiting: "Your reply is stored, but not sent yet",
	"waiting-more": "Your browser sends it as soon as there is a connection, now or when you next open this survey.",
	sent: "Thank you, your reply has arrived",
	"sent-more": "The collector counted it once.",
	refused: "Your reply was not accepted",
	"can-close": "You can close this page.",
	"follow.one": "One question is left.",
	"follow.other": "{count} questions are left.",
	drawn: "The reply that was drawn: {bound}.",
	"drawn-before": "Your browser drew it when you first answered this question, and sent it again.",
	"no-second-draw":
		"Your browser does not draw a second reply to this question, because that would reveal more. If you open this page again, you see the same reply.",
	"exact-data": "The exact data that is sent",
	results: "See the results so far",
	"token-spent":
		"This personal link was used before, in another browser or before the data of this browser was deleted. Each link counts once.",
	"token-unknown": "This link is not valid for this survey. Ask the person who sent it to you for a new one.",
	"not-open": "The survey, or this wave of it, ended before your reply could be counted.",
	"end-title": "Thank you, that was the last question",
	"end-more": "You can close this page.",
	"end-waiting":
		"Some replies wait for a connection. Your browser sends them while this page is open, or when you next open this survey.",
	"end-list": "Your replies",
	"state-sent": "reply sent",
	"state-waiting": "reply waits for a connection",
	"state-refused": "reply not accepted",
	"state-declined": "not answered",
	"state-open": "not answered yet",
	show: "Show",
	answer: "Answer",
	// Replies in words.
	"reply-set": "the set {names}",
	"reply-empty": "the empty set",
	"reply-range": "a value from {first} to {last}",
	"reply-many": "a set of {count} of the {all} values: {names}",
	"reply-cells.one": "one lit cell of {all}: {names}",
	"reply-cells.other": "{count} lit cells of {all}",
	"reply-groups": "the groups {names}",
	"reply-attribute": "{attribute}: {reply}",
	"reply-nothing": "a reply that fits all answers alike",
	"reply-bit-1": "the bit “yes”, which is likelier for larger numbers",
	"reply-bit-0": "the bit “no”, which is likelier for smaller numbers",
	"reply-code": "code {code}",
	"reply-all": "Show all of them",
	and: "; ",
	lit: "lit",
	unlit: "not lit",
	"reply-map": "The reply as a map: {count} of {all} cells are lit.",
	// Questions that return.
	wave: "Wave {number} of {all}. This question returns. Your browser sends one reply per wave.",
	"lifetime-title": "One reply, and all replies together",
	"lifetime-how":
		"Your device draws a permanent answer once and keeps it. The reply of each wave is a new random draw about it, and all replies together reveal at most the permanent answer.",
	"level-one": "One reply can raise a stranger’s suspicion from {before} to at most {bound}.",
	"level-all": "All replies together, as long as your answer does not change, can raise it to at most {bound}.",
	"level-certain": "All replies together can make a stranger nearly certain of your answer.",
	"level-total": "All replies about all of them together can raise the suspicion to at most {bound}.",
	"lifetime-changes":
		"If your answer changes to one that you did not give before, your device draws another permanent answer, and what they reveal adds up. It draws at most {most}.",
	"lifetime-fixed":
		"Your device draws one permanent answer. If your answer changes, it keeps replying about the first one.",
	"lifetime-schedule":
		"Every {waves} waves your device draws a new permanent answer, and what they reveal adds up. It draws at most {most}.",
	"device-waves":
		"Your device computes these odds, keeps the permanent answer, draws the reply, stores it and sends it. It sends nothing else about your answer. If you choose not to answer, it draws nothing.",
	"one-per-wave":
		"Your browser draws one reply per wave. If you open this page again during this wave, you see the same reply.",
	"come-back": "Come back from {date}: the next wave starts then.",
	"come-back-later": "Come back when the next wave opens.",
	"last-wave": "This was the last wave.",
	"no-wave": "No wave of this question is open now.",
	// Retention.
	"plain-title": "This page is not encrypted",
	"plain-why":
		"It was loaded over plain HTTP in a local network. Your browser can still randomize your answer, but this is missing:",
	"plain-read":
		"Others in this network can see which survey you open and the reply that you send. The reply is random, as this page states.",
	"plain-change":
		"Others in this network could change this page before it reaches you, and with it what is sent. Your browser cannot notice that. Continue only in a network that you trust.",
	"plain-offline":
		"Your browser does not keep the page: without a connection to the collector, the link does not open.",
	"plain-continue": "Continue without encryption",
	"plain-else":
		"Otherwise close this page: nothing was drawn or sent. Ask the person who sent you the link for one that begins with https.",
	"plain-http": "This page is not encrypted: others in this network could read or change it.",
	retention: "The collector deletes single replies by {date} and keeps only counts.",
	"retention-none": "The collector stores no single replies, only counts.",
	"retention-until": "The collector keeps single replies until the owner of the survey deletes it.",
	deleted: "This survey was deleted, with the replies to it. Nothing more is sent.",
	offline: "You are offline. You can still answer; your browser sends the reply later.",
	// The author's words around the questions.
	"consent-title": "Before you start",
	"consent-more": "Nothing is drawn or sent before you agree.",
	agree: "I agree",
	disagree: "I do not agree",
	"not-agreed": "You did not agree",
	"not-agreed-more": "Nothing was drawn or sent. You can close this page.",
	"read-again": "Read it again",
	required:
		"This question is required. If you would rather not answer, close the page: nothing is sent for this question.",
	"choose-required": "Choose an answer first. If you would rather not answer, close the page: nothing is sent.",
}

/** Names of the languages, in themselves. @type {Record<string, string>} */
export const LANGUAGES = { en: "English", de: "Deutsch", ar: "العربية" }
const RIGHT_TO_LEFT = ["ar"]

let language = "en",
	catalogue = ENGLISH

/** Returns the language of the messages. */
export const currentLanguage = () => language

/** Returns the first of these languages that has messages, or English. @param {readonly string[]} wanted */
export const supported = (wanted) =>
	wanted.map((tag) => tag.toLowerCase().split("-")[0]).find((code) => Object.hasOwn(LANGUAGES, code)) ?? "en"

/** Key of the chosen language in the storage of the browser. */
const STORED = "sfumato-language"

/** Returns the language of the address, else that chosen in this browser, else that of the browser. */
export function wantedLanguage() {
	let kept = ""
	try {
		kept = localStorage.getItem(STORED) ?? ""
	} catch {
		// The browser blocks the data of websites.
	}
	return supported([new URLSearchParams(location.search).get("lang") ?? kept, ...navigator.languages].filter(Boolean))
}

/** Stores the chosen language for all pages of this collector. @param {string} code */
export function keepLanguage(code) {
	try {
		localStorage.setItem(STORED, code)
	} catch {
		// The choice then lasts as long as the page.
	}
}

/** The language that was chosen last; its messages may not be loaded yet. */
let wanted = ""

/**
 * Loads the messages of a language, and sets language and direction of the page.
 * @param {string} code
 * @param {"" | "owners"} [more] further messages
 */
export async function useLanguage(code, more = "") {
	const chosen = supported([code]),
		load = async (/** @type {string} */ name) => (await import(`./${name}-${chosen}.js`)).default
	wanted = chosen
	let messages
	try {
		messages = { ...ENGLISH, ...(chosen === "en" ? {} : await load("messages")), ...(more ? await load(more) : {}) }
	} catch {
		return // Without the messages of a language, the page keeps the one that it has.
	}
	// Another language may have been chosen meanwhile.
	if (chosen !== wanted) return
	catalogue = messages
	language = chosen
	document.documentElement.lang = language
	document.documentElement.dir = RIGHT_TO_LEFT.includes(language) ? "rtl" : "ltr"
}

/**
 * Formats a number with the separators of the language; digits are Western in all of them.
 * @param {number} value
 * @param {Intl.NumberFormatOptions} [options]
 */
export const number = (value, options = {}) => new Intl.NumberFormat(`${language}-u-nu-latn`, options).format(value)

/** Characters before and after words that may be of another direction than the message. */
const ISOLATED = "\u2068$1\u2069"

/**
 * Returns the template of a message; in a language that is read from right to left, quoted words keep their direction.
 * @param {string} key
 * @param {Record<string, any>} values
 */
function template(key, values) {
	const plural = "count" in values ? `${key}.${new Intl.PluralRules(language).select(Number(values.count))}` : key
	const message = catalogue[plural] ?? catalogue[`${key}.other`] ?? catalogue[key] ?? key
	return RIGHT_TO_LEFT.includes(language) ? message.replace(/(?<=«)(\{\w+\})(?=»)/g, ISOLATED) : message
}

/** Formats an inserted value; counts have separators. @param {string} name @param {any} value */
const shown = (name, value) => (name === "count" || name === "all" ? number(Number(value)) : String(value))

/** Returns a message. @param {string} key @param {Record<string, any>} [values] */
export const t = (key, values = {}) =>
	template(key, values).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(name, values[name]) : whole))

/** Returns words in the quotation marks of the language. @param {string} name */
export const quoted = (name) => t("quoted", { name })

/**
 * Returns a message in three parts: the words before `{bound}`, the bound, and the words after it.
 * @param {string} key
 * @param {Record<string, any>} [values]
 * @returns {[string, string, string]}
 */
export function stressedMessage(key, values = {}) {
	const [start, rest = ""] = template(key, values).split("{bound}"),
		fill = (/** @type {string} */ part) =>
			part.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(name, values[name]) : whole))
	return [fill(start), values.bound === undefined ? "" : String(values.bound), fill(rest)]
}
