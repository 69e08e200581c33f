// The survey page: it shows one question after another, randomizes each answer once, and sends only the reply.
import { backgroundOf, districtName, layer, zoomable } from "./districts.js"
import { factorsOf, gridOf, isMarks, labelsOf, nameOf } from "./domains.js"
import { at, h } from "./dom.js"
import {
	currentLanguage,
	keepLanguage,
	LANGUAGES,
	quoted,
	stressedMessage,
	t,
	useLanguage,
	wantedLanguage,
} from "./messages.js"
import { isNumeric, numberChoice } from "./number-choice.js"
import { bothLevels, factsOf, together } from "./promise.js"
import { consentPage, endingOf, needsConsent, paragraphs, presentationOf, sectionOf } from "./structure.js"
import {
	atMost,
	disclosureSentences,
	exposure,
	guessInWords,
	odds,
	oddsInWords,
	partOdds,
	replyInWords,
} from "./words.js"
/** @import {Answer, Collection} from "./sfumato.js" */
/** @import {ReplyReader} from "./replies.js" */

/** Number of values above which a list has a search field, and a choice is confirmed. */
const MANY = 12
/** Key of the declined questions of this tab. */
const DECLINED = "sfumato-declined"

const parameters = new URLSearchParams(location.search)
const ids = [location.pathname.split("/")[2], ...(parameters.get("then") ?? "").split(",").filter(Boolean)]
// The fragment of the URL never leaves the browser. It holds a one-time token, or the key, for each question, and after
// a semicolon the begin of the hash of each mechanism, so that the page notices another mechanism than that of the
// link.
const [secrets, hashes] = `${fragment()};`.split(";").map((list) => list.split(",").filter(Boolean))
// Another link to this page that is opened in the same tab changes only the fragment.
addEventListener("hashchange", () => location.hash && location.reload())
const place = at("survey")

/** @type {typeof import("./sfumato.js")} */
let client
/** @type {typeof import("./replies.js")} */
let replies

/**
 * Returns the fragment, and moves it from the address to the storage of this tab: a token in the address would stay in
 * the history and in screenshots.
 */
function fragment() {
	const key = `link ${location.pathname}${location.search}`,
		found = location.hash.slice(1)
	try {
		if (!found) return sessionStorage.getItem(key) ?? ""
		sessionStorage.setItem(key, found)
		history.replaceState(null, "", location.pathname + location.search)
	} catch {
		// Without storage, the token stays in the address.
	}
	return found
}

/** Returns an entry of the storage of this tab, or "" if there is none, or no storage. @param {string} key */
function stored(key) {
	try {
		return sessionStorage.getItem(key) ?? ""
	} catch {
		return ""
	}
}

/** Stores an entry in this tab, if it has storage. @param {string} key @param {string} value */
function store(key, value) {
	try {
		sessionStorage.setItem(key, value)
	} catch {
		// Without storage, the choice lasts until the page is loaded again.
	}
}

/** Counts calls of `question` and pages that were shown, so that a slow question does not replace a later page. */
let turn = 0

/** Replaces the content of the page. @param {import("./dom.js").Child[]} content */
function show(...content) {
	turn++
	place.replaceChildren(...content.filter(Boolean))
	scrollTo(0, 0)
}

/** @param {number} i */
const progress = (i) => ids.length > 1 && h("p", { class: "step" }, t("step", { number: i + 1, count: ids.length }))

/** The page after the last question. */
const END = ids.length

/** Creates the button to the next question or to the end of a survey of several questions. @param {number} i */
function onwards(i) {
	if (ids.length < 2) return null
	return h("button", { type: "button", class: "main", onclick: () => go(i + 1) }, t(i + 1 < END ? "next" : "finish"))
}

/**
 * Shows a question or the end, as a new entry of the browser's history, so that "back" returns to the question before.
 * @param {number} i
 */
async function go(i) {
	if (history.state?.question !== i) history.pushState({ question: i }, "")
	await question(i)
	focusHeading()
}

/** @returns {string[]} addresses of the questions that were declined in this tab */
const declined = () => JSON.parse(stored(DECLINED) || "[]")

/** @param {string} address @param {boolean} isDeclined */
const noteDeclined = (address, isDeclined) =>
	store(DECLINED, JSON.stringify([...declined().filter((one) => one !== address), ...(isDeclined ? [address] : [])]))

/** Creates the choice of the language. */
function languageChoice() {
	return h(
		"label",
		{ class: "language" },
		h("span", {}, t("language")),
		h(
			"select",
			{
				onchange: async (/** @type {any} */ event) => {
					keepLanguage(event.target.value)
					await useLanguage(event.target.value)
					showFooter()
					if (client) await question(history.state?.question ?? 0)
					else await begin()
				},
			},
			...Object.entries(LANGUAGES).map(([code, name]) =>
				h("option", { value: code, lang: code, selected: code === currentLanguage() }, name),
			),
		),
	)
}

const showFooter = () => at("footer").replaceChildren(languageChoice())

/**
 * Whether a host is in a local network: a private address, or a name that only such a network knows. Names of two
 * letters or in Punycode may be top-level domains of countries, and generic ones have no addresses.
 * @param {string} host
 */
