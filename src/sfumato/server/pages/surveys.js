// My surveys: the collections that a token has a role on, with their state, links, dates, roles, days and log.
import { adminToken, ApiError, ask, keepAdminToken } from "./api.js"
import { at, copyable, csv, download, h, whole } from "./dom.js"
import { quoted } from "./messages.js"
import { dateOf, moment, t } from "./owners.js"
import { shareLink, sheetButton } from "./share.js"

/**
 * @typedef {{ id: string, title: string, label: string, description: string, state: string, submission: string,
 * results: string, reports: number, created: number,
 *   opens: number | null, closes: number | null, role: string, issued: number, used: number }} Survey
 */
/**
 * @typedef {{ element: HTMLElement, heading: HTMLElement, survey: Survey, page: number, show: (survey: Survey) => void
 * }} Entry
 */

/** Maximum one-time links per request. */
const MOST_LINKS = 10000
/** Minimum reports of a day that can be undone. */
const LEAST_UNDONE = 100
/** Lists that are longer have a search field. */
const SHORT = 8
const SUBMISSION = {
	open: t("anybody with the link may answer"),
	token: t("one answer for each one-time link"),
	key: t("answers need the key"),
}
const STATES = { scheduled: t("not open yet"), open: t("open"), closed: t("closed"), archived: t("archived") }
const ROLES = { admin: t("administrator"), author: t("author"), owner: t("owner"), reader: t("reader") }
const REJECTED = t("The collector does not accept this token. It may be mistyped, expired or revoked.")

const list = at("surveys"),
	status = at("status")
/** @type {Map<string, Entry>} */
const entries = new Map()
/** Position of the next page of the list, or null. @type {number | null} */
let next = null
// Links and tokens that are shown once are lost with the page.
addEventListener("beforeunload", (event) => document.querySelector("[data-once]") && event.preventDefault())

const nameOf = (/** @type {Survey} */ survey) => survey.label || survey.title
const now = () => Date.now() / 1000
/** Names a role for people. @param {string} role */
const roleName = (role) => ROLES[/** @type {keyof typeof ROLES} */ (role)] ?? role
/** Shortens a hash to its begin. @param {string} value */
const brief = (value) => (/^[0-9a-f]{64}$/.test(value) ? `${value.slice(0, 8)}…` : value)
/** Formats Unix seconds for an input of date and time. @param {number | null} seconds */
const local = (seconds) =>
	seconds === null
		? ""
		: new Date(seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60000).toISOString().slice(0, 16)
/** Returns the Unix seconds of an input of date and time; null if it is empty. @param {string} value */
const seconds = (value) => (value ? Math.floor(new Date(value).getTime() / 1000) : null)

/** Returns the state in words, with the date that decides it. @param {Survey} survey */
function stateOf({ state, closes }) {
	if (state === "closed" && closes !== null && closes <= now()) return t("closed, the end date is over")
	return STATES[/** @type {keyof typeof STATES} */ (state)] ?? state
}

/** Returns the message of an error; asks for the token again if it was rejected. @param {unknown} error */
function messageOf(error) {
	if (error instanceof ApiError && error.reason === "unauthorized" && !entries.size) showToken(REJECTED)
	return error instanceof Error ? error.message : String(error)
}

/**
 * Creates an input with its label.
 * @param {string} id
 * @param {string} label
 * @param {Node} input
 * @param {string} [hint]
 */
const field = (id, label, input, hint) =>
	h("div", { class: "field" }, h("label", { for: id }, label, hint && h("span", { class: "hint" }, hint)), input)

/**
 * Asks before a change that cannot be undone.
 * @param {string} title
 * @param {string} text
 * @param {string} button
 * @returns {Promise<boolean>}
 */
function confirmed(title, text, button) {
	return new Promise((resolve) => {
		const dialog = h(
			"dialog",
			{
				"aria-labelledby": "confirm-title",
				"aria-describedby": "confirm-text",
				onclose: () => {
					dialog.remove()
					resolve(dialog.returnValue === "yes")
				},
			},
			h(
				"form",
				{ method: "dialog" },
				h("h2", { id: "confirm-title" }, title),
				h("p", { id: "confirm-text" }, text),
				h(
					"div",
					{ class: "actions" },
					h("button", { value: "no", autofocus: true }, t("Cancel")),
					h("button", { value: "yes", class: "danger" }, button),
				),
			),
		)
		document.body.append(dialog)
		dialog.showModal()
	})
}

