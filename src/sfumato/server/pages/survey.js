// What a participant sees: one question after another; each answer is randomized here, once, and only then sent.
import { factorsOf, gridOf, labelsOf, nameOf } from "./domains.js"
import { at, atMost, h } from "./dom.js"
import { factsOf, together } from "./promise.js"
import { disclosureSentences, drawnInWords, exposure, guessInWords, odds } from "./words.js"
/** @import {Answer, Collection} from "./sfumato.js" */

const MANY = 12

const parameters = new URLSearchParams(location.search)
const ids = [location.pathname.split("/")[2], ...(parameters.get("then") ?? "").split(",").filter(Boolean)]
// The fragment never leaves the browser; it holds a one-time token, or the key, for each question.
const secrets = location.hash.slice(1).split(",").filter(Boolean)
const place = at("survey")

/** @type {typeof import("./sfumato.js")} */
let client

/** @param {import("./dom.js").Child[]} content */
function show(...content) {
	place.replaceChildren(...content.filter(Boolean))
	scrollTo(0, 0)
}

/** @param {number} i */
const progress = (i) => ids.length > 1 && h("p", { class: "step" }, `Question ${i + 1} of ${ids.length}`)

/** @param {number} i */
function onwards(i) {
	if (i + 1 >= ids.length) return null
	return h("button", { type: "button", class: "main", onclick: () => question(i + 1) }, "Next question")
}

/** The first question that has no answer yet, or the last. */
async function begin() {
	try {
		client = await import("./sfumato.js")
	} catch (error) {
		const insecure = !isSecureContext
		return show(h("h1", {}, "This survey cannot be answered here"), h("p", { class: "alarm" }, insecure
			? "This page did not come over a secure connection (https), so it cannot be trusted to randomize your answer. Nothing was sent."
			: `The page could not be loaded whole. Nothing was sent. (${error instanceof Error ? error.message : error})`))
	}
	const answered = await client.answers()
	const open = ids.findIndex((id) => !answered.some(({ collection }) => collection === addressOf(id)))
	await question(open < 0 ? ids.length - 1 : open)
}

/** @param {string} id */
const addressOf = (id) => new URL(`/v1/collections/${id}`, location.href).href

/** The collections of the link as far as they can be read: what is stated is what all of them reveal. @param {number} i @param {Collection} collection */
async function everything(i, collection) {
	const collections = await Promise.all(ids.map((id, j) => (i === j ? collection : opened[j] ?? client.openCollection(addressOf(id)).catch(() => null))))
	collections.forEach((one, j) => (opened[j] = one))
	return collections
}
/** @type {(Collection | null)[]} */
const opened = []

/** @param {number} i */
async function question(i) {
	/** @type {Collection} */
	let collection
	try {
		collection = await client.openCollection(addressOf(ids[i]))
	} catch (error) {
		const reason = error instanceof Error ? error.name : ""
		const message = reason === "NotFound" ? "There is no such survey. Is the link complete?"
			: reason === "TypeError" ? "The survey cannot be reached now. Try again when you are online."
			: reason === "PolicyViolated" ? `This question breaks the rule that it states: its replies would reveal more. Nothing was drawn or sent. (${error instanceof Error ? error.message : error})`
			: `This question cannot be answered safely: ${error instanceof Error ? error.message : error}`
		return show(progress(i), h("h1", {}, "This question cannot be shown"), h("p", { class: "alarm" }, message), h("div", { class: "actions" },
			h("button", { type: "button", class: "main", onclick: () => question(i) }, "Try again"), onwards(i)))
	}
	document.title = collection.title
	const known = await collection.answered(), secret = secrets[i]
	if (known) return outcome(i, collection, known)
	const closed = collection.state !== "open" && "This question is closed. Nothing more can be answered here."
	const missing = collection.submission !== "open" && !secret && "This survey asks for a personal link. Open the link that you were sent, whole."
	if (closed || missing) {
		return show(progress(i), h("h1", {}, collection.title), h("p", { class: "alarm" }, closed || missing), h("div", { class: "actions" }, onwards(i)))
	}
	const memory = (await collection.remembered()) ? "same" : (await collection.drawnAgain()) ? "other" : ""
	form(i, collection, secret, await everything(i, collection), memory)
}

/** Without what the answer reveals there is no form. @param {number} i @param {Collection} collection @param {string | undefined} secret
 * @param {(Collection | null)[]} all @param {"" | "same" | "other"} memory whether a reply to the same question is kept, of the same mechanism */