const isLocal = (host) =>
	/^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$|^\[(f[cd]|fe[89ab])|^(?!..$|xn--)[^.:[]+$|\.(local|lan|internal|home\.arpa)$/i.test(
		host,
	)

/** Key of the consent to plain HTTP in this tab. */
const PLAIN = "sfumato-plain-http"

/** States what plain HTTP lacks, and lets a participant in a local network continue. */
function plainHttp() {
	show(
		h("h1", {}, t("plain-title")),
		h(
			"div",
			{ class: "card", id: "plain" },
			h("p", {}, t("plain-why")),
			h("ul", {}, ...[t("plain-change"), t("plain-read"), t("plain-offline")].map((sentence) => h("li", {}, sentence))),
			h("p", {}, t("plain-else")),
			h(
				"div",
				{ class: "actions" },
				h(
					"button",
					{
						type: "button",
						onclick: () => {
							store(PLAIN, "yes")
							agreedToPlain = true
							begin().then(focusHeading)
						},
					},
					t("plain-continue"),
				),
			),
		),
	)
}
let agreedToPlain = stored(PLAIN) === "yes"

/** Shows the first question that is neither answered nor declined, or the end. */
async function begin() {
	await useLanguage(wantedLanguage())
	showFooter()
	if (!isSecureContext && isLocal(location.hostname)) {
		if (!agreedToPlain) return plainHttp()
		Object.assign(globalThis, { sfumatoPlainHttp: true })
	}
	try {
		;[client, replies] = await Promise.all([import("./sfumato.js"), import("./replies.js")])
	} catch (error) {
		const insecure = !isSecureContext
		return show(
			h("h1", {}, t("cannot-answer")),
			h(
				"p",
				{ class: "alarm" },
				insecure ? t("insecure") : t("part-missing", { reason: error instanceof Error ? error.message : error }),
			),
		)
	}
	/** @type {Answer[]} */
	let answered
	try {
		// Permanent answers of memoized mechanisms are not replies.
		answered = (await client.answers()).filter(({ report }) => report)
	} catch (error) {
		return show(
			h("h1", {}, t("cannot-answer")),
			h("p", { class: "alarm" }, t("no-storage", { reason: error instanceof Error ? error.message : error })),
		)
	}
	const refused = declined()
	const open = ids.findIndex(
		(id) => !refused.includes(addressOf(id)) && !answered.some(({ collection }) => collection === addressOf(id)),
	)
	addEventListener("popstate", back)
	await question(open < 0 ? (ids.length > 1 ? END : 0) : open)
	prepareOffline()
}

/** Shows the question of an entry of the browser's history. @param {PopStateEvent} event */
const back = ({ state }) => void question(state?.question ?? 0).then(focusHeading)

/**
 * Stores the page and its questions, so that the link opens without the network from now on. Browsers without service
 * workers, or whose
 * storage is blocked, need the network.
 */
async function prepareOffline() {
	try {
		await navigator.serviceWorker.register("/worker.js")
		const cache = await caches.open("sfumato-survey")
		// A question that cannot be loaded must not keep the others from being stored.
		const [page] = await Promise.allSettled(
			[location.pathname, ...ids.map((id) => `/v1/collections/${id}`)].map((path) => cache.add(path)),
		)
		if (page.status === "fulfilled") document.documentElement.dataset.offline = "ready"
	} catch {
		// The page works as before, with the network.
	}
}

/** @param {string} id */
const addressOf = (id) => new URL(`/v1/collections/${id}`, location.href).href

/**
 * Opens all collections of the link, null for those that cannot be read, because the page states what all replies
 * reveal together.
 * @param {number} i
 * @param {Collection} collection
 */
async function everything(i, collection) {
	const collections = await Promise.all(
		ids.map((id, j) =>
			i === j ? collection : (opened[j] ?? client.openCollection(addressOf(id), hashes[j]).catch(() => null)),
		),
	)
	collections.forEach((one, j) => (opened[j] = one))
	return collections
}
/** @type {(Collection | null)[]} */
const opened = []

/** Replies that are drawn or were, by question. @type {(Promise<any> | undefined)[]} */
const deliveries = []

/**
 * Shows a question, or the reason why it cannot be answered; after the last one, the end.
 * @param {number} i
 * @param {boolean} [unused] whether an answer that was chosen now was not used
 */
async function question(i, unused = false) {
	history.replaceState({ question: i }, "")
	if (i >= END) return await end()
	const current = ++turn
	// What was sent is shown, not asked for again.
	await deliveries[i]?.catch(() => undefined)
	/** @type {Collection} */
	let collection
	try {
		collection = await client.openCollection(addressOf(ids[i]), hashes[i])
	} catch (error) {
		const name = error instanceof Error ? error.name : "",
			reason = error instanceof Error ? error.message : error
		const isKnown =
			name === "NotFound" &&
			(await client.answers().catch(() => [])).some(
				({ collection: address }) => address.split("#")[0] === addressOf(ids[i]),
			)
		if (current !== turn) return
		const message =
			name === "NotFound"
				? t(isKnown ? "deleted" : "not-found")
				: name === "TypeError"
					? t("unreachable")
					: t(name === "PolicyViolated" ? "violated" : "unsafe", { reason })
		return show(
			progress(i),
			h("h1", {}, t("cannot-show")),
			h("p", { class: "alarm" }, message),
			h(
				"div",
				{ class: "actions" },
				h("button", { type: "button", class: "main", onclick: () => question(i) }, t("try-again")),
				onwards(i),
			),
		)
	}
	// A link without a hash trusts the first mechanism, and no other one afterwards.
	hashes[i] ??= collection.mechanism_hash
	const known = await collection.answered(),
		secret = secrets[i]
	if (current !== turn) return
	document.title = collection.title
	if (known) return outcome(i, collection, known, unused)
	if (needsConsent(collection)) {
		return consentPage(
			collection,
			(content) => {
				show(...content)
				if (current !== 1) focusHeading()
			},
			() => question(i).then(focusHeading),
		)
	}
	if (declined().includes(collection.url)) return refused(i, collection)
	// A reply that is refused costs privacy all the same, so the collector is asked before anything is drawn.
	const problem =
		closedInWords(collection) ||
		(collection.submission !== "open" && !secret && t("needs-link")) ||
		refusalInWords(await collection.refusal(secret))
	if (current !== turn) return
	if (problem)
		return show(
			progress(i),
			title(collection),
			h("p", { class: "alarm", id: "problem" }, problem),
			h("p", {}, t("nothing-drawn")),
			h("div", { class: "actions" }, onwards(i)),
		)
	const memory = (await collection.remembered()) ? "same" : (await collection.drawnAgain()) ? "other" : ""
	const all = await everything(i, collection)
	if (current === turn) form(i, collection, secret, all, memory)
}

/** Returns why a question accepts no replies now, or "". @param {Collection} collection */
function closedInWords(collection) {
	if (collection.state === "scheduled")
		return t("not-yet", {
			date: new Date(1000 * (collection.opens ?? 0)).toLocaleString(`${currentLanguage()}-u-nu-latn`, {
				dateStyle: "long",
				timeStyle: "short",
			}),
		})
	if (collection.state !== "open") return t("closed")
	return collection.waves?.current === null ? `${t("no-wave")} ${returning(collection)}` : ""
}

/** States when to come back to a question that returns. @param {Collection} collection */
function returning({ waves }) {
	if (!waves) return ""
	const { current, count, next, days } = waves,
		isOver = days === null ? current === count - 1 : next === null || current === count - 1
	if (isOver) return t("last-wave")
	return next === null
		? t("come-back-later")
		: t("come-back", {
				date: new Date(next * 1000).toLocaleDateString(`${currentLanguage()}-u-nu-latn`, { dateStyle: "long" }),
			})
}

/**
 * States both levels of a question that returns: of one reply, and of all replies together.
 * @param {Collection} collection
 */
function levels(collection) {
	const bounds = collection.waves && bothLevels(collection)
	if (!bounds) return null
	const { every } = /** @type {any} */ ({ every: collection.mechanism.parameters.refresh_every }),
		most = collection.most ?? Infinity
	const changes = every
		? t("lifetime-schedule", { waves: every, most })
		: t(most > 1 ? "lifetime-changes" : "lifetime-fixed", { most })
	return h(
		"section",
		{ class: "promise", id: "lifetime", "aria-label": t("lifetime-title") },
		h("h2", {}, t("lifetime-title")),
		h("p", {}, t("lifetime-how")),
		h(
			"ul",
			{ class: "disclosure" },
			h(
				"li",
				{ id: "level-one" },
				...stressed(stressedMessage("level-one", { before: atMost(bounds.before), bound: atMost(bounds.one) })),
			),
			h(
				"li",
				{ id: "level-all" },
				...stressed(
					bounds.all < 0.9995
						? stressedMessage("level-all", { bound: atMost(bounds.all) })
						: stressedMessage("level-certain"),
				),
			),
			h(
				"li",
				{},
				changes,
				most > 1 && " ",
				most > 1 &&
					h(
						"span",
						{ id: "level-total" },
						...stressed(
							bounds.total < 0.9995
								? stressedMessage("level-total", { bound: atMost(bounds.total) })
								: stressedMessage("together-certain", { bound: odds(bounds.total) }),
						),
					),
			),
		),
	)
}

/** The wording of a question, in the direction of its language. @param {Collection} collection */
const title = (collection) => h("h1", { dir: "auto" }, collection.title)

/**
 * Returns what replies of a collection name, or null if that is not known.
 * @param {Collection} collection
 * @returns {ReplyReader | null}
 */
const readerOf = ({ mechanism, domain }) => replies.replyReader(mechanism, domain.size, domain.sizes)

/**
 * Shows the form of a question, always together with what the reply reveals.
 * @param {number} i
 * @param {Collection} collection
 * @param {string | undefined} secret
 * @param {(Collection | null)[]} all
 * @param {"" | "same" | "other"} memory whether this browser stores a reply to the same question, from the same or from
 * another mechanism
 */
function form(i, collection, secret, all, memory) {
	const remembered = memory === "same",
		fault = h("p", { class: "alarm", role: "alert", hidden: true }),
		statement = promise(collection)
	const chooser = remembered ? null : choices(collection, (value) => statement.choose(collection.domain.place(value)))
	const label = remembered ? t("send-same") : t(exposure(collection.disclosure) === "always" ? "send-plain" : "send")
	// A long list or a map is easy to miss by one line or cell: the choice is shown once more.
	const confirmed = !chooser?.check,
		send = h("button", { type: "submit", class: "main" }, confirmed ? label : t("check"))
	const deliver = async (/** @type {any} */ value, /** @type {HTMLButtonElement} */ button) => {
		const current = turn
		button.disabled = fields.inert = true
		try {
			const answer = await (deliveries[i] = collection.answer(value, secret))
			if (current !== turn) return
			outcome(i, collection, answer, !!chooser && answer.repeated)
			focusHeading()
		} catch (error) {
			if (current !== turn) return
			// The question then states why no reply is accepted: closed, or the link was used meanwhile.
			if (error instanceof Error && error.name === "Refused") return await question(i, !!chooser).then(focusHeading)
			button.disabled = fields.inert = false
			fault.hidden = false
			fault.textContent = t("nothing-sent", { reason: error instanceof Error ? error.message : error })
		}
	}
	const review = h("div", { id: "confirm", hidden: true }),
		steps = h("div", {}, chooser?.element ?? h("p", { id: "remembered" }, t("remembered")))
	const { required } = presentationOf(collection)
	const buttons = h(
		"div",
		{ class: "actions" },
		send,
		!required &&
			h(
				"button",
				{
					type: "button",
					onclick: () => {
						noteDeclined(collection.url, true)
						refused(i, collection)
						focusHeading()
					},
				},
				t("decline"),
			),
	)
	const reviewing = (/** @type {boolean} */ is) => {
		review.hidden = !is
		steps.hidden = is
		buttons.hidden = is
	}
	const fields = h(
		"form",
		{
			"data-question": i,
			onsubmit: async (/** @type {Event} */ event) => {
				event.preventDefault()
				const value = chooser?.value()
				fault.hidden = !chooser || value !== undefined
				if (chooser && value === undefined) {
					fault.textContent = t(required ? "choose-required" : "choose-first")
					return chooser.element.querySelector("input")?.focus()
				}
				if (confirmed || !chooser) return await deliver(value, send)
				const heading = h("h2", { tabindex: -1 }, t("confirm")),
					now = h("button", { type: "button", class: "main", onclick: () => deliver(value, now) }, label)
				review.replaceChildren(
					heading,
					h(
						"p",
						{ class: "chosen-value", dir: "auto" },
						t("chosen", { name: quoted(chooser.describe?.(value) ?? nameOf(value, collection.policy.domain)) }),
					),
					...(gridOf(collection.policy.domain) && collection.policy.domain.grid
						? [litMap(collection, [collection.domain.place(value)])]
						: []),
					h(
						"div",
						{ class: "actions" },
						now,
						h(
							"button",
							{
								type: "button",
								onclick: () => {
									reviewing(false)
									send.focus()
								},
							},
							t("change"),
						),
					),
				)
				reviewing(true)
				heading.focus({ preventScroll: true })
				review.scrollIntoView({ block: "nearest" })
			},
		},
		steps,
		memory === "other" && h("p", { class: "alarm", id: "again" }, t("drawn-again")),
		fault,
		review,
		statement.element,
		levels(collection),
		ids.length > 1 && sum(all),
		required && h("p", { id: "required" }, t("required")),
		buttons,
	)
	const shown = place.querySelector(`form[data-question="${i}"]`)
	if (shown) repeatChoice(shown, fields)
	const { current, count } = collection.waves ?? { current: null, count: 0 }
	show(
		progress(i),
		sectionOf(collection),
		title(collection),
		...paragraphs(collection.description),
		!isSecureContext && h("p", { class: "alarm", id: "plain-http" }, t("plain-http")),
		!navigator.onLine && h("p", { class: "promise", id: "offline" }, t("offline")),
		current !== null && h("p", { id: "wave" }, t("wave", { number: current + 1, all: count })),
		h("div", { class: "card" }, fields),
	)
}

/**
 * Repeats what was chosen in the form that is replaced, say by one in another language.
 * @param {Element} from
 * @param {Element} to
 */
function repeatChoice(from, to) {
	const inputs = to.querySelectorAll("input")
	from.querySelectorAll("input").forEach(({ type, checked, value }, j) => {
		const input = inputs[j],
			isBox = type === "radio" || type === "checkbox"
		if (!input || !(isBox ? checked : value)) return
		Object.assign(input, isBox ? { checked } : { value })
		for (const name of ["input", "change"]) input.dispatchEvent(new Event(name, { bubbles: true }))
	})
}

/**
 * Key of the message about how likely a reply reveals the answer.
 * @param {Collection} collection
 * @param {string} [start]
 */
const exposedKey = ({ disclosure }, start = "") =>
	`${start}exposed${exposure(disclosure) && `-${exposure(disclosure)}`}`

/** @param {[string, string, string]} sentence words, a bound to emphasize, and more words */
const stressed = ([start, bound, rest]) => [start, bound && h("strong", {}, bound), rest]

/** States what is sent and what it can reveal, from the law of the mechanism. @param {Collection} collection */
function promise(collection) {
	const {
			disclosure,
			policy: { domain },
		} = collection,
		reader = readerOf(collection)
	const unproved =
		!disclosure.proved && h("li", { id: "unproved" }, t("unproved", { rule: collection.asks.replace(/\.$/, "") }))
	const often = h("ul", { class: "often", id: "often", hidden: !reader })
	/** States how often a reply names the chosen value, or examples. @param {number | null} chosen */
	const choose = (chosen) =>
		reader &&
		often.replaceChildren(...oddsInWords(reader, domain, chosen).map((sentence) => h("li", {}, ...stressed(sentence))))
	choose(null)
	const element = h(
		"section",
		{ class: "promise", "aria-label": t("will-be-sent") },
		h("h2", {}, t("will-be-sent")),
		h("p", exposure(disclosure) ? { class: "alarm loud", role: "alert" } : {}, t(exposedKey(collection))),
		often,
		h("p", { id: "odds" }, ...stressed(guessInWords(disclosure))),
		partOdds(disclosure.part),
		h(
			"ul",
			{ class: "disclosure", id: "bounds" },
			...disclosureSentences(factsOf(collection)).map((sentence) => h("li", {}, ...stressed(sentence))),
			unproved,
		),
		h("p", { class: "small quiet" }, t(collection.waves ? "device-waves" : "device-computes")),
		h("p", { class: "small quiet", id: "retention" }, retention(collection)),
	)
	return { element, choose }
}

/** Milliseconds of a day. */
const DAY = 86400000

/** States how long the collector keeps a reply that is sent now. @param {Collection} collection */
function retention(collection) {
	const { keep_days: days } = /** @type {any} */ (collection)
	if (collection.waves || days === 0) return t("retention-none")
	return days
		? t("retention", {
				date: new Date(Date.now() + days * DAY).toLocaleDateString(`${currentLanguage()}-u-nu-latn`, {
					dateStyle: "long",
					timeZone: "UTC",
				}),
			})
		: t("retention-until")
}

/** States what the replies to all questions of the link reveal together. @param {(Collection | null)[]} all */
function sum(all) {
	const known = /** @type {Collection[]} */ (all.filter(Boolean)),
		{ after, guess, chance, drawn, shows } = together(known)
	const numbers = (/** @type {number[]} */ places) => places.map((place) => all.indexOf(known[place]) + 1).join(", ")
	const missing = all.flatMap((one, i) => (one ? [] : [i + 1])),
		same = known.length - drawn
	return h(
		"section",
		{ class: "promise", id: "total", "aria-label": t("together-title", { count: ids.length }) },
		h("h2", {}, t("together-title", { count: ids.length })),
		h(
			"p",
			after < 0.9 ? {} : { class: "alarm loud" },
			...stressed(
				after < 0.9995
					? stressedMessage("together-after", { bound: atMost(after) })
					: stressedMessage("together-certain", { bound: odds(after) }),
			),
		),
		h("p", {}, ...stressed(stressedMessage("together-guess", { bound: odds(guess), chance: odds(chance) }))),
		same > 0 && h("p", {}, t("together-same", { count: same })),
		shows.length > 0 && h("p", {}, t("together-shows", { count: shows.length, numbers: numbers(shows) })),
		missing.length > 0 && h("p", {}, t("together-missing", { count: missing.length, numbers: missing.join(", ") })),
	)
}

/** Shows that the participant did not answer. @param {number} i @param {Collection} collection */
function refused(i, collection) {
	show(
		progress(i),
		title(collection),
		h(
			"div",
			{ class: "card" },
			h("h2", {}, t("declined")),
			h("p", {}, t("declined-more")),
			h(
				"div",
				{ class: "actions" },
				onwards(i),
				h(
					"button",
					{
						type: "button",
						onclick: async () => {
							noteDeclined(collection.url, false)
							await question(i)
							focusHeading()
						},
					},
					t("answer-after-all"),
				),
			),
		),
	)
}

/** Moves the focus to the heading, so that screen readers announce the new content. */
function focusHeading() {
	const heading = place.querySelector("#outcome h2, .card > h2") ?? place.querySelector("h1")
	heading?.setAttribute("tabindex", "-1")
	heading?.focus({ preventScroll: true })
}

/** Creates a small map with lit cells. @param {Collection} collection @param {number[]} lit */
function litMap(collection, lit) {
	const { domain } = collection.policy,
		grid = /** @type {NonNullable<ReturnType<typeof gridOf>>} */ (gridOf(domain)),
		on = new Set(lit),
		labels = labelsOf(domain)
	const board = h(
		"div",
		{
			class: "cells map lights",
			role: "img",
			"aria-label": `${t("reply-map", { count: lit.length, all: labels.length })} ${lit
				.slice(0, 20)
				.map((x) => nameOf(labels[x], domain))
				.join("; ")}`,
		},
		...grid.order.map((x) =>
			h(
				"span",
				{
					class: on.has(x) ? "cell lit" : "cell",
					title: `${nameOf(labels[x], domain)}: ${t(on.has(x) ? "lit" : "unlit")}`,
				},
				on.has(x) ? "●" : "",
			),
		),
		layer(backgroundOf(collection), grid.rows, grid.columns),
	)
	board.style.setProperty("--columns", String(grid.columns))
	return board
}

/**
 * Shows a drawn reply in words, and as a map or a full list where it names many values.
 * @param {Collection} collection
 * @param {Answer} answer
 */
function drawnReply(collection, answer) {
	const reader = readerOf(collection),
		{ domain } = collection.policy
	if (!reader) return { words: t("reply-code", { code: JSON.parse(answer.report) }), more: [] }
	const parts = replyInWords(domain, replies.readReply(reader, answer.report))
	const more = parts.flatMap(
		({ names, cells }) =>
			/** @type {HTMLElement[]} */ (
				cells
					? [litMap(collection, cells)]
					: names.length > 8
						? [
								h(
									"details",
									{},
									h("summary", {}, t("reply-all")),
									h("ul", { class: "long names" }, ...names.map((name) => h("li", { dir: "auto" }, name))),
								),
							]
						: []
			),
	)
	return { words: parts.map(({ words }) => words).join(t("and")), more }
}

/**
 * Shows the reply and its state.
 * @param {number} i
 * @param {Collection} collection
 * @param {Answer} answer
 * @param {boolean} [unused] whether the answer chosen now was not used
 */
function outcome(i, collection, answer, unused) {
	const heading = h("h2", {}),
		explained = h("p", {}),
		problem = h("p", { class: "alarm", hidden: true }),
		{ words, more } = drawnReply(collection, answer),
		left = ids.length - 1 - i
	const results = /** @type {any} */ (collection).results === "public" && ids.length === 1,
		[start, bound, rest] = stressedMessage("drawn", { bound: words })
	show(
		progress(i),
		title(collection),
		h(
			"div",
			{ class: "card", id: "outcome" },
			heading,
			unused && h("p", { class: "alarm loud", id: "repeated", role: "alert" }, t("repeated")),
			explained,
			problem,
			h(
				"div",
				{ class: "promise" },
				h("p", {}, start, h("strong", { id: "drawn", dir: "auto" }, bound), rest),
				...more,
				h("p", {}, `${t(exposedKey(collection, "drawn-"))} `, ...stressed(guessInWords(collection.disclosure))),
				partOdds(collection.disclosure.part),
				answer.drawn && h("p", {}, t("drawn-before")),
				h("p", { class: "small quiet" }, t(collection.waves ? "one-per-wave" : "no-second-draw")),
			),
			ids.length < 2 && endingOf([collection]),
			collection.waves && h("p", { id: "come-back" }, returning(collection)),
			h(
				"details",
				{},
				h("summary", {}, t("exact-data")),
				h(
					"pre",
					{ tabindex: 0 },
					h(
						"code",
						{ id: "sent" },
						`{"batch":"${answer.batch}",${answer.wave === undefined ? "" : `"wave":${answer.wave},`}"report":${answer.report}}`,
					),
				),
			),
			h(
				"div",
				{ class: "actions" },
				onwards(i),
				results && h("a", { class: "button", href: `/c/${collection.id}/results` }, t("results")),
			),
		),
	)
	const update = (/** @type {Answer} */ { state, problem: error }) => {
		heading.textContent = t(state)
		heading.dataset.state = state
		explained.textContent =
			state === "refused"
				? ""
				: `${t(`${state}-more`)} ${left > 0 ? t("follow", { count: left }) : ids.length < 2 ? t("can-close") : ""}`.trim()
		problem.hidden = !error || state !== "refused"
		problem.textContent = refusalInWords(error, "not-open")
	}
	update(answer)
	if (answer.state === "waiting") follow(collection, update, heading)
}

/**
 * Shows the end of a survey of several questions: the state of each, what was revealed, and the way back to each
 * question.
 */
async function end() {
	const current = ++turn,
		all = await Promise.all(
			ids.map((id, i) => opened[i] ?? client.openCollection(addressOf(id), hashes[i]).catch(() => null)),
		)
	if (current !== turn) return
	all.forEach((one, i) => (opened[i] = one))
	const heading = h("h1", {}, t("end-title")),
		list = h("ol", { class: "replies" }),
		waiting = h("p", { hidden: true }, t("end-waiting")),
		total = h("div", {})
	document.title = t("end-title")
	show(
		heading,
		h(
			"div",
			{ class: "card", id: "end" },
			endingOf(all),
			h("p", {}, t("end-more")),
			waiting,
			h("h2", {}, t("end-list")),
			list,
			total,
		),
	)
	while (heading.isConnected) {
		const answers = (await client.answers()).filter(({ report }) => report),
			refused = declined()
		const states = ids.map(
			(id, i) =>
				answers.find(
					({ collection }) => collection === addressOf(id) + (all[i]?.waves ? `#${all[i].waves.current}` : ""),
				)?.state ?? (refused.includes(addressOf(id)) ? "declined" : "open"),
		)
		list.replaceChildren(
			...ids.map((id, i) =>
				h(
					"li",
					{ "data-state": states[i] },
					h("span", { dir: "auto" }, all[i]?.title ?? t("step", { number: i + 1, count: ids.length })),
					": ",
					h("span", { class: "state" }, t(`state-${states[i]}`)),
					" ",
					h(
						"button",
						{
							type: "button",
							class: "plain",
							"aria-label": `${t(states[i] === "open" || states[i] === "declined" ? "answer" : "show")}: ${all[i]?.title ?? i + 1}`,
							onclick: () => go(i),
						},
						t(states[i] === "open" || states[i] === "declined" ? "answer" : "show"),
					),
					/** @type {any} */ (all[i])?.results === "public" && h("a", { href: `/c/${id}/results` }, t("results")),
				),
			),
		)
		waiting.hidden = !states.includes("waiting")
		const given = /** @type {Collection[]} */ (
			all.filter((one, i) => one && (states[i] === "sent" || states[i] === "waiting"))
		)
		if (given.length && !total.childElementCount) {
			const { after } = together(given)
			total.replaceChildren(
				h(
					"div",
					{ class: "promise", id: "so-far" },
					h("h2", {}, t("so-far")),
					h(
						"p",
						{},
						...stressed(
							after < 0.9995
								? stressedMessage("so-far-after", { bound: atMost(after) })
								: stressedMessage("together-certain", { bound: odds(after) }),
						),
					),
				),
			)
		}
		if (!states.includes("waiting")) return
		await client.flush().catch(() => 0)
		await moment()
	}
}

/** Resolves after a few seconds, or when the browser is online again. */
const moment = () =>
	new Promise((resolve) => {
		setTimeout(resolve, 3000)
		addEventListener("online", resolve, { once: true })
	})

/**
 * Returns the reason of a rejection for participants, or "" without one.
 * @param {{ reason: string, message: string } | undefined} error
 * @param {string} [late] key of the message about a survey that is not open
 */
function refusalInWords(error, late = "closed") {
	if (!error) return ""
	if (error.reason === "token-spent") return t("token-spent")
	if (error.reason === "token-unknown" || error.reason === "unauthorized") return t("token-unknown")
	return error.reason === "not-open" ? t(late) : error.message
}

/**
 * Tries to send until the reply is accepted or rejected.
 * @param {Collection} collection
 * @param {(answer: Answer) => void} update
 * @param {HTMLElement} shown
 */
async function follow(collection, update, shown) {
	while (shown.isConnected) {
		await client.flush().catch(() => 0)
		const answer = await collection.answered()
		if (answer && answer.state !== "waiting") return update(answer)
		await moment()
	}
}

// -- choosing a value
// ----------------------------------------------------------------------------------------------------

/**
 * An input for a value; `check` says that the choice is shown again before it is sent. `describe` names a value that is
 * not one of the domain's.
 * @typedef {{ element: HTMLElement, value: () => any, check: boolean, describe?: (value: any) => string }} Chooser
 */

/**
 * Creates the input for a value of a collection's domain.
 * @param {Collection} collection
 * @param {(value: any) => void} chosen
 * @returns {Chooser}
 */
function choices(collection, chosen) {
	const { domain } = collection.policy
	if (isNumeric(domain)) return numberChoice(domain, collection.domain.place, presentationOf(collection), chosen)
	if (domain.grid) return mapChoice(collection, chosen)
	if (isMarks(domain)) return marksChoice(domain, chosen)
	const parts = factorsOf(domain).map(({ name, labels }, i) =>
		listChoice(name || t("your-answer"), labels, `answer-${i}`),
	)
	const value = () => {
		const all = parts.map((part) => part.value())
		return all.includes(undefined) ? undefined : domain.product ? all : all[0]
	}
	const element = h(
		"div",
		{ onchange: () => value() !== undefined && chosen(value()) },
		...parts.map((part) => part.element),
	)
	return { element, value, check: parts.some(({ long }) => long) }
}

/**
 * Creates check boxes for a multiple choice. No mark is an answer, too, so the choice is always confirmed.
 * @param {any} domain
 * @param {(value: any) => void} chosen
 * @returns {Chooser}
 */
function marksChoice(domain, chosen) {
	const boxes = factorsOf(domain).map(({ name }) => ({ name, box: h("input", { type: "checkbox" }) })),
		value = () => boxes.map(({ box }) => (box.checked ? "yes" : "no"))
	const list = h(
		"div",
		{ class: "choices" },
		...boxes.map(({ name, box }) => h("label", { class: "choice" }, box, h("span", { dir: "auto" }, name))),
	)
	return {
		element: h("fieldset", { onchange: () => chosen(value()) }, h("legend", {}, t("mark-all")), list),
		value,
		check: true,
	}
}

/**
 * Creates a list of radio buttons, with a search field if it is long.
 * @param {string} legend
 * @param {any[]} labels
 * @param {string} name
 */
function listChoice(legend, labels, name) {
	const options = labels.map((label, i) =>
		h(
			"label",
			{ class: "choice" },
			h("input", { type: "radio", name, value: i }),
			h("span", { dir: "auto" }, String(label)),
		),
	)
	const long = labels.length > MANY,
		list = h("div", { class: long ? "choices long" : "choices" }, ...options)
	const value = () => {
		const chosen = /** @type {HTMLInputElement | null} */ (list.querySelector("input:checked"))
		return chosen ? labels[Number(chosen.value)] : undefined
	}
	if (!long) return { element: h("fieldset", {}, h("legend", { dir: "auto" }, legend), list), value, long }
	const message = h("p", { class: "chosen quiet", "aria-live": "polite" }, t("not-chosen"))
	const search = h("input", {
		type: "search",
		"aria-label": t("search-in", { name: legend }),
		placeholder: t("search"),
		oninput: () => filter(),
		// The enter key must not submit the form from the search field.
		onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.preventDefault(),
	})
	// The chosen value stays visible, whatever the search is.
	const filter = () => {
		const query = search.value.trim().toLowerCase(),
			chosen = value()
		options.forEach(
			(option, i) => (option.hidden = labels[i] !== chosen && !String(labels[i]).toLowerCase().includes(query)),
		)
		if (chosen !== undefined) message.textContent = t("chosen-now", { name: chosen })
	}
	list.addEventListener("change", filter)
	return {
		element: h(
			"fieldset",
			{},
			h("legend", { dir: "auto" }, legend),
			h("div", { class: "field" }, search),
			list,
			message,
		),
		value,
		long,
	}
}

/** Number of columns above which cells of a map are small on a phone, so that the map can be enlarged. */
const NARROW = 8

/**
 * Creates a map to choose a cell from; the groups of a block policy have colours and numbers.
 * @param {Collection} collection
 * @param {(value: any) => void} chosen
 * @returns {Chooser}
 */
function mapChoice(collection, chosen) {
	const { domain, policy } = collection.policy,
		background = backgroundOf(collection),
		placeName = (/** @type {number} */ x) =>
			[nameOf(labels[x], domain), districtName(background, x)].filter(Boolean).join(", ")
	const grid = /** @type {NonNullable<ReturnType<typeof gridOf>>} */ (gridOf(domain)),
		labels = labelsOf(domain),
		blocks = policy.kind === "blocks"
	const message = h("p", { class: "quiet", "aria-hidden": "true" }, t("not-chosen-cell"))
	const nameFor = (/** @type {number} */ x) =>
		`${placeName(x)}${blocks ? `, ${t("group", { number: policy.blocks[x] + 1 })}` : ""}`
	const inputs = grid.order.map((x) =>
		h("input", {
			type: "radio",
			name: "answer",
			value: x,
			"aria-label": nameFor(x),
			onchange: () => {
				message.textContent = t("chosen-now", { name: placeName(x) })
				chosen(labels[x])
			},
		}),
	)
	const board = h(
		"div",
		{
			class: "cells map pick",
			dir: "ltr",
			onkeydown: (/** @type {KeyboardEvent} */ event) => {
				const step = { ArrowUp: -grid.columns, ArrowDown: grid.columns }[event.key]
				const next = step && inputs[inputs.indexOf(/** @type {any} */ (event.target)) + step]
				if (step) event.preventDefault()
				if (next) {
					next.focus()
					next.click()
				}
			},
		},
		...inputs.map((input, i) =>
			h(
				"label",
				{ class: blocks ? `cell part-${policy.blocks[grid.order[i]] % 8}` : "cell", title: nameFor(grid.order[i]) },
				input,
				blocks && h("span", { class: "mark", "aria-hidden": "true" }, policy.blocks[grid.order[i]] + 1),
			),
		),
		layer(background, grid.rows, grid.columns),
	)
	board.style.setProperty("--columns", String(grid.columns))
	const [[south, north], [west, east]] = grid.map
		? [domain.grid.latitude, domain.grid.longitude]
		: [
				[0, 1],
				[0, 1],
			]
	// Studio uses the range 0 to 1 for a map without coordinates.
	const bare = [south, north, west, east].join() === "0,1,0,1"
	const hint = `${grid.map ? t("north-up", { edges: bare ? "" : t("edges", { south, north, west, east }) }) : t("rows-top")}${blocks ? ` ${t("groups-shown")}` : ""}`
	const element = h(
		"fieldset",
		{},
		h("legend", {}, t(grid.map ? "your-place.map" : "your-place.grid"), h("span", { class: "hint" }, hint)),
		grid.columns > NARROW || background
			? zoomable(board, (zoom) => board.style.setProperty("--zoom", String(zoom)), t("your-place.map"))
			: board,
		message,
	)
	const value = () => {
		const input = inputs.find(({ checked }) => checked)
		return input && labels[Number(input.value)]
	}
	return { element, value, check: true, describe: (given) => placeName(collection.domain.place(given)) }
}

begin()