// -- one survey
// --------------------------------------------------------------------------------------------------------

/**
 * Creates the card of a survey.
 * @param {Survey} first
 * @param {number} page position of its page of the list
 * @returns {Entry}
 */
function entryOf(first, page) {
	const { id } = first,
		path = `/v1/collections/${id}`,
		manages = first.role !== "reader"
	const heading = h("h2", { id: `name-${id}`, tabindex: -1, dir: "auto" }),
		facts = h("div", {}),
		buttons = h("div", { class: "actions" })
	const fault = h("p", { class: "alarm", role: "alert", hidden: true }),
		shown = h("div", { class: "shown" }),
		body = h("div", {})
	const tools = h(
		"details",
		{ ontoggle: () => tools.open && !body.firstChild && fill() },
		h("summary", {}, t("Manage"), h("span", { class: "unseen" }, ` ${quoted(nameOf(first))}`)),
		body,
	)
	const element = h(
		"section",
		{ class: "card", "aria-labelledby": `name-${id}`, "data-survey": id },
		heading,
		facts,
		buttons,
		fault,
		shown,
		manages && tools,
	)
	/** @type {Entry} */
	const entry = { element, heading, survey: first, page, show }

	/** Runs work, and shows its error. @param {() => Promise<void>} work */
	async function attempt(work) {
		fault.hidden = true
		try {
			await work()
		} catch (error) {
			fault.textContent = messageOf(error)
			fault.hidden = false
		}
	}

	/**
	 * Runs a change, then reads the list and the log again. Work returns false if nothing was changed.
	 * @param {string} done
	 * @param {() => Promise<void | boolean>} work
	 */
	const act = (done, work) =>
		attempt(async () => {
			if ((await work()) === false) return
			status.textContent = done
			await refresh(page)
			if (entries.has(id) && log.closest("details")?.open) await showLog()
		})
	const change = (/** @type {any} */ fields) => ask(path, fields, "PATCH")

	/** Shows the state of the survey. @param {Survey} survey */
	function show(survey) {
		entry.survey = survey
		const { title, label, state, submission, results, reports, created, opens, closes, issued, used } = survey
		heading.textContent = nameOf(survey)
		const ended = closes !== null && closes <= now()
		/** Names for programs, names for people, and facts. */
		const rows = [
			["state", t("state"), stateOf(survey)],
			["answers", t("answers"), whole(reports)],
			["created", t("created"), dateOf(created)],
			opens !== null && ["opens", t("opens"), moment(opens)],
			closes !== null && ["closes", t("closes"), moment(closes)],
			["who answers", t("who answers"), SUBMISSION[/** @type {keyof typeof SUBMISSION} */ (submission)]],
			submission === "token" && [
				"one-time links",
				t("one-time links"),
				t("{used} of {all} used", { used: whole(used), all: issued }),
			],
			["who reads", t("who reads"), results === "public" ? t("anybody") : t("owners and readers")],
		]
		facts.replaceChildren(
			...(label ? [h("p", { class: "quiet", dir: "auto" }, title)] : []),
			h(
				"dl",
				{ class: "facts" },
				...rows
					.filter(Array.isArray)
					.map(([fact, name, value]) => h("div", {}, h("dt", {}, name), h("dd", { "data-fact": fact }, value))),
			),
			h(
				"p",
				{ class: "links" },
				h("a", { href: `/c/${id}` }, t("survey page")),
				h("a", { href: `/c/${id}/results` }, t("results")),
				h("a", { href: `${path}/certificate`, download: `certificate-${id}.json` }, t("certificate")),
			),
		)
		const toggle =
			state === "open"
				? h(
						"button",
						{
							type: "button",
							"data-do": "state",
							onclick: () => act(t("“{name}” is closed.", { name: nameOf(survey) }), () => change({ state: "closed" })),
						},
						t("Close"),
					)
				: state === "closed" &&
					h(
						"button",
						{
							type: "button",
							"data-do": "state",
							onclick: () =>
								act(t("“{name}” is open.", { name: nameOf(survey) }), () =>
									change({ state: "open", ...(ended && { closes: null }) }),
								),
						},
						ended ? t("Reopen without an end date") : t("Reopen"),
					)
		const had = buttons.contains(document.activeElement)
		buttons.replaceChildren(...(manages && toggle ? [toggle] : []))
		buttons.hidden = !buttons.firstChild
		if (had) (buttons.querySelector("button") ?? heading).focus()
	}

	/** Shows secrets that are shown once, with a button that removes them. @param {import("./dom.js").Child[]} content */
	function once(...content) {
		const title = h("h3", { tabindex: -1 }, t("Shown once")),
			box = h(
				"div",
				{ class: "promise", "data-once": true },
				title,
				...content,
				h(
					"button",
					{
						type: "button",
						onclick: () => {
							box.remove()
							heading.focus()
						},
					},
					t("I have saved it"),
				),
			)
		shown.append(box)
		title.focus()
	}

	const renaming = () => {
		const input = h("input", { type: "text", id: `label-${id}`, maxlength: 200, value: entry.survey.label })
		return h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					act(t("The name is saved."), () => change({ label: input.value.trim() }))
				},
			},
			field(
				input.id,
				t("Name"),
				input,
				t("Only owners see it. Participants see the title, which is fixed once the survey has opened."),
			),
			h("button", {}, t("Save the name")),
		)
	}

	const dating = () => {
		const { opens, closes } = entry.survey,
			waits = opens !== null && opens > now()
		const start = h("input", { type: "datetime-local", id: `opens-${id}`, value: local(opens) }),
			end = h("input", { type: "datetime-local", id: `closes-${id}`, value: local(closes) })
		return h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					act(t("The dates are saved."), () =>
						change({ closes: seconds(end.value), ...(waits && { opens: seconds(start.value) }) }),
					)
				},
			},
			h(
				"div",
				{ class: "row" },
				waits && field(start.id, t("Opens"), start, t("In the time of this device.")),
				field(end.id, t("Closes"), end, t("In the time of this device. Empty: no end date.")),
			),
			!waits && h("p", { class: "hint" }, t("The start is fixed, because the survey has opened.")),
			h("button", {}, t("Save the dates")),
		)
	}

	/** Creates the form for more one-time links. @param {string} hash */
	const linking = (hash) => {
		const count = h("input", {
			type: "number",
			id: `count-${id}`,
			min: 1,
			max: MOST_LINKS,
			step: 1,
			value: 10,
			required: true,
		})
		return h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					act(t("The links are ready."), async () => {
						const { tokens } = await ask(`${path}/tokens`, { count: Number(count.value) })
						const links = tokens.map((/** @type {string} */ token) => `${location.origin}/c/${id}#${token};${hash}`)
						once(
							h(
								"p",
								{},
								t(
									"{count} one-time links are ready, one for each person. Download now: the links are not shown again.",
									{ count: links.length },
								),
							),
							h(
								"p",
								{ class: "actions" },
								h(
									"button",
									{
										type: "button",
										class: "main",
										onclick: () =>
											download(
												"one-time-links.csv",
												csv([
													["number", "link"],
													...links.map((/** @type {string} */ link, /** @type {number} */ i) => [i + 1, link]),
												]),
											),
									},
									t("Download the links (CSV)"),
								),
								sheetButton(links, entry.survey.title),
							),
						)
					})
				},
			},
			field(
				count.id,
				t("More one-time links"),
				count,
				t(
					"At most {most} at a time. They ask this question only; a survey of several questions needs links from Studio.",
					{ most: whole(MOST_LINKS) },
				),
			),
			h("button", {}, t("Create links")),
		)
	}

	const copying = () => {
		const title = h("input", {
			type: "text",
			id: `copy-${id}`,
			maxlength: 200,
			required: true,
			value: entry.survey.title,
		})
		return h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					act(t("The copy is open."), async () => {
						const { collection, key } = await ask(`${path}/copies`, { title: title.value.trim() })
						await load(true)
						const copy = entries.get(collection.id)
						copy?.heading.focus()
						copy?.element.scrollIntoView({ block: "center" })
						if (key) once(h("p", {}, t("The key of the copy:")), copyable(key, t("Key of the copy")))
					})
				},
			},
			field(
				title.id,
				t("Title of the copy"),
				title,
				t(
					"The copy has the same answers, rule and settings, and no dates. It opens at once, and participants see this title.",
				),
			),
			h("button", {}, t("Duplicate")),
		)
	}

	const roles = h("div", {})
	async function showRoles() {
		const rows = (await ask(`${path}/roles`)).roles
		roles.replaceChildren(
			rows.length
				? table(
						[t("role"), t("name"), t("created"), t("expires"), t("revoke")],
						rows.map((/** @type {any} */ row) => [
							roleName(row.role),
							row.name || "–",
							dateOf(row.created),
							row.expires === null ? t("never") : dateOf(row.expires),
							h(
								"button",
								{
									type: "button",
									class: "plain",
									"aria-label": t("Revoke the role of {name}", { name: row.name || row.fingerprint }),
									onclick: () =>
										act(t("The role is revoked."), async () => {
											if (
												!(await confirmed(
													t("Revoke this role?"),
													t("“{name}” loses access at once.", { name: row.name || row.fingerprint }),
													t("Revoke"),
												))
											)
												return false
											await ask(`${path}/roles/revoke`, { fingerprint: row.fingerprint })
											await showRoles()
											heading.focus()
										}),
								},
								t("Revoke"),
							),
						]),
					)
				: h("p", { class: "quiet" }, t("Only administrators have access to this survey.")),
		)
	}

	const granting = () => {
		const role = h(
			"select",
			{ id: `role-${id}` },
			h("option", { value: "reader" }, t("Reader: sees the results")),
			h("option", { value: "owner" }, t("Owner: may change everything")),
		)
		const name = h("input", { type: "text", id: `grantee-${id}`, maxlength: 100 }),
			days = h("input", { type: "number", id: `days-${id}`, min: 1, max: 36500, step: 1 })
		return h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					act(t("The role is created."), async () => {
						const { token } = await ask(`${path}/roles`, {
							role: role.value,
							name: name.value.trim(),
							days: days.value ? Number(days.value) : null,
						})
						once(
							...(role.value === "reader"
								? [
										h("p", {}, t("Link for the reader. Everyone who has it can read the results:")),
										copyable(`${location.origin}/c/${id}/results#token=${token}`, t("Link for the reader")),
									]
								: [h("p", {}, t("Token of the owner, for this page:")), copyable(token, t("Token of the owner"))]),
						)
						await showRoles()
					})
				},
			},
			h(
				"div",
				{ class: "row" },
				field(role.id, t("Role"), role),
				field(name.id, t("Name"), name, t("A note for the list.")),
				field(days.id, t("Days until it expires"), days, t("Empty: never.")),
			),
			h("button", {}, t("Create the role")),
		)
	}

	const days = h("div", {})
	async function showDays() {
		try {
			const answer = await ask(`${path}/days`)
			days.replaceChildren(
				answer.alarm
					? h(
							"p",
							{ class: "alarm" },
							t("Honest devices are very unlikely to have sent these answers. Some may be forged."),
						)
					: "",
				answer.days.length
					? table(
							[t("day (UTC)"), t("answers"), t("remark"), t("remove")],
							answer.days.map((/** @type {any} */ row) => [
								row.day,
								whole(row.reports),
								row.alarm ? t("likely forged") : "–",
								row.reports < LEAST_UNDONE
									? t("fewer than {least} answers", { least: whole(LEAST_UNDONE) })
									: h(
											"button",
											{
												type: "button",
												class: "plain",
												"aria-label": t("Remove the answers of {day}", { day: row.day }),
												onclick: () =>
													act(t("The answers of the day are removed."), async () => {
														if (
															!(await confirmed(
																t("Remove the answers of {day}?", { day: row.day }),
																t("{count} answers will be deleted. This cannot be undone.", { count: row.reports }),
																t("Remove"),
															))
														)
															return false
														await ask(`${path}/undo`, { day: row.day })
														await showDays()
														heading.focus()
													}),
											},
											t("Remove"),
										),
							]),
						)
					: h("p", { class: "quiet" }, t("The collector stores no answers by day for this survey.")),
			)
		} catch (error) {
			days.replaceChildren(h("p", { class: "quiet" }, messageOf(error)))
		}
	}

	const log = h("div", {})
	async function showLog() {
		const rows = (await ask(`${path}/log`)).entries
		log.replaceChildren(
			rows.length
				? table(
						[t("when"), t("token"), t("action"), t("details")],
						rows.map((/** @type {any} */ row) => [
							moment(row.when),
							h("code", {}, row.who),
							row.action,
							Object.entries(row.what)
								.map(
									([name, value]) =>
										`${name}: ${value === null ? t("none") : ["opens", "closes"].includes(name) ? moment(Number(value)) : brief(String(value))}`,
								)
								.join(", ") || "–",
						]),
					)
				: h("p", { class: "quiet" }, t("Nothing was changed yet.")),
		)
	}

	/**
	 * Creates a section that is read when it is opened.
	 * @param {string} title
	 * @param {() => Promise<void>} read
	 * @param {Node[]} content
	 */
	const lazy = (title, read, ...content) => {
		const part = h("details", { ontoggle: () => part.open && attempt(read) }, h("summary", {}, title), ...content)
		return part
	}

	const remove = async () => {
		const { reports, state } = entry.survey
		if (
			!(await confirmed(
				t("Delete “{name}”?", { name: nameOf(entry.survey) }),
				`${t("The survey and its {count} answers will be deleted.", { count: reports })} ${state === "open" ? `${t("People can no longer answer.")} ` : ""}${t("Links stop working. This cannot be undone. Backups of the collector still contain it.")}`,
				t("Delete"),
			))
		)
			return false
		// The collector deletes no open survey. One outside its dates is shown as closed, but may be open again later.
		if (state !== "archived") await change({ state: "closed" })
		await ask(path, undefined, "DELETE")
		entries.delete(id)
		const neighbour = /** @type {HTMLElement | null} */ (
			(element.nextElementSibling ?? element.previousElementSibling)?.querySelector("h2")
		)
		element.remove()
		if (entries.size) neighbour?.focus()
		else showEmpty()
	}

	/** Creates the tools of the survey. */
	async function fill() {
		body.replaceChildren(h("p", { class: "quiet" }, t("Loading …")))
		try {
			const { mechanism_hash: hash } = await ask(path),
				digest = hash.slice(0, 32)
			body.replaceChildren(
				...[
					entry.survey.submission === "open" &&
						h(
							"div",
							{ class: "field" },
							h("span", { class: "label" }, t("Link to the survey")),
							shareLink(`${location.origin}/c/${id}#;${digest}`, entry.survey.title),
						),
					entry.survey.submission === "token" && linking(digest),
					renaming(),
					dating(),
					copying(),
					lazy(t("Owners and readers"), showRoles, roles, granting()),
					lazy(t("Answers per day"), showDays, days),
					lazy(t("Log"), showLog, log),
					h(
						"p",
						{},
						h(
							"button",
							{ type: "button", class: "danger", onclick: () => act(t("The survey is deleted."), remove) },
							t("Delete the survey"),
						),
					),
				].filter((one) => one instanceof Node),
			)
		} catch (error) {
			body.replaceChildren(h("p", { class: "alarm", role: "alert" }, messageOf(error)))
		}
	}

	show(first)
	return entry
}

