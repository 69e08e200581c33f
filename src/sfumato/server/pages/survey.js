// The survey page: it shows one question after another, randomizes each answer once, and sends only the reply.
import { factorsOf, gridOf, labelsOf, nameOf } from "./domains.js"
import { at, atMost, h } from "./dom.js"
import { factsOf, together } from "./promise.js"
import { disclosureSentences, drawnInWords, exposure, guessInWords, odds } from "./words.js"
/** @import {Answer, Collection} from "./sfumato.js" */

/** Number of values above which a list has a search field. */
const MANY = 12

const parameters = new URLSearchParams(location.search)
const ids = [location.pathname.split("/")[2], ...(parameters.get("then") ?? "").split(",").filter(Boolean)]
// The fragment of the URL never leaves the browser. It holds a one-time token, or the key, for each question.
const secrets = location.hash.slice(1).split(",").filter(Boolean)
const place = at("survey")

/** @type {typeof import("./sfumato.js")} */
let client

/** Replaces the content of the page. @param {import("./dom.js").Child[]} content */
function show(...content) {
	place.replaceChildren(...content.filter(Boolean))
	scrollTo(0, 0)
}

/** @param {number} i */
const progress = (i) => ids.length > 1 && h("p", { class: "step" }, `Question ${i + 1} of ${ids.length}`)

/** Returns a button to the next question, if there is one. @param {number} i */
function onwards(i) {
	if (i + 1 >= ids.length) return null
	return h("button", { type: "button", class: "main", onclick: () => question(i + 1) }, "Next question")
}

/** Shows the first question without an answer, or the last question. */
async function begin() {
	try {
		client = await import("./sfumato.js")
	} catch (error) {
		const insecure = !isSecureContext
		return show(h("h1", {}, "This survey cannot be answered here"), h("p", { class: "alarm" }, insecure
			? "This page was not loaded over a secure connection (https), so your browser cannot randomize your answer safely. Nothing was sent. Ask the person who sent you the link for one that begins with https."
			: `A part of this page could not be loaded. Nothing was sent. Reload the page to try again. (${error instanceof Error ? error.message : error})`))
	}
	const answered = await client.answers()
	const open = ids.findIndex((id) => !answered.some(({ collection }) => collection === addressOf(id)))
	await question(open < 0 ? ids.length - 1 : open)
}

/** @param {string} id */
const addressOf = (id) => new URL(`/v1/collections/${id}`, location.href).href

/** Opens all collections of the link, null for those that cannot be read, because the page states what all replies reveal together. @param {number} i @param {Collection} collection */
async function everything(i, collection) {
	const collections = await Promise.all(ids.map((id, j) => (i === j ? collection : opened[j] ?? client.openCollection(addressOf(id)).catch(() => null))))
	collections.forEach((one, j) => (opened[j] = one))
	return collections
}
/** @type {(Collection | null)[]} */
const opened = []

/** Shows a question, or the reason why it cannot be answered. @param {number} i */
async function question(i) {
	/** @type {Collection} */
	let collection
	try {
		collection = await client.openCollection(addressOf(ids[i]))
	} catch (error) {
		const reason = error instanceof Error ? error.name : ""
		const message = reason === "NotFound" ? "This survey does not exist. Check that the link is complete."
			: reason === "TypeError" ? "The survey cannot be reached. Try again when you are online."
			: reason === "PolicyViolated" ? `This question violates its own rule: its replies would reveal more than it states. Nothing was drawn or sent. (${error instanceof Error ? error.message : error})`
			: `This question cannot be answered safely: ${error instanceof Error ? error.message : error}`
		return show(progress(i), h("h1", {}, "This question cannot be shown"), h("p", { class: "alarm" }, message), h("div", { class: "actions" },
			h("button", { type: "button", class: "main", onclick: () => question(i) }, "Try again"), onwards(i)))
	}
	document.title = collection.title
	const known = await collection.answered(), secret = secrets[i]
	if (known) return outcome(i, collection, known)
	const closed = collection.state !== "open" && "This question is closed and accepts no more answers."
	const missing = collection.submission !== "open" && !secret && "This survey needs a personal link. Open the complete link that you received."
	if (closed || missing) {
		return show(progress(i), h("h1", {}, collection.title), h("p", { class: "alarm" }, closed || missing), h("div", { class: "actions" }, onwards(i)))
	}
	const memory = (await collection.remembered()) ? "same" : (await collection.drawnAgain()) ? "other" : ""
	form(i, collection, secret, await everything(i, collection), memory)
}

