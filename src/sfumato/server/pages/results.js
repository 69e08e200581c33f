// The results page: live estimates with intervals, as charts and tables, with comparison, downloads and certificates. A
// survey of
// several questions has one panel per question on the page.
import { answersCard } from "./answers.js"
import { adminToken, ask, askFile, keepAdminToken, takeReaderToken } from "./api.js"
import { chart, estimateChart, heatMap, MOST_BARS, noChart, png, rare, svgFile, unsure } from "./charts.js"
import { gridOf, isMarks, labelsOf, nameOf } from "./domains.js"
import { daysCard } from "./days.js"
import { backgroundOf, zoomable } from "./districts.js"
import { districtsCard } from "./district-totals.js"
import { differencesCard } from "./differences.js"
import { embedCard } from "./embed-code.js"
import { at, copyable, csv, download, h, percent, whole } from "./dom.js"
import {
	aboutEstimates,
	choose,
	chosen,
	filterField,
	LEVELS,
	METHODS,
	onChoice,
	optionField,
	SORTS,
	today,
} from "./result-options.js"
import { answers, placesOf, resultTable } from "./result-table.js"
import { clippedTo } from "./number-choice.js"
import { dateOf, t } from "./owners.js"
import { trendCard } from "./trend.js"
import { watch } from "./watching.js"
import { certificateInWords } from "./words.js"
/** @typedef {import("./charts.js").Row} Row */
/** @typedef {import("./answers.js").AnswerRow} AnswerRow */
/**
 * @typedef {{ collection: any, reports: number, rows: Row[], complete: boolean, answers: AnswerRow[], rounding: number,
 * warnings: string[], quantile: number, stop: () => void }} Group
 */

/** Minimum answers for a prediction of how many are needed. */
const ENOUGH_TO_GUESS = 30
/** Maximum questions whose list of jumps is always open. */
const MOST_JUMPS = 8
/** Milliseconds between two checks of whether an open survey has closed. */
const STATE_PAUSE = 30000
const PARQUET = "application/vnd.apache.parquet"

takeReaderToken()
const parameters = new URLSearchParams(location.search)
const listOf = (/** @type {string} */ name) => (parameters.get(name) ?? "").split(",").filter(Boolean)
const first = location.pathname.split("/")[2],
	questions = listOf("then"),
	compared = listOf("with")
const page = at("results")
/** Shares are shown within 0 to 1; an unbiased estimate from few answers may lie outside. @param {number} share */
const within = (share) => Math.min(1, Math.max(0, share))
/** Whether an error was about the admin token, and what to say about it. */
let problem = ""

/**
 * Returns the words that a participant reads about a question and its values, without differences in spaces and
 * capitals.
 * @param {any} collection
 */
const wordingOf = ({ title, description, presentation }) =>
	JSON.stringify(
		[title, description, presentation?.low_label, presentation?.high_label].map((words) =>
			(words ?? "").normalize("NFKC").replace(/\s+/g, " ").trim().toLowerCase(),
		),
	)
/**
 * Whether two collections have the same values: equal labels may be the cells of another map, or the marks of other
 * options.
 * @param {any} first
 * @param {any} second
 */
const sameValues = (first, second) => JSON.stringify(first.policy.domain) === JSON.stringify(second.policy.domain)

/** Creates the form for the admin token. */
function tokenForm() {
	const field = h("input", { type: "password", id: "admin", autocomplete: "off", required: true })
	return h(
		"form",
		{
			class: "card",
			id: "token-form",
			onsubmit: (/** @type {Event} */ event) => {
				event.preventDefault()
				keepAdminToken(field.value.trim())
				location.reload()
			},
		},
		problem && h("p", { class: "alarm", role: "alert" }, problem),
		h(
			"div",
			{ class: "field" },
			h(
				"label",
				{ for: "admin" },
				t("Token"),
				h(
					"span",
					{ class: "hint" },
					t("Only owners and readers with a token may read these results. Only this tab stores the token."),
				),
			),
			field,
		),
		h("button", { class: "main" }, t("Show the results")),
	)
}