function form(i, collection, secret, all, memory) {
	const remembered = memory === "same", chooser = remembered ? null : choices(collection.policy), fault = h("p", { class: "alarm", role: "alert", hidden: true })
	const label = remembered ? "Send the same reply" : exposure(collection.disclosure) === "always" ? "Send" : "Randomize and send"
	const send = h("button", { type: "submit", class: "main" }, label)
	const fields = h("form", { onsubmit: async (/** @type {Event} */ event) => {
		event.preventDefault()
		const value = chooser?.value()
		fault.hidden = !chooser || value !== undefined
		if (chooser && value === undefined) {
			fault.textContent = "Choose an answer first, or say below that you would rather not."
			return chooser.element.querySelector("input")?.focus()
		}
		send.disabled = true
		try {
			const answer = await collection.answer(value, secret)
			outcome(i, collection, answer, !!chooser && answer.repeated)
		} catch (error) {
			send.disabled = false
			fault.hidden = false
			fault.textContent = `Nothing was sent: ${error instanceof Error ? error.message : error}`
		}
	} },
	chooser?.element ?? h("p", { id: "remembered" }, REMEMBERED), memory === "other" && h("p", { class: "alarm", id: "again" }, DRAWN_AGAIN), fault, promise(collection), ids.length > 1 && sum(all),
	h("div", { class: "actions" }, send, h("button", { type: "button", onclick: () => refused(i, collection) }, "I would rather not answer")))
	show(progress(i), h("h1", {}, collection.title), ...paragraphs(collection.description), h("div", { class: "card" }, fields))
}

/** @param {string} text */
const paragraphs = (text) => text.split(/\n+/).filter(Boolean).map((line) => h("p", { class: "lead" }, line))

const REMEMBERED = "You have answered this question before in this browser. The reply that was drawn then is sent again, and nothing is drawn now, so it tells no more about your answer. A collector that receives both replies may see that they come from the same person. If your answer has changed since, the reply does not."

const DRAWN_AGAIN = "This browser has answered this question before, when it was asked with another randomizer. That reply cannot be sent here. A new one is drawn, and what both reveal adds up."

const REPEATED = "This browser has already answered this question, perhaps in another tab. The reply that was drawn then is sent. The answer that you chose now was not used."

/** What is said of a reply before and after it is drawn, by how likely it gives the answer away. */
const EXPOSED = {
	"": ["A random reply whose odds depend on your answer.", "It was drawn at random, with odds that depend on your answer."],
	likely: ["Careful: the reply is likely to give your answer away.", "It is likely to give your answer away."],
	nearly: ["Careful: the reply almost always gives your answer away.", "It almost always gives the answer away."],
	always: ["Careful: your answer is sent as it is. The reply always shows it.", "It shows your answer."],
}

/** @param {[string, string, string]} sentence its text, what is to be stressed, and the rest */
const stressed = ([text, bound, rest]) => [text, bound && h("strong", {}, bound), rest]

/** What is sent and what it can reveal, by the law of the mechanism that draws it. @param {Collection} collection */
function promise(collection) {
	const { disclosure } = collection, exposed = exposure(disclosure)
	const unproved = !disclosure.proved && h("li", { id: "unproved" }, `This page cannot check the rule of the survey itself (${collection.asks.replace(/\.$/, "")}). What is said here is computed from the randomizer alone, whatever the rule is.`)
	return h("section", { class: "promise", "aria-label": "What will be sent" },
		h("h2", {}, "What will be sent"), h("p", exposed ? { class: "alarm loud", role: "alert" } : {}, EXPOSED[exposed][0]),
		h("p", { id: "odds" }, ...stressed(guessInWords(disclosure))),
		h("ul", { class: "disclosure" }, ...disclosureSentences(factsOf(collection), "reply").map((sentence) => h("li", {}, ...stressed(sentence))), unproved),
		h("p", { class: "small quiet" }, "This device computed these odds, draws the reply, keeps it, and sends it; nothing else of your answer is stored or sent. If you would rather not answer, nothing is drawn."))
}