/** Shows the form of a question, always together with what the reply reveals. @param {number} i @param {Collection} collection @param {string | undefined} secret
 * @param {(Collection | null)[]} all @param {"" | "same" | "other"} memory whether this browser stores a reply to the same question, from the same or from another mechanism */
function form(i, collection, secret, all, memory) {
	const remembered = memory === "same", chooser = remembered ? null : choices(collection.policy), fault = h("p", { class: "alarm", role: "alert", hidden: true })
	const label = remembered ? "Send the same reply" : exposure(collection.disclosure) === "always" ? "Send" : "Randomize and send"
	const send = h("button", { type: "submit", class: "main" }, label)
	const fields = h("form", { onsubmit: async (/** @type {Event} */ event) => {
		event.preventDefault()
		const value = chooser?.value()
		fault.hidden = !chooser || value !== undefined
		if (chooser && value === undefined) {
			fault.textContent = "Choose an answer first, or press “I would rather not answer”."
			return chooser.element.querySelector("input")?.focus()
		}
		send.disabled = true
		try {
			const answer = await collection.answer(value, secret)
			outcome(i, collection, answer, !!chooser && answer.repeated)
		} catch (error) {
			send.disabled = false
			fault.hidden = false
			fault.textContent = `Nothing was sent. ${error instanceof Error ? error.message : error}`
		}
	} },
	chooser?.element ?? h("p", { id: "remembered" }, REMEMBERED), memory === "other" && h("p", { class: "alarm", id: "again" }, DRAWN_AGAIN), fault, promise(collection), ids.length > 1 && sum(all),
	h("div", { class: "actions" }, send, h("button", { type: "button", onclick: () => refused(i, collection) }, "I would rather not answer")))
	show(progress(i), h("h1", {}, collection.title), ...paragraphs(collection.description), h("div", { class: "card" }, fields))
}

/** @param {string} description */
const paragraphs = (description) => description.split(/\n+/).filter(Boolean).map((line) => h("p", { class: "lead" }, line))

const REMEMBERED = "This browser has already answered this question. It sends the reply that it drew then and draws no new one, so the reply reveals nothing more about your answer. A collector that receives both copies may see that they come from the same person. If your answer has changed since then, the reply does not reflect that."

const DRAWN_AGAIN = "This browser has already answered this question, when it was asked with another randomizer. That reply cannot be sent here. The browser draws a new reply, and what both replies reveal adds up."

const REPEATED = "This browser has already answered this question, perhaps in another tab. It sent the reply that it drew then. The answer that you chose now was not used."

/** Sentences about a reply before and after it is drawn, by how likely it reveals the answer. */
const EXPOSED = {
	"": ["Your device sends a random reply. Your answer changes only the odds of each reply.", "It was drawn at random. Your answer changed only its odds."],
	likely: ["Careful: the reply is likely to reveal your answer.", "It is likely to reveal your answer."],
	nearly: ["Careful: the reply almost always reveals your answer.", "It almost always reveals your answer."],
	always: ["Careful: your answer is sent as it is. The reply always reveals it.", "It reveals your answer."],
}

/** @param {[string, string, string]} sentence words, a bound to emphasize, and more words */
const stressed = ([start, bound, rest]) => [start, bound && h("strong", {}, bound), rest]

/** States what is sent and what it can reveal, from the law of the mechanism. @param {Collection} collection */
function promise(collection) {
	const { disclosure } = collection, exposed = exposure(disclosure)
	const unproved = !disclosure.proved && h("li", { id: "unproved" }, `This page cannot check the rule of this survey (${collection.asks.replace(/\.$/, "")}). The numbers above are computed from the randomizer itself, so they hold whatever the rule is.`)
	return h("section", { class: "promise", "aria-label": "What will be sent" },
		h("h2", {}, "What will be sent"), h("p", exposed ? { class: "alarm loud", role: "alert" } : {}, EXPOSED[exposed][0]),
		h("p", { id: "odds" }, ...stressed(guessInWords(disclosure))),
		h("ul", { class: "disclosure" }, ...disclosureSentences(factsOf(collection), "reply").map((sentence) => h("li", {}, ...stressed(sentence))), unproved),
		h("p", { class: "small quiet" }, "Your device computes these odds, draws the reply, stores it and sends it. It stores and sends nothing else about your answer. If you choose not to answer, it draws nothing."))
}