/** Creates a table. @param {string[]} names @param {(Node | string)[][]} rows */
const table = (names, rows) =>
	h(
		"div",
		{ class: "wide", tabindex: 0, role: "group", "aria-label": names.join(", ") },
		h(
			"table",
			{ class: "records" },
			h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)))),
			h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))),
		),
	)

// -- the list
// ------------------------------------------------------------------------------------------------------------

/** Reads one page of the list again, and shows the surveys that are already on this page. @param {number} page */
async function refresh(page) {
	for (const survey of (await ask(`/v1/mine?after=${page}`)).collections) entries.get(survey.id)?.show(survey)
}

function showEmpty() {
	const start = h(
		"p",
		{ tabindex: -1 },
		t("You have no surveys yet."),
		" ",
		h("a", { href: "/studio" }, t("Make one in Studio")),
		".",
	)
	list.replaceChildren(h("section", { class: "card", id: "empty" }, start))
	start.focus()
}

const cards = h("div", { id: "cards" }),
	more = h(
		"p",
		{ class: "actions", hidden: true },
		h("button", { type: "button", onclick: () => load(false) }, t("Show more")),
	)
const search = h("input", {
	type: "search",
	id: "search",
	oninput: () => {
		const wanted = search.value.trim().toLowerCase()
		let n = 0
		for (const { element, survey } of entries.values()) {
			element.hidden = !`${survey.label} ${survey.title} ${stateOf(survey)}`.toLowerCase().includes(wanted)
			if (!element.hidden) n++
		}
		status.textContent = wanted ? t("{count} surveys found.", { count: n }) : ""
	},
})
const searching = field("search", t("Search by name or state"), search)