/** What all questions of the link reveal together. @param {(Collection | null)[]} all */
function sum(all) {
	const known = /** @type {Collection[]} */ (all.filter(Boolean)), { after, guess, chance, drawn, shows } = together(known)
	const numbers = (/** @type {number[]} */ places) => places.map((place) => all.indexOf(known[place]) + 1).join(", ")
	const missing = all.flatMap((one, i) => (one ? [] : [i + 1]))
	return h("section", { class: "promise", id: "total", "aria-label": "All questions together" },
		h("h2", {}, `All ${ids.length} questions together`),
		h("p", after < 0.9 ? {} : { class: "alarm loud" }, ...stressed(after < 0.9995
			? ["What replies reveal adds up. All of them together can raise a stranger’s suspicion of something about you from 10% to at most ", atMost(after), "."]
			: ["What replies reveal adds up. All of them together can make a stranger nearly certain of something about you: from 10% to ", odds(after), "."])),
		h("p", {}, ...stressed(["A stranger’s best guess of all your answers is right with probability ", odds(guess), ` (without the replies: ${odds(chance)}), if all answers are equally likely and independent.`])),
		drawn < known.length && h("p", {}, `${known.length - drawn === 1 ? "One question asks" : `${known.length - drawn} questions ask`} the same as another: the same reply is sent again, and counts once here.`),
		shows.length > 0 && h("p", {}, `Question${shows.length > 1 ? "s" : ""} ${numbers(shows)}: the reply may also show an answer, or a part of it, that the rule does not hide. That is not in this sum.`),
		missing.length > 0 && h("p", {}, `Question${missing.length > 1 ? "s" : ""} ${missing.join(", ")} cannot be read now, and ${missing.length > 1 ? "are" : "is"} not in this sum.`))
}

/** @param {number} i @param {Collection} collection */
function refused(i, collection) {
	show(progress(i), h("h1", {}, collection.title), h("div", { class: "card" },
		h("h2", {}, "You did not answer"),
		h("p", {}, "Nothing was drawn, stored or sent."),
		h("div", { class: "actions" }, onwards(i), h("button", { type: "button", onclick: () => question(i) }, "Answer after all"))))
	focusHeading()
}

function focusHeading() {
	const heading = place.querySelector("h2") ?? place.querySelector("h1")
	heading?.setAttribute("tabindex", "-1")
	heading?.focus({ preventScroll: true })
}

const SAID = {
	waiting: ["Your reply is kept, and not sent yet", "It is sent as soon as there is a connection, now or when you next open this survey. You can close the page."],
	sent: ["Thank you, your reply has arrived", "It was counted once. You can close the page."],
	refused: ["Your reply was not accepted", ""],
}

/** @param {number} i @param {Collection} collection @param {Answer} answer @param {boolean} [unused] whether another answer was chosen now */
function outcome(i, collection, answer, unused) {
	const heading = h("h2", {}), explained = h("p", {}), problem = h("p", { class: "alarm", hidden: true })
	const drawn = drawnInWords(collection.mechanism, answer.report), exposed = exposure(collection.disclosure)
	const results = /** @type {any} */ (collection).results === "public" && i + 1 >= ids.length
	show(progress(i), h("h1", {}, collection.title), h("div", { class: "card", id: "outcome" },
		heading, unused && h("p", { class: "alarm loud", id: "repeated", role: "alert" }, REPEATED), explained, problem,
		h("div", { class: "promise" },
			h("p", {}, "The reply that was drawn: ", h("strong", { id: "drawn" }, drawn ?? `code ${JSON.parse(answer.report)}`), "."),
			h("p", {}, `${EXPOSED[exposed][1]} `, ...stressed(guessInWords(collection.disclosure))),
			answer.drawn && h("p", {}, "It was drawn when this browser first answered this question, and sent again."),
			h("p", { class: "small quiet" }, "It is never drawn again: a second draw would reveal more. Opening this page again shows the same.")),
		h("details", {}, h("summary", {}, "Exactly what is sent"), h("pre", {}, h("code", { id: "sent" }, `{"batch":"${answer.batch}","report":${answer.report}}`))),
		h("div", { class: "actions" }, onwards(i), results && h("a", { class: "button", href: `/c/${collection.id}/results` }, "See the results so far"))))
	const tell = (/** @type {Answer} */ { state, problem: why }) => {
		const [title, text] = SAID[state]
		heading.textContent = title
		heading.dataset.state = state
		explained.textContent = text
		problem.hidden = !why || state !== "refused"
		problem.textContent = why ? errorInWords(why) : ""
	}
	tell(answer)
	focusHeading()
	if (answer.state === "waiting") follow(collection, tell, heading)
}

/** @param {{ reason: string, message: string }} why */
function errorInWords({ reason, message }) {
	if (reason === "token-spent") return "This personal link was used before, from another browser. Each link counts once."
	if (reason === "token-unknown" || reason === "unauthorized") return "This link is not valid for this survey. Ask whoever sent it to you for a new one."
	if (reason === "not-open") return "The survey was closed before your reply arrived."
	return message
}

