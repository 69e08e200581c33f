// What a participant sees: one question after another; each answer is randomized here, once, and only then sent.
import { ask } from "./api.js"
import { factorsOf, gridOf, labelsOf, nameOf } from "./domains.js"
import { at, h } from "./dom.js"
import { drawnInWords, inClear, reveals } from "./words.js"
/** @import {Answer, Collection} from "./types" */

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
	const given = await client.answers()
	const open = ids.findIndex((id) => !given.some(({ collection }) => collection === addressOf(id)))
	await question(open < 0 ? ids.length - 1 : open)
}

/** @param {string} id */
const addressOf = (id) => new URL(`/v1/collections/${id}`, location.href).href

/** @param {number} i */
async function question(i) {
	/** @type {Collection} */
	let collection
	try {
		collection = await client.openCollection(addressOf(ids[i]))
	} catch (error) {
		const reason = error instanceof Error ? error.name : ""
		const said = reason === "NotFound" ? "There is no such survey. Is the link complete?"
			: reason === "TypeError" ? "The survey cannot be reached now. Try again when you are online."
			: `This question cannot be answered safely: ${error instanceof Error ? error.message : error}`
		return show(progress(i), h("h1", {}, "This question cannot be shown"), h("p", { class: "alarm" }, said), h("div", { class: "actions" },
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
	form(i, collection, secret)
}

/** @param {number} i @param {Collection} collection @param {string | undefined} secret */
function form(i, collection, secret) {
	const chooser = choices(collection.policy), fault = h("p", { class: "alarm", role: "alert", hidden: true })
	const send = h("button", { type: "submit", class: "main" }, "Randomize and send")
	const asked = h("form", { onsubmit: async (/** @type {Event} */ event) => {
		event.preventDefault()
		const value = chooser.value()
		fault.hidden = value !== undefined
		if (value === undefined) {
			fault.textContent = "Choose an answer first, or say below that you would rather not."
			return chooser.element.querySelector("input")?.focus()
		}
		send.disabled = true
		try {
			outcome(i, collection, await collection.answer(value, secret))
		} catch (error) {
			send.disabled = false
			fault.hidden = false
			fault.textContent = `Nothing was sent: ${error instanceof Error ? error.message : error}`
		}
	} },
	chooser.element, fault, promise(collection, send),
	h("div", { class: "actions" }, send, h("button", { type: "button", onclick: () => refused(i, collection) }, "I would rather not answer")))
	show(progress(i), h("h1", {}, collection.title), ...paragraphs(collection.description), h("div", { class: "card" }, asked))
}

/** @param {string} text */
const paragraphs = (text) => text.split(/\n+/).filter(Boolean).map((line) => h("p", { class: "lead" }, line))

/** What may be said of a reply before and after it is drawn, by whether it may be the answer itself. */
const TRUE_OF = {
	none: ["Not your answer itself, but a random reply whose odds depend on it.", "It need not be your answer."],
	some: ["A random reply whose odds depend on your answer. For some answers it may be the answer itself, as said below.", "It may be your answer."],
	all: ["Expect your answer to be sent as it is: the rule of this survey hides nothing of it.", "Expect it to be your answer: the rule of this survey hides nothing of it."],
}

/** What the collector says that an answer can reveal; asked for once. @param {Collection} collection */
const learned = (collection) => (checks[collection.id] ??= ask(`/v1/collections/${collection.id}/reveals`))
/** @type {Record<string, Promise<any>>} */
const checks = {}

/** What is sent and what it can reveal. @param {Collection} collection @param {HTMLElement} send the button */
function promise(collection, send) {
	// What is not known yet, or cannot be, is not promised.
	const what = h("p", {}, "A reply whose odds depend on your answer."), told = h("ul", { class: "reveals" }, h("li", {}, "…"))
	learned(collection).then((checked) => {
		const clear = inClear(checked)
		what.textContent = TRUE_OF[clear][0]
		if (clear === "all") {
			what.className = "alarm"
			send.textContent = "Send"
		}
		told.replaceChildren(...reveals(checked, "reply").map(([text, bound, rest]) => h("li", {}, text, bound && h("strong", {}, bound), rest)))
	}).catch(() => told.replaceChildren(h("li", {}, `The rule is: ${collection.asks}`)))
	return h("section", { class: "promise", "aria-label": "What will be sent" },
		h("h2", {}, "What will be sent"), what, told,
		h("p", { class: "small quiet" }, "This device draws the reply, keeps it, and sends it; nothing else of your answer is stored or sent. If you would rather not answer, nothing is drawn."))
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

/** @param {number} i @param {Collection} collection @param {Answer} answer */
function outcome(i, collection, answer) {
	const heading = h("h2", {}), explained = h("p", {}), problem = h("p", { class: "alarm", hidden: true })
	const drawn = drawnInWords(collection.mechanism, answer.report), what = h("span", {})
	learned(collection).then((checked) => what.append(`${TRUE_OF[inClear(checked)][1]} `)).catch(() => 0)
	const results = /** @type {any} */ (collection).results === "public" && i + 1 >= ids.length
	show(progress(i), h("h1", {}, collection.title), h("div", { class: "card", id: "outcome" },
		heading, explained, problem,
		h("div", { class: "promise" },
			h("p", {}, "The reply that was drawn: ", h("strong", { id: "drawn" }, drawn ?? `code ${JSON.parse(answer.report)}`), "."),
			h("p", { class: "small quiet" }, what, "It is never drawn again: a second draw would reveal more. Opening this page again shows the same.")),
		h("details", {}, h("summary", {}, "Exactly what is sent"), h("pre", {}, h("code", { id: "sent" }, `{"batch":"${answer.batch}","report":${answer.report}}`))),
		h("div", { class: "actions" }, onwards(i), results && h("a", { class: "button", href: `/c/${collection.id}/results` }, "See the results so far"))))
	const tell = (/** @type {Answer} */ { state, problem: why }) => {
		const [title, text] = SAID[state]
		heading.textContent = title
		heading.dataset.state = state
		explained.textContent = text
		problem.hidden = !why || state !== "refused"
		problem.textContent = why ? refusalInWords(why) : ""
	}
	tell(answer)
	focusHeading()
	if (answer.state === "waiting") follow(collection, tell, heading)
}

/** @param {{ reason: string, message: string }} why */
function refusalInWords({ reason, message }) {
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
	const search = labels.length > MANY && h("div", { class: "field" }, h("input", {
		type: "search", "aria-label": `Search: ${legend}`, placeholder: "Search …",
		oninput: (/** @type {any} */ event) => {
			const sought = event.target.value.trim().toLowerCase()
			options.forEach((option, i) => (option.hidden = !String(labels[i]).toLowerCase().includes(sought)))
		},
	}))
	const element = h("fieldset", {}, h("legend", {}, legend), search, list)
	const value = () => {
		const chosen = /** @type {HTMLInputElement | null} */ (element.querySelector("input:checked"))
		return chosen ? labels[Number(chosen.value)] : undefined
	}
	return { element, value }
}

/** Groups that a reply may show have colours. @param {any} domain @param {any} policy */
function mapChoice(domain, policy) {
	const grid = /** @type {NonNullable<ReturnType<typeof gridOf>>} */ (gridOf(domain)), labels = labelsOf(domain)
	const said = h("p", { class: "quiet", "aria-hidden": "true" }, "No cell is chosen yet.")
	const inputs = grid.order.map((x) => h("input", {
		type: "radio", name: "answer", value: x, "aria-label": nameOf(labels[x], domain),
		onchange: () => (said.textContent = `Chosen: ${nameOf(labels[x], domain)}.`),
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
	const element = h("fieldset", {}, h("legend", {}, "Your place on the map", h("span", { class: "hint" }, `North is up${edges}. Rows count from the south.`)), board, said)
	const value = () => {
		const chosen = inputs.find((input) => input.checked)
		return chosen && labels[Number(chosen.value)]
	}
	return { element, value }
}

begin()