/** Reads pages of the list: all from the first, or one more. New surveys are put first. @param {boolean} again */
async function load(again) {
	let page = again ? 0 : (next ?? 0)
	const token = adminToken()
	do {
		const answer = await ask(`/v1/mine?after=${page}`)
		if (token !== adminToken()) return // it was forgotten or replaced meanwhile
		for (const survey of answer.collections) {
			const known = entries.get(survey.id)
			if (known) known.show(survey)
			else {
				const entry = entryOf(survey, page)
				entries.set(survey.id, entry)
				cards.prepend(entry.element)
			}
		}
		next = answer.next
		page = next ?? 0
	} while (next !== null && entries.size < 1000)
	more.hidden = next === null
	searching.hidden = entries.size <= SHORT
	if (entries.size && !cards.isConnected) list.replaceChildren(searching, cards, more)
	else if (!entries.size) showEmpty()
}

/** Reads the list with the stored token. */
async function begin() {
	entries.clear()
	cards.replaceChildren()
	list.replaceChildren()
	status.textContent = t("Loading …")
	const token = adminToken()
	try {
		await load(true)
		status.textContent = entries.size
			? t("{count} surveys, the newest first. Each question of a survey is listed.", { count: entries.size })
			: ""
		showToken()
	} catch (error) {
		if (token !== adminToken()) return
		status.textContent = ""
		if (error instanceof ApiError && error.reason === "unauthorized") return showToken(REJECTED)
		showToken()
		const retry = h("button", { type: "button", onclick: begin }, t("Try again"))
		list.replaceChildren(h("p", { class: "alarm", role: "alert" }, messageOf(error)), retry)
		retry.focus()
	}
}