/** Asks for the admin token, once. */
function askForToken() {
	if (adminToken()) problem = t("The collector does not accept this token for these results. Check it and try again.")
	keepAdminToken("")
	if (!at("token-form")) page.querySelector(".panel")?.before(tokenForm())
	else if (problem && !at("token-form").querySelector(".alarm"))
		at("token-form").prepend(h("p", { class: "alarm", role: "alert" }, problem))
}

/** Shows one panel per question, with jumps to all of them. */
async function begin() {
	const panels = [first, ...questions].map((id, i) => panel(i ? [id] : [id, ...compared], i ? `-${i + 1}` : ""))
	page.replaceChildren(...panels.map(({ element }) => element))
	for (const { start } of panels) await start()
	if (questions.length) {
		document.title = t("Results of a survey")
		const links = h(
			"ol",
			{ class: "jumps" },
			...panels.map(({ element, title }) => h("li", {}, h("a", { href: `#${element.id}` }, title()))),
		)
		page.prepend(
			h(
				"nav",
				{ id: "questions", tabindex: "-1", "aria-label": t("Questions") },
				panels.length > MOST_JUMPS
					? h("details", {}, h("summary", {}, t("All {number} questions", { number: panels.length })), links)
					: links,
			),
		)
		for (const { element } of panels)
			element.append(h("p", {}, h("a", { href: "#questions" }, t("Back to the list of questions"))))
		const wanted = panels.find(({ element }) => `#${element.id}` === location.hash)
		wanted?.element.scrollIntoView()
	}
	const snippets = panels.map(({ embeddable }) => embeddable()).filter((one) => one !== null)
	if (snippets.length) page.append(embedCard(snippets))
	page.append(
		h(
			"section",
			{ class: "card", id: "permalink" },
			h("h2", {}, t("Link to this page")),
			h(
				"p",
				{ class: "quiet" },
				t(
					"The link contains the questions, the comparison, the method, the level, the view, the order and the filter. It does not contain the admin token.",
				),
			),
			copyable(location.href, t("Link to these results")),
		),
	)
	onChoice(() => Object.assign(page.querySelector("#permalink input") ?? {}, { value: location.href }))
}

/**
 * Creates the results of one question, and of the groups that it is compared with. `tag` makes the ids of its elements
 * unique.
 * @param {string[]} ids
 * @param {string} tag
 */