/** Looks until the reply is sent or refused. @param {Collection} collection @param {(answer: Answer) => void} tell @param {HTMLElement} shown */
async function follow(collection, tell, shown) {
	while (shown.isConnected) {
		await client.flush().catch(() => 0)
		const answer = await collection.answered()
		if (answer && answer.state !== "waiting") return tell(answer)
		await new Promise((resolve) => {
			setTimeout(resolve, 3000)
			addEventListener("online", resolve, { once: true })
		})
	}
}

// -- choosing a value ----------------------------------------------------------------------------------------------------

/** @param {any} policy the document @returns {{ element: HTMLElement, value: () => any }} */
function choices({ domain, policy }) {
	if (domain.grid) return mapChoice(domain, policy)
	const parts = factorsOf(domain).map(({ name, labels }, i) => listChoice(name || "Your answer", labels, `answer-${i}`))
	const value = () => {
		const chosen = parts.map((part) => part.value())
		return chosen.includes(undefined) ? undefined : domain.product ? chosen : chosen[0]
	}
	return { element: h("div", {}, ...parts.map(({ element }) => element)), value }
}

/** @param {string} legend @param {any[]} labels @param {string} name */
function listChoice(legend, labels, name) {
	const options = labels.map((label, i) => h("label", { class: "choice" }, h("input", { type: "radio", name, value: i }), h("span", {}, String(label))))
	const list = h("div", { class: labels.length > MANY ? "choices long" : "choices" }, ...options)
	const value = () => {
		const chosen = /** @type {HTMLInputElement | null} */ (list.querySelector("input:checked"))
		return chosen ? labels[Number(chosen.value)] : undefined
	}
	if (labels.length <= MANY) return { element: h("fieldset", {}, h("legend", {}, legend), list), value }
	const message = h("p", { class: "chosen quiet", "aria-live": "polite" }, "Nothing is chosen yet.")
	const search = h("input", {
		type: "search", "aria-label": `Search: ${legend}`, placeholder: "Search …",
		oninput: () => filter(),
		// A participant who searches for an answer has not given it yet.
		onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.preventDefault(),
	})
	// What is chosen stays in sight, whatever is looked for.
	const filter = () => {
		const sought = search.value.trim().toLowerCase(), chosen = value()
		options.forEach((option, i) => (option.hidden = labels[i] !== chosen && !String(labels[i]).toLowerCase().includes(sought)))
		if (chosen !== undefined) message.textContent = `Chosen: ${chosen}.`
	}
	list.addEventListener("change", filter)
	return { element: h("fieldset", {}, h("legend", {}, legend), h("div", { class: "field" }, search), list, message), value }
}

/** Groups that a reply may show have colours. @param {any} domain @param {any} policy */
function mapChoice(domain, policy) {
	const grid = /** @type {NonNullable<ReturnType<typeof gridOf>>} */ (gridOf(domain)), labels = labelsOf(domain)
	const message = h("p", { class: "quiet", "aria-hidden": "true" }, "No cell is chosen yet.")
	const inputs = grid.order.map((x) => h("input", {
		type: "radio", name: "answer", value: x, "aria-label": nameOf(labels[x], domain),
		onchange: () => (message.textContent = `Chosen: ${nameOf(labels[x], domain)}.`),
	}))
	const board = h("div", { class: "cells map pick", onkeydown: (/** @type {KeyboardEvent} */ event) => {
		const step = { ArrowUp: -grid.columns, ArrowDown: grid.columns }[event.key]
		const next = step && inputs[inputs.indexOf(/** @type {any} */ (event.target)) + step]
		if (step) event.preventDefault()
		if (next) {
			next.focus()
			next.click()
		}
	} }, ...inputs.map((input, i) => h("label", { class: policy.kind === "blocks" ? `cell part-${policy.blocks[grid.order[i]] % 8}` : "cell", title: nameOf(labels[grid.order[i]], domain) }, input)))
	board.style.setProperty("--columns", String(grid.columns))
	const { latitude: [south, north], longitude: [west, east] } = domain.grid
	// Studio's map without coordinates.
	const bare = [south, north, west, east].join() === "0,1,0,1"
	const edges = bare ? "" : `: ${south}° to ${north}° of latitude, ${west}° to ${east}° of longitude`
	const element = h("fieldset", {}, h("legend", {}, "Your place on the map", h("span", { class: "hint" }, `North is up${edges}. Rows count from the south.`)), board, message)
	const value = () => {
		const chosen = inputs.find((input) => input.checked)
		return chosen && labels[Number(chosen.value)]
	}
	return { element, value }
}

begin()