/** Shows the form for the token, or that a token is stored. @param {string} [problem] */
function showToken(problem = "") {
	if (adminToken() && !problem) {
		return at("token").replaceChildren(
			h(
				"p",
				{ class: "small quiet" },
				t("This tab stores the token until you close it."),
				" ",
				h(
					"button",
					{
						type: "button",
						class: "plain",
						onclick: () => {
							keepAdminToken("")
							entries.clear()
							list.replaceChildren()
							status.textContent = ""
							showToken()
							at("admin-token").focus()
						},
					},
					t("Forget it"),
				),
			),
		)
	}
	keepAdminToken("")
	const input = h("input", { type: "password", id: "admin-token", autocomplete: "off", required: true })
	at("token").replaceChildren(
		h(
			"form",
			{
				class: "card",
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					keepAdminToken(input.value.trim())
					begin()
				},
			},
			problem && h("p", { class: "alarm", role: "alert" }, problem),
			h(
				"div",
				{ class: "field" },
				h(
					"label",
					{ for: "admin-token" },
					t("Token"),
					h(
						"span",
						{ class: "hint" },
						t(
							"An admin token (sfa_), or the token of an author (sfu_), owner (sfo_) or reader (sfr_). Only this tab stores it.",
						),
					),
				),
				input,
			),
			h("button", { class: "main" }, t("Show my surveys")),
		),
	)
	if (problem) input.focus()
}

if (adminToken()) begin()
else showToken()