function panel(ids, tag) {
	const page = h("div", { class: "panel", id: `question${tag || "-1"}` }, h("p", { class: "quiet" }, t("Loading …")))
	/** @type {Group[]} */
	let groups = []
	/** @type {any} */
	let domain
	/** @type {any[]} */
	let labels = []
	/** @type {string[]} */
	let names = []
	/** @type {"bars" | "map"} */
	let view = "bars"
	/** Method and level of the estimates that are shown; others may have been chosen since. */
	let basis = { ...chosen }
	/** The trend of a collection with waves. @type {ReturnType<typeof trendCard> | null} */
	let trend = null
	/** The shares of the districts of a map. @type {ReturnType<typeof districtsCard>} */
	let districts = null
	/** The zoom of maps. */
	let zoom = 1
	/** The differences between groups. @type {ReturnType<typeof differencesCard> | null} */
	let differences = null

	// -- the page
	// ----------------------------------------------------------------------------------------------------------

	const count = h("span", { class: "big", id: `reports${tag}` }, "–")
	const countName = h("span", { class: "quiet", id: `answers${tag}` }, t("answers"))
	const certificate = h("section", { class: "card", id: `certificate${tag}` })
	const connection = h("span", { class: "live quiet", role: "status" }, t("connecting"))
	const verdict = h("div", { id: `verdict${tag}`, role: "status" })
	const warned = h("div", { id: `warned${tag}`, role: "status" })
	const picture = h("div", { class: "chart", id: `chart${tag}` })
	const caption = h("p", { class: "small quiet" })
	const key = h("p", { class: "small" })
	const meaning = h("p", {})
	const table = h("div", {
		class: "wide",
		id: `table${tag}`,
		tabindex: "0",
		role: "region",
		"aria-label": tag ? t("Table of estimates, question {number}", { number: tag.slice(1) }) : t("Table of estimates"),
	})
	const answered = answersCard(tag)
	const views = h("div", { class: "tabs", hidden: true })

	async function start() {
		try {
			const collections = await Promise.all(ids.map((id) => ask(`/v1/collections/${id}`)))
			domain = collections[0].policy.domain
			groups = collections.map((collection) => ({
				collection,
				reports: collection.reports,
				rows: [],
				complete: true,
				answers: [],
				rounding: 0,
				warnings: [],
				quantile: 0,
				stop: () => {},
			}))
		} catch (error) {
			return page.replaceChildren(
				h("h1", {}, t("These results cannot be shown")),
				h("p", { class: "alarm" }, error instanceof Error ? error.message : String(error)),
			)
		}
		labels = labelsOf(domain)
		names = labels.map((value) => nameOf(value, domain))
		const other = groups.find(({ collection }) => !sameValues(collection, groups[0].collection))
		if (other) {
			return page.replaceChildren(
				h("h1", {}, t("These cannot be compared")),
				h(
					"p",
					{ class: "alarm" },
					t("“{first}” and “{second}” have different values. Compare collections with the same values.", {
						first: groups[0].collection.title,
						second: other.collection.title,
					}),
				),
			)
		}
		const { title, description } = groups[0].collection
		if (!questions.length) document.title = t("{title}: results", { title })
		const hidden = groups.some(({ collection }) => collection.results === "admin")
		// The answers to a question come first: its reports say little about single values.
		const asks = groups.some(({ collection }) => collection.question)
		const counter = h("div", { class: "count" }, count, countName, connection)
		if (asks) answered.section.prepend(counter)
		const repeats = groups.some(({ collection }) => collection.waves)
		trend = groups.length === 1 && repeats ? trendCard(groups[0].collection, tag) : null
		differences =
			groups.length > 1 && !repeats
				? differencesCard(
						groups.map(({ collection }) => collection),
						tag,
					)
				: null
		districts = groups.length === 1 && !repeats ? districtsCard(groups[0].collection, tag) : null
		const days = daysCard(
			groups.map(({ collection }) => collection),
			tag,
		)
		page.replaceChildren(
			h("p", { class: "step" }, t("Results")),
			h(
				"h1",
				{ dir: "auto" },
				groups.length > 2
					? t("{title}, and {number} other groups", { title, number: groups.length - 1 })
					: groups
							.map(({ collection }) => collection.title)
							.filter((one, i, all) => all.indexOf(one) === i)
							.join(t(" and ")),
			),
			...(description ? [h("p", { class: "lead", dir: "auto" }, description)] : []),
			warned,
			...(asks ? [answered.section] : []),
			...(trend ? [trend.section] : []),
			h(
				"section",
				{ class: "card", "aria-label": questions.length ? t("Estimates: {title}", { title }) : t("Estimates") },
				asks ? h("h2", {}, t("Shares of single values")) : counter,
				repeats &&
					h("p", { class: "quiet", id: `last-wave${tag}` }, t("These are the answers of the last wave that has any.")),
				verdict,
				views,
				key,
				gridOf(domain)?.map
					? zoomable(
							picture,
							(wanted) => {
								zoom = wanted
								draw()
							},
							t("Map of estimated shares"),
						)
					: picture,
				caption,
				explanation(),
				options(),
			),
			h(
				"section",
				{ class: "card" },
				h("h2", {}, t("Table")),
				h("div", { class: "row" }, optionField("sort", SORTS, t("Order"), tag), filterField(tag)),
				table,
				downloads(),
			),
			...(districts ? [districts.section] : []),
			...(differences ? [differences.section] : []),
			days.section,
			...(tag || questions.length ? [] : [comparison()]),
			certificate,
		)
		certificate.append(h("h2", {}, groups.length > 1 ? t("Certificates") : t("Certificate")))
		if (hidden && !adminToken()) askForToken()
		showViews()
		listen()
		certificates()
		days.show()
		onChoice((name) => {
			if (name === "view") showViews()
			if (name === "method" || name === "level") listen()
			else draw()
		})
		setInterval(checkState, STATE_PAUSE)
		addEventListener("focus", checkState)
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
	}

	/** Returns by how many answers at least the results advance; 0 if each answer is shown at once. */
	const stepOf = () => Math.max(...groups.map(({ collection }) => collection.step ?? 0))

	/** States how an open survey advances: readers without a token see steps, so that they cannot time an answer. */
	function inSteps() {
		const count = stepOf()
		return count ? t("live, in steps of at least {count} answers", { count }) : t("live")
	}

	let isConnected = false
	/** Says whether the results are live, and why not. @param {string} [reason] */
	function showConnection(reason) {
		const open = groups.some(({ collection }) => collection.state === "open"),
			waits = groups.some(({ collection }) => collection.state === "scheduled")
		connection.textContent = !isConnected
			? reason === "unauthorized"
				? t("a token is needed")
				: t("not connected; reconnecting")
			: open
				? inSteps()
				: waits
					? t("not open yet")
					: t("closed: no more answers are accepted")
		connection.classList.toggle("on", isConnected && open)
	}

	/** Asks whether an open survey has closed. */
	async function checkState() {
		if (document.hidden || !isConnected) return
		for (const { collection } of groups.filter(({ collection: { state } }) => state === "open"))
			Object.assign(collection, {
				state: (await ask(`/v1/collections/${collection.id}`).catch(() => collection)).state,
			})
		showConnection()
	}

	/** Stores the latest estimates of a group. @param {Group} group @param {any} event */
	function take(group, event) {
		group.reports = event.reports
		group.rows = event.rows ?? group.rows
		group.complete = event.complete ?? group.complete
		group.answers = event.answers ?? group.answers
		group.rounding = event.rounding ?? group.rounding
		group.warnings = event.warnings ?? group.warnings
		group.quantile = event.quantile ?? group.quantile
	}

	/** Follows the live estimates of all groups. */
	function listen() {
		const requested = { ...chosen },
			/** @type {Map<Group, any>} */
			events = new Map()
		for (const group of groups) {
			group.stop()
			const { collection } = group
			group.stop = watch(
				1 + questions.length + compared.length,
				collection.id,
				labels.length,
				requested,
				(event) => {
					events.set(group, event)
					// The estimates of all groups are shown with the same options.
					const isOther = basis.method !== requested.method || basis.level !== requested.level
					if (isOther && events.size < groups.length) return
					basis = requested
					for (const one of events) take(...one)
					events.clear()
					draw()
					trend?.show(basis.method, basis.level)
				},
				(connected, error) => {
					isConnected = connected
					showConnection(error?.reason)
					if (error && !connected && error.reason === "invalid")
						verdict.replaceChildren(h("p", { class: "alarm" }, error.message))
					if (error?.reason === "unauthorized") {
						verdict.replaceChildren()
						askForToken()
					}
				},
			)
		}
	}

	/** Shows the choice between map and bars. */
	function showViews() {
		const grid = gridOf(domain)
		views.hidden = !grid
		if (!grid) return
		view = chosen.view === "bars" ? "bars" : "map"
		if (!views.children.length)
			views.append(
				...[
					["map", grid.map ? t("Map") : t("Squares")],
					["bars", t("Bars")],
				].map(([name, label]) =>
					h("button", { type: "button", "data-view": name, onclick: () => choose("view", name) }, label),
				),
			)
		for (const button of views.querySelectorAll("button"))
			button.setAttribute("aria-current", String(view === button.dataset.view))
	}

	/** Draws chart, table and verdict from the latest estimates. */
	function draw() {
		const many = groups.length > 2
		count.textContent = many
			? whole(groups.reduce((sum, { reports }) => sum + reports, 0))
			: groups.map(({ reports }) => whole(reports)).join(" + ")
		const shown = { count: groups.reduce((sum, { reports }) => sum + reports, 0) }
		countName.textContent = many
			? t("answers of {number} groups", { number: groups.length })
			: stepOf()
				? t("released answers", shown)
				: t("answers", shown)
		meaning.textContent = t(
			"Replies are random, so an estimate differs from the true share. If the survey were repeated many times, {level} of the intervals of a value would contain its true share.",
			{ level: percent(Number(basis.level), 0) },
		)
		answered.show(
			groups.map(({ collection, answers, rounding }) => ({
				title: collection.title,
				question: collection.question,
				answers,
				rounding,
				clipped: clippedTo(domain),
				marks: isMarks(domain),
			})),
			basis.level,
		)
		warned.replaceChildren(
			...groups.flatMap(({ collection, warnings }) =>
				warnings.map((words) =>
					h(
						"p",
						{ class: "promise" },
						`${groups.length > 1 ? `${collection.title}: ` : ""}${t("Warning:")} `,
						h("span", { lang: "en", dir: "ltr" }, `${words}.`),
					),
				),
			),
		)
		const full = groups.filter(({ rows }) => rows.length)
		if (groups.some(({ complete }) => !complete)) {
			verdict.replaceChildren(
				h(
					"p",
					{ class: "quiet" },
					t(
						"The reports do not distinguish all values, so they determine no shares of single values. They answer the question above.",
					),
				),
			)
			noChart(picture)
			caption.textContent = ""
			table.replaceChildren(h("p", { class: "quiet" }, t("Shares of single values are not available.")))
			return
		}
		if (full.length < groups.length) {
			verdict.replaceChildren(
				h(
					"p",
					{ class: "promise" },
					stepOf()
						? t(
								"No results are released yet. They are released in steps of at least {count} answers, and answers that have arrived since the last step are not shown.",
								{ count: stepOf() },
							)
						: t("Not enough answers yet. The first estimate appears with the first answers."),
				),
			)
			noChart(picture)
			table.replaceChildren(h("p", { class: "quiet" }, t("Nothing to show yet.")))
			return
		}
		showVerdict()
		districts?.show(groups[0].reports, basis.level)
		differences?.show(groups.map(({ reports }) => reports))
		const grid = gridOf(domain),
			mapped = view === "map" && grid
		for (const tools of page.querySelectorAll(".zoom")) tools.toggleAttribute("hidden", !mapped)
		const titles = groups.map(({ collection, reports }) => `${collection.title} (${whole(reports)})`)
		key.textContent =
			titles.length > 1 && !mapped
				? t("For each value, from top to bottom: {names}.", {
						names: titles.map((one, i) => (titles.length > 2 ? `${i + 1}. ${one}` : one)).join(", "),
					})
				: ""
		if (mapped) {
			const which = groups.map(({ rows }) => rows),
				most = Math.max(
					0.001,
					...which
						.flat()
						.filter((row) => !unsure(row) || row.frequency <= 1)
						.map((row) => within(row.frequency)),
				)
			chart(picture, (width) => {
				const each =
					groups.length > 1
						? Math.max(240, Math.floor(width / Math.min(groups.length, width < 560 ? 1 : 2)) - 16)
						: width
				return h(
					"div",
					{ class: "maps" },
					...which.map((rows, i) =>
						h(
							"figure",
							{},
							groups.length > 1 && h("figcaption", {}, titles[i]),
							heatMap(
								rows,
								grid,
								names,
								Math.min(each, width) * zoom,
								most,
								grid.map ? backgroundOf(groups[i].collection) : null,
								76 * zoom,
							),
						),
					),
				)
			})
			caption.textContent = [
				grid.map && t("North is up."),
				t("A dashed cell has no number: its interval contains 0."),
				groups.length > 1 && t("All maps have the same scale."),
			]
				.filter(Boolean)
				.join(" ")
		} else {
			const all = order(),
				places = all.slice(0, Math.max(5, Math.floor(MOST_BARS / Math.ceil(groups.length / 2))))
			if (places.length)
				chart(picture, (width) =>
					estimateChart(
						groups.map(({ collection, rows }) => ({ name: collection.title, rows })),
						names,
						places,
						width,
					),
				)
			else noChart(picture)
			const most =
				places.length < all.length
					? t("The first {number} of {all} values.", { number: places.length, all: all.length })
					: places.length
						? ""
						: t("No value has this name.")
			caption.textContent =
				`${most} ${t("Lines are {level} confidence intervals. A hollow dot means that the interval contains 0.", { level: percent(Number(basis.level), 0) })}`.trim()
		}
		showTable()
	}

	/** Returns the indices of the values in the chosen order, without those that the filter leaves out. */
	const order = () => placesOf(names, groups[0].rows, chosen.sort, chosen.filter)

	/** States for which values there are enough answers. */
	function showVerdict() {
		const lines = groups.map(({ collection, rows, reports }) => {
			const open = rows.filter((row) => unsure(row) && !rare(row)),
				few = rows.filter(rare),
				who = groups.length > 1 ? `${collection.title}: ` : ""
			const small = few.length
				? ` ${t("{count} values are rare: at most {bound}.", { count: few.length, bound: percent(Math.max(...few.map(({ high }) => high))) })}`
				: ""
			if (!open.length)
				return h("p", { class: "quiet" }, `${who}${t("Every interval lies above 0 or ends at 10% or less.")}${small}`)
			if (collection.question) {
				return h(
					"p",
					{ class: "quiet" },
					`${who}${t("The reports are designed for the question above. For {number} of {all} single values, the interval contains 0.", { number: whole(open.length), all: rows.length })}`,
				)
			}
			const best = rows.reduce((a, b) => (b.frequency > a.frequency ? b : a))
			if (open.length < rows.length) {
				const which = open.length <= 5 ? `: ${open.map((row) => nameOf(row.value, domain)).join(", ")}` : ""
				return h(
					"p",
					{ class: "promise" },
					h(
						"strong",
						{},
						`${who}${t("Not enough answers yet for {number} of {all} values", { number: whole(open.length), all: rows.length })}`,
					),
					`${which}. ${t("Their intervals contain 0.")}${small}`,
				)
			}
			// Intervals narrow as 1/√n.
			const needed = reports * ((groups[0].quantile * best.standard_error) / best.frequency) ** 2
			const about =
				reports >= ENOUGH_TO_GUESS && best.frequency > 0
					? ` ${t("If the share of the most frequent value stays the same, about {count} answers are enough for it.", { count: Number(needed.toPrecision(1)) })}`
					: ""
			return h(
				"p",
				{ class: "promise" },
				h("strong", {}, `${who}${t("Not enough answers yet.")}`),
				` ${t("Every interval contains 0.")}${about}`,
			)
		})
		verdict.replaceChildren(...lines)
	}

	/** Shows the estimates as a table. */
	const showTable = () =>
		table.replaceChildren(
			resultTable(
				groups.map(({ collection: { title }, reports, rows }) => ({ title, reports, rows })),
				names,
				order(),
				aboutEstimates(basis),
			),
		)

	/** Explains intervals in a few sentences. */
	const explanation = () =>
		h(
			"details",
			{},
			h("summary", {}, t("What do the intervals mean?")),
			meaning,
			h(
				"p",
				{},
				t(
					"“At most” names the upper limit of a rare value. “Not enough answers yet” means that the interval contains 0: wait for more answers. Shares below 0% or above 100%, which few answers can give, are shown as 0% and 100%; the files have the exact numbers.",
				),
			),
		)

	/** Creates the choice of the method and of the confidence level. */
	const options = () =>
		h(
			"details",
			{},
			h("summary", {}, t("Method of estimation")),
			h(
				"div",
				{ class: "row" },
				optionField("method", METHODS, t("Method"), tag),
				optionField(
					"level",
					Object.fromEntries(LEVELS.map((level) => [level, percent(Number(level), 0)])),
					t("Confidence level of the intervals"),
					tag,
				),
			),
		)

	// -- downloads and comparison
	// --------------------------------------------------------------------------------------------

	const fileName = (ending = "") =>
		`${
			groups[0].collection.title
				.toLowerCase()
				.replace(/[^a-z0-9]+/g, "-")
				.replace(/^-|-$/g, "") || groups[0].collection.id
		}${ending}`

	/** Creates the buttons that download the estimates. */
	function downloads() {
		const fault = h("p", { class: "alarm", role: "alert", hidden: true })
		const take = (/** @type {() => Promise<void> | void} */ work) => async () => {
			fault.hidden = true
			try {
				await work()
			} catch (error) {
				fault.hidden = false
				fault.textContent = error instanceof Error ? error.message : String(error)
			}
		}
		return h(
			"div",
			{},
			h(
				"div",
				{ class: "actions" },
				h("button", { type: "button", onclick: take(saveCsv) }, "CSV"),
				h("button", { type: "button", onclick: take(saveParquet) }, "Parquet"),
				h("button", { type: "button", onclick: take(saveJson) }, "JSON"),
				h("button", { type: "button", onclick: take(saveSvg) }, t("SVG of the chart")),
				h("button", { type: "button", onclick: take(savePng) }, t("PNG of the chart")),
			),
			fault,
		)
	}

	async function saveCsv() {
		if (groups.some(({ collection }) => collection.question)) return saveAnswers()
		const columns = ["frequency", "standard_error", "low", "high"]
		const rows = groups.flatMap(({ collection, reports, rows }) =>
			rows.map((row) => [
				collection.id,
				collection.title,
				reports,
				nameOf(row.value, domain),
				...columns.map((name) => /** @type {any} */ (row)[name]),
				basis.method,
				basis.level,
				today(),
			]),
		)
		download(
			fileName(".csv"),
			csv([["collection", "title", "reports", "value", ...columns, "method", "level", "date"], ...rows]),
		)
	}

	/** Saves the answers to the question, which the live estimates leave out if there are many. */
	async function saveAnswers() {
		const columns = ["answer", "value", "standard_error", "low", "high"],
			{ method, level } = chosen
		const tables = await Promise.all(
			groups.map(async ({ collection }) => {
				const { reports, answers } = await ask(
					`/v1/collections/${collection.id}/estimate?method=${method}&level=${level}`,
				)
				return answers.map((/** @type {any} */ row) => [
					collection.id,
					collection.title,
					reports,
					...columns.map((name) => row[name]),
					method,
					level,
					today(),
				])
			}),
		)
		download(
			fileName(".csv"),
			csv([["collection", "title", "reports", ...columns, "method", "level", "date"], ...tables.flat()]),
		)
	}

	async function saveParquet() {
		for (const [i, { collection }] of groups.entries()) {
			const file = await askFile(
				`/v1/collections/${collection.id}/estimate?method=${chosen.method}&level=${chosen.level}`,
				PARQUET,
			)
			download(fileName(i ? `-${i + 1}.parquet` : ".parquet"), file)
		}
	}

	/** Saves the whole estimate of each group, with its title, number of answers, date and method. */
	async function saveJson() {
		const estimates = await Promise.all(
			groups.map(async ({ collection }) => ({
				title: collection.title,
				date: today(),
				...(await ask(`/v1/collections/${collection.id}/estimate?method=${chosen.method}&level=${chosen.level}`)),
			})),
		)
		download(
			fileName(".json"),
			new Blob([JSON.stringify(estimates.length === 1 ? estimates[0] : estimates, null, 1)], {
				type: "application/json",
			}),
		)
	}

	/**
	 * Returns the drawn charts, with the lines that a picture of them starts with: title, number of answers, method and
	 * date.
	 */
	function drawnCharts() {
		const charts = /** @type {SVGSVGElement[]} */ ([
			...answered.section.querySelectorAll("svg"),
			...picture.querySelectorAll("svg"),
		])
		if (!charts.length) throw new Error(t("There is no chart. It needs answers, and some questions have only numbers."))
		const lines = groups.map(({ collection, reports }) => `${collection.title}: ${answers(reports)}`)
		return { charts, lines: [...lines, `${aboutEstimates(basis)}, ${today()}`] }
	}

	async function savePng() {
		const { charts, lines } = drawnCharts()
		download(fileName(".png"), await png(charts, lines))
	}

	function saveSvg() {
		const { charts, lines } = drawnCharts()
		download(fileName(".svg"), svgFile(charts, lines))
	}

	/** Creates the form that compares this collection with others. */
	function comparison() {
		const reference = groups[0].collection,
			same = h("div", { class: "choices two" }),
			different = h("div", { class: "choices two" })
		const choices = [
			h(
				"fieldset",
				{},
				h(
					"legend",
					{},
					t("The same question"),
					h("span", { class: "hint" }, t("The wording and the values are the same.")),
				),
				same,
			),
			h(
				"fieldset",
				{},
				h(
					"legend",
					{},
					t("Other questions with the same values"),
					h(
						"span",
						{ class: "hint" },
						t("Their wording differs. Compare only those that ask the same, such as of another region or year."),
					),
				),
				different,
			),
		]
		const form = h(
			"form",
			{
				onsubmit: (/** @type {Event} */ event) => {
					event.preventDefault()
					const address = new URL(location.href),
						ticked = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll("input:checked")]).map(
							({ value }) => value,
						)
					if (ticked.length) address.searchParams.set("with", ticked.join(","))
					else address.searchParams.delete("with")
					location.assign(address)
				},
			},
			...choices,
			h("button", {}, t("Compare")),
		)
		const section = h(
			"section",
			{ class: "card", id: `compare${tag}`, hidden: true },
			h("h2", {}, t("Compare groups")),
			form,
		)
		ask("/v1/collections")
			.then(async ({ collections }) => {
				const others = collections.filter((/** @type {any} */ { id }) => !ids.includes(id)).slice(0, 50)
				const full = await Promise.all(
					others.map((/** @type {any} */ { id }) => ask(`/v1/collections/${id}`).catch(() => null)),
				)
				for (const one of [
					...groups.slice(1).map(({ collection }) => collection),
					...full.filter((one) => one && sameValues(one, reference)),
				]) {
					const { id, title, reports, created } = one
					;(wordingOf(one) === wordingOf(reference) ? same : different).append(
						h(
							"label",
							{ class: "choice" },
							h("input", { type: "checkbox", value: id, checked: ids.includes(id) }),
							h("span", {}, h("bdi", {}, title), ` (${answers(reports)}, ${dateOf(created)})`),
						),
					)
				}
				for (const one of choices) one.hidden = !one.querySelector("input")
				section.hidden = choices.every(({ hidden }) => hidden)
			})
			.catch(() => 0)
		return section
	}

	/** Describes the certificate of each collection. */
	async function certificates() {
		for (const { collection } of groups) {
			const document = await ask(`/v1/collections/${collection.id}/certificate`)
			certificate.append(
				...(groups.length > 1 ? [h("h3", {}, collection.title)] : []),
				h("p", { lang: "en", dir: "ltr" }, `The rule of this collection: ${collection.asks}`),
				...certificateInWords(document).map((sentence) => h("p", { lang: "en", dir: "ltr" }, sentence)),
				h(
					"p",
					{ class: "actions" },
					h(
						"a",
						{
							class: "button",
							href: `/v1/collections/${collection.id}/certificate`,
							download: `certificate-${collection.id}.json`,
						},
						t("Download the certificate"),
					),
					h(
						"span",
						{ class: "quiet small" },
						t("To check it, run this command, or call sfumato.verify in Python:"),
						" ",
						h("code", {}, "sfumato verify certificate.json"),
					),
				),
			)
		}
	}

	/** Returns the collection if other sites may show its results. */
	const embeddable = () => (groups.length && groups[0].collection.results === "public" ? groups[0].collection : null)

	return { element: page, start, embeddable, title: () => groups[0]?.collection.title ?? "" }
}

begin()