/** States what the replies to all questions of the link reveal together. @param {(Collection | null)[]} all */
function sum(all) {
	const known = /** @type {Collection[]} */ (all.filter(Boolean)), { after, guess, chance, drawn, shows } = together(known)
	const numbers = (/** @type {number[]} */ places) => places.map((place) => all.indexOf(known[place]) + 1).join(", ")
	const missing = all.flatMap((one, i) => (one ? [] : [i + 1]))
	return h("section", { class: "promise", id: "total", "aria-label": "All questions together" },
		h("h2", {}, `All ${ids.length} questions together`),
		h("p", after < 0.9 ? {} : { class: "alarm loud" }, ...stressed(after < 0.9995
			? ["What the replies reveal adds up. Together they can raise a stranger’s suspicion of something about you from 10% to at most ", atMost(after), "."]
			: ["What the replies reveal adds up. Together they can make a stranger nearly certain of something about you: from 10% to ", odds(after), "."])),
		h("p", {}, ...stressed(["If all answers are equally likely and independent, a stranger’s best guess of all your answers is correct with probability ", odds(guess), ` (without the replies: ${odds(chance)}).`])),
		drawn < known.length && h("p", {}, `${known.length - drawn === 1 ? "One question asks" : `${known.length - drawn} questions ask`} the same as another. Your device sends the same reply again, so it counts once here.`),
		shows.length > 0 && h("p", {}, `Question${shows.length > 1 ? "s" : ""} ${numbers(shows)}: the reply may also reveal an answer, or a part of it, that the rule does not hide. These numbers do not include that.`),
		missing.length > 0 && h("p", {}, `Question${missing.length > 1 ? "s" : ""} ${missing.join(", ")} cannot be loaded now, so these numbers do not include ${missing.length > 1 ? "them" : "it"}.`))
}

/** Shows that the participant did not answer. @param {number} i @param {Collection} collection */
function refused(i, collection) {
	show(progress(i), h("h1", {}, collection.title), h("div", { class: "card" },
		h("h2", {}, "You did not answer"),
		h("p", {}, "Nothing was drawn, stored or sent."),
		h("div", { class: "actions" }, onwards(i), h("button", { type: "button", onclick: () => question(i) }, "Answer after all"))))
	focusHeading()
}

/** Moves the focus to the heading, so that screen readers announce the new content. */
function focusHeading() {
	const heading = place.querySelector("h2") ?? place.querySelector("h1")
	heading?.setAttribute("tabindex", "-1")
	heading?.focus({ preventScroll: true })
}

/** Heading and explanation for each state of a reply. */
const STATES = {
	waiting: ["Your reply is stored, but not sent yet", "Your browser sends it as soon as there is a connection, now or when you next open this survey. You can close this page."],
	sent: ["Thank you, your reply has arrived", "The collector counted it once. You can close this page."],
	refused: ["Your reply was not accepted", ""],
}

/** Shows the reply and its state. @param {number} i @param {Collection} collection @param {Answer} answer @param {boolean} [unused] whether the answer chosen now was not used */
function outcome(i, collection, answer, unused) {
	const heading = h("h2", {}), explained = h("p", {}), problem = h("p", { class: "alarm", hidden: true })
	const drawn = drawnInWords(collection.mechanism, answer.report), exposed = exposure(collection.disclosure)
	const results = /** @type {any} */ (collection).results === "public" && i + 1 >= ids.length
	show(progress(i), h("h1", {}, collection.title), h("div", { class: "card", id: "outcome" },
		heading, unused && h("p", { class: "alarm loud", id: "repeated", role: "alert" }, REPEATED), explained, problem,
		h("div", { class: "promise" },
			h("p", {}, "The reply that was drawn: ", h("strong", { id: "drawn" }, drawn ?? `code ${JSON.parse(answer.report)}`), "."),
			h("p", {}, `${EXPOSED[exposed][1]} `, ...stressed(guessInWords(collection.disclosure))),
			answer.drawn && h("p", {}, "Your browser drew it when you first answered this question, and sent it again."),
			h("p", { class: "small quiet" }, "Your browser does not draw a second reply to this question, because that would reveal more. If you open this page again, you see the same reply.")),
		h("details", {}, h("summary", {}, "The exact data that is sent"), h("pre", {}, h("code", { id: "sent" }, `{"batch":"${answer.batch}","report":${answer.report}}`))),
		h("div", { class: "actions" }, onwards(i), results && h("a", { class: "button", href: `/c/${collection.id}/results` }, "See the results so far"))))
	const update = (/** @type {Answer} */ { state, problem: error }) => {
		const [title, explanation] = STATES[state]
		heading.textContent = title
		heading.dataset.state = state
		explained.textContent = explanation
		problem.hidden = !error || state !== "refused"
		problem.textContent = error ? errorInWords(error) : ""
	}
	update(answer)
	focusHeading()
	if (answer.state === "waiting") follow(collection, update, heading)
}

/** Returns the reason of a rejection for participants. @param {{ reason: string, message: string }} error */
function errorInWords({ reason, message }) {
	if (reason === "token-spent") return "This personal link was used before, from another browser. Each link counts once."
	if (reason === "token-unknown" || reason === "unauthorized") return "This link is not valid for this survey. Ask the person who sent it to you for a new one."
	if (reason === "not-open") return "The survey was closed before your reply arrived."
	return message
}

/** Tries to send until the reply is accepted or rejected. @param {Collection} collection @param {(answer: Answer) => void} update @param {HTMLElement} shown */
async function follow(collection, update, shown) {
	while (shown.isConnected) {
		await client.flush().catch(() => 0)
		const answer = await collection.answered()
		if (answer && answer.state !== "waiting") return update(answer)
		await new Promise((resolve) => {
			setTimeout(resolve, 3000)
			addEventListener("online", resolve, { once: true })
		})
	}
}

// -- choosing a value ----------------------------------------------------------------------------------------------------

/** Creates the input for a value of a policy's domain. @param {any} policy the document of the policy @returns {{ element: HTMLElement, value: () => any }} */
function choices({ domain, policy }) {
	if (domain.grid) return mapChoice(domain, policy)
	const parts = factorsOf(domain).map(({ name, labels }, i) => listChoice(name || "Your answer", labels, `answer-${i}`))
	const value = () => {
		const chosen = parts.map((part) => part.value())
		return chosen.includes(undefined) ? undefined : domain.product ? chosen : chosen[0]
	}
	return { element: h("div", {}, ...parts.map(({ element }) => element)), value }
}

/** Creates a list of radio buttons, with a search field if it is long. @param {string} legend @param {any[]} labels @param {string} name */
function listChoice(legend, labels, name) {
	const options = labels.map((label, i) => h("label", { class: "choice" }, h("input", { type: "radio", name, value: i }), h("span", {}, String(label))))
	const list = h("div", { class: labels.length > MANY ? "choices long" : "choices" }, ...options)
	const value = () => {
		const chosen = /** @type {HTMLInputElement | null} */ (list.querySelector("input:checked"))
		return chosen ? labels[Number(chosen.value)] : undefined
	}
	if (labels.length <= MANY) return { element: h("fieldset", {}, h("legend", {}, legend), list), value }
	const message = h("p", { class: "chosen quiet", "aria-live": "polite" }, "You have not chosen an answer yet.")
	const search = h("input", {
		type: "search", "aria-label": `Search: ${legend}`, placeholder: "Search …",
		oninput: () => filter(),
		// The enter key must not submit the form from the search field.
		onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.preventDefault(),
	})
	// The chosen value stays visible, whatever the search is.
	const filter = () => {
		const query = search.value.trim().toLowerCase(), chosen = value()
		options.forEach((option, i) => (option.hidden = labels[i] !== chosen && !String(labels[i]).toLowerCase().includes(query)))
		if (chosen !== undefined) message.textContent = `Chosen: ${chosen}.`
	}
	list.addEventListener("change", filter)
	return { element: h("fieldset", {}, h("legend", {}, legend), h("div", { class: "field" }, search), list, message), value }
}

/** Creates a map to choose a cell from; the groups of a block policy have colours. @param {any} domain @param {any} policy */
function mapChoice(domain, policy) {
	const grid = /** @type {NonNullable<ReturnType<typeof gridOf>>} */ (gridOf(domain)), labels = labelsOf(domain)
	const message = h("p", { class: "quiet", "aria-hidden": "true" }, "You have not chosen a cell yet.")
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
	const [[south, north], [west, east]] = grid.map ? [domain.grid.latitude, domain.grid.longitude] : [[0, 1], [0, 1]]
	// Studio uses the range 0 to 1 for a map without coordinates.
	const bare = [south, north, west, east].join() === "0,1,0,1"
	const edges = bare ? "" : `: ${south}° to ${north}° of latitude, ${west}° to ${east}° of longitude`
	const hint = grid.map ? `North is up${edges}. Rows count from the south.` : "Rows count from the top."
	const element = h("fieldset", {}, h("legend", {}, `Your place on the ${grid.map ? "map" : "grid"}`, h("span", { class: "hint" }, hint)), board, message)
	const value = () => {
		const chosen = inputs.find((input) => input.checked)
		return chosen && labels[Number(chosen.value)]
	}
	return { element, value }
}

begin()
