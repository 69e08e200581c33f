// The results page: live estimates with intervals, as charts and tables, with comparison, downloads and certificates.
import { answersCard } from "./answers.js"
import { adminToken, ask, askFile, follow, keepAdminToken } from "./api.js"
import { chart, estimateChart, heatMap, noChart, png, unsure } from "./charts.js"
import { gridOf, labelsOf, nameOf } from "./domains.js"
import { at, csv, download, h, percent, whole } from "./dom.js"
import { certificateInWords } from "./words.js"
/** @typedef {import("./charts.js").Row} Row */
/** @typedef {import("./answers.js").AnswerRow} AnswerRow */
/** @typedef {{ collection: any, reports: number, rows: Row[], complete: boolean, answers: AnswerRow[], rounding: number, quantile: number, stop: () => void }} Group */

/** Maximum bars of a chart. */
const MOST_BARS = 40
/** Minimum answers for a prediction of how many are needed. */
const ENOUGH_TO_GUESS = 30
const LEVELS = ["0.9", "0.95", "0.99"]
const METHODS = { unbiased: "unbiased", efficient: "efficient (least variance)", simplex: "projected onto valid shares", mle: "maximum likelihood", bayes: "shrunk (empirical Bayes)", best: "best of projected and shrunk" }
const PARQUET = "application/vnd.apache.parquet"

const parameters = new URLSearchParams(location.search)
const ids = [location.pathname.split("/")[2], ...(parameters.get("with") ?? "").split(",").filter(Boolean)]
const page = at("results")
/** Quantile of the displayed intervals, as sent by the collector. */
const quantile = () => groups[0].quantile
const chosen = { method: "unbiased", level: "0.95" }
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

// -- the page ----------------------------------------------------------------------------------------------------------

const count = h("span", { class: "big", id: "reports" }, "0")
const connection = h("span", { class: "live quiet", role: "status" }, "connecting")
const verdict = h("div", { id: "verdict", role: "status" })
const picture = h("div", { class: "chart", id: "chart" })
const caption = h("p", { class: "small quiet" })
const key = h("p", { class: "small" })
const table = h("div", { class: "wide", id: "table" })
const answered = answersCard()
const views = h("div", { class: "tabs", hidden: true })

async function begin() {
	try {
		const collections = await Promise.all(ids.map((id) => ask(`/v1/collections/${id}`)))
		domain = collections[0].policy.domain
		groups = collections.map((collection) => ({ collection, reports: collection.reports, rows: [], complete: true, answers: [], rounding: 0, quantile: 0, stop: () => {} }))
	} catch (error) {
		return page.replaceChildren(h("h1", {}, "These results cannot be shown"), h("p", { class: "alarm" }, error instanceof Error ? error.message : String(error)))
	}
	labels = labelsOf(domain)
	names = labels.map((value) => nameOf(value, domain))
	const other = groups.find(({ collection }) => JSON.stringify(labelsOf(collection.policy.domain)) !== JSON.stringify(labels))
	if (other) {
		return page.replaceChildren(h("h1", {}, "These cannot be compared"),
			h("p", { class: "alarm" }, `“${groups[0].collection.title}” and “${other.collection.title}” have different values. Compare collections with the same values.`))
	}
	if (gridOf(domain)) view = "map"
	const { title, description } = groups[0].collection
	document.title = `${title}: results`
	const hidden = groups.some(({ collection }) => collection.results === "admin")
	// The answers to a question come first: its reports say little about single values.
	const asks = groups.some(({ collection }) => collection.question)
	const counter = h("div", { class: "count" }, count, h("span", { class: "quiet", id: "answers" }, "answers"), connection)
	if (asks) answered.section.prepend(counter)
	page.replaceChildren(
		h("p", { class: "step" }, "Results"),
		h("h1", {}, groups.map(({ collection }) => collection.title).filter((one, i, all) => all.indexOf(one) === i).join(" and ")),
		...(description ? [h("p", { class: "lead" }, description)] : []),
		...(hidden && !adminToken() ? [tokenForm()] : []),
		...(asks ? [answered.section] : []),
		h("section", { class: "card", "aria-label": "Estimates" }, asks ? h("h2", {}, "Shares of single values") : counter,
			verdict, views, key, picture, caption, options()),
		h("section", { class: "card" }, h("h2", {}, "Table"), table, downloads()),
		comparison(),
		h("section", { class: "card", id: "certificate" }, h("h2", {}, groups.length > 1 ? "Certificates" : "Certificate")))
	showViews()
	listen()
	certificates()
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
}

/** Creates the form for the admin token. @param {() => void} [done] */
function tokenForm(done = () => location.reload()) {
	const field = h("input", { type: "password", id: "admin", autocomplete: "off", required: true })
	return h("form", { class: "card", onsubmit: (/** @type {Event} */ event) => {
		event.preventDefault()
		keepAdminToken(field.value.trim())
		done()
	} }, h("div", { class: "field" }, h("label", { for: "admin" }, "Admin token", h("span", { class: "hint" },
		"Only administrators may read these results. Only this tab stores the token.")), field), h("button", { class: "main" }, "Show the results"))
}

/** Follows the live estimates of all groups. */
function listen() {
	for (const group of groups) {
		group.stop()
		const { collection } = group
		group.stop = follow(`/v1/collections/${collection.id}/live?method=${chosen.method}&level=${chosen.level}`, (event) => {
			group.reports = event.reports
			group.rows = event.rows ?? group.rows
			group.complete = event.complete ?? group.complete
			group.answers = event.answers ?? group.answers
			group.rounding = event.rounding ?? group.rounding
			group.quantile = event.quantile ?? group.quantile
			draw()
		}, (connected, error) => {
			connection.textContent = connected ? "live" : error?.reason === "unauthorized" ? "an admin token is needed" : "not connected; reconnecting"
			connection.classList.toggle("on", connected)
			if (error && !connected && error.reason === "invalid") verdict.replaceChildren(h("p", { class: "alarm" }, error.message))
			if (error?.reason === "unauthorized" && !page.querySelector("form.card")) {
				keepAdminToken("")
				page.querySelector("section")?.before(tokenForm())
			}
		})
	}
}

/** Shows the choice between map and bars. */
function showViews() {
	const grid = gridOf(domain)
	views.hidden = !grid
	if (!grid) return
	views.replaceChildren(...[["map", grid.map ? "Map" : "Squares"], ["bars", "Bars"]].map(([name, label]) => h("button", {
		type: "button", "aria-current": String(view === name), onclick: () => {
			view = /** @type {any} */ (name)
			showViews()
			draw()
		},
	}, label)))
}

/** Draws chart, table and verdict from the latest estimates. */
function draw() {
	count.textContent = groups.map(({ reports }) => whole(reports)).join(" + ")
	at("answers").textContent = groups.length === 1 && groups[0].reports === 1 ? "answer" : "answers"
	answered.show(groups.map(({ collection, answers, rounding }) => ({ title: collection.title, question: collection.question, answers, rounding })), chosen.level)
	const full = groups.filter(({ rows }) => rows.length)
	if (groups.some(({ complete }) => !complete)) {
		verdict.replaceChildren(h("p", { class: "quiet" }, "The reports do not distinguish all values, so they determine no shares of single values. They answer the question above."))
		noChart(picture)
		caption.textContent = ""
		table.replaceChildren(h("p", { class: "quiet" }, "Shares of single values are not available."))
		return
	}
	if (full.length < groups.length) {
		verdict.replaceChildren(h("p", { class: "promise" }, "Not enough answers yet. The first estimate appears with the first answers."))
		noChart(picture)
		table.replaceChildren(h("p", { class: "quiet" }, "Nothing to show yet."))
		return
	}
	showVerdict()
	const grid = gridOf(domain), mapped = view === "map" && grid
	const titles = groups.map(({ collection, reports }) => `${collection.title} (${whole(reports)})`)
	key.textContent = titles.length > 1 && !mapped ? `For each value, from top to bottom: ${titles.join(", ")}.` : ""
	if (mapped) {
		const which = groups.map(({ rows }) => rows)
		chart(picture, (width) => heatMap(which[0], grid, names, quantile(), width))
		caption.textContent = `${grid.map ? "North is up. " : ""}The interval of a dashed cell is wider than its estimate.${groups.length > 1 ? ` The map shows “${groups[0].collection.title}”. The bars show all groups.` : ""}`
	} else {
		const places = order().slice(0, MOST_BARS)
		chart(picture, (width) => estimateChart(groups.map(({ collection, rows }) => ({ name: collection.title, rows })), names, places, quantile(), width))
		const most = labels.length > MOST_BARS ? `The ${MOST_BARS} most frequent of ${whole(labels.length)} values. ` : ""
		caption.textContent = `${most}Lines are ${percent(Number(chosen.level), 0)} confidence intervals. A hollow dot means that the interval is wider than the estimate.`
	}
	showTable()
}

/** Returns the indices of the values: in the order of the domain if they are few, else by frequency. */
function order() {
	const places = [...labels.keys()]
	return labels.length > MOST_BARS ? places.sort((x, y) => groups[0].rows[y].frequency - groups[0].rows[x].frequency) : places
}

/** States for which values there are enough answers. */
function showVerdict() {
	const lines = groups.map(({ collection, rows, reports }) => {
		const open = rows.filter((row) => unsure(row, quantile())), who = groups.length > 1 ? `${collection.title}: ` : ""
		if (!open.length) return h("p", { class: "quiet" }, `${who}There are enough answers to estimate every value.`)
		if (collection.question) {
			return h("p", { class: "quiet" }, `${who}The reports are designed for the question above. For ${open.length} of ${rows.length} single values, the interval is wider than the estimate.`)
		}
		const best = rows.reduce((a, b) => (b.frequency > a.frequency ? b : a))
		if (open.length < rows.length) {
			const few = open.length <= 5 ? `: ${open.map((row) => nameOf(row.value, domain)).join(", ")}` : ""
			return h("p", { class: "promise" }, h("strong", {}, `${who}Not enough answers yet for ${open.length} of ${rows.length} values`), `${few}. Their intervals are wider than their estimates.`)
		}
		// Intervals narrow as 1/√n.
		const needed = reports * ((2 * quantile() * best.standard_error) / best.frequency) ** 2
		const about = reports >= ENOUGH_TO_GUESS && best.frequency > 0 ? ` If the share of the most frequent value stays the same, about ${whole(Number(needed.toPrecision(1)))} answers are enough for it.` : ""
		return h("p", { class: "promise" }, h("strong", {}, `${who}Not enough answers yet.`), ` Every interval is wider than its estimate.${about}`)
	})
	verdict.replaceChildren(...lines)
}

/** Shows the estimates as a table. */
function showTable() {
	const many = groups.length > 1, two = groups.length === 2, z = quantile()
	const heads = groups.flatMap(({ collection }, i) => ["share", "s.e.", "low", "high"].map((name) => h("th", { class: "number", scope: "col" }, many ? `${name} ${i + 1}` : name)))
	const all = groups[0].rows.every((row) => unsure(row, z))
	const body = order().slice(0, 1000).map((x) => h("tr", { class: groups.every(({ rows }) => unsure(rows[x], z)) ? "open-row" : "" },
		h("th", { scope: "row" }, names[x], !many && !all && unsure(groups[0].rows[x], z) && h("span", { class: "verdict" }, "not enough answers yet")),
		...groups.flatMap(({ rows }) => [rows[x].frequency, rows[x].standard_error, rows[x].low, rows[x].high].map((v) => h("td", { class: "number" }, percent(v)))),
		two && h("td", { class: "number" }, difference(x))))
	const title = `${percent(Number(chosen.level), 0)} intervals, ${METHODS[/** @type {keyof typeof METHODS} */ (chosen.method)]} estimate.`
	const which = many ? ` ${groups.map(({ collection }, i) => `${i + 1}: ${collection.title}`).join("; ")}.` : ""
	const rest = labels.length > 1000 ? ` The 1,000 most frequent of ${whole(labels.length)} values; the files contain all of them.` : ""
	table.replaceChildren(h("table", {}, h("caption", {}, title + which + rest),
		h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "value"), ...heads, two && h("th", { class: "number", scope: "col" }, "2 − 1"))),
		h("tbody", {}, ...body)))
}

/** Returns the difference of two groups with limits computed from the intervals of both. They are wider than needed;
 * `GroupedEstimate.difference` of the Python library returns the narrower interval. @param {number} x */
function difference(x) {
	const [first, second] = groups.map(({ rows }) => rows[x])
	return `${percent(second.frequency - first.frequency)} (${percent(second.low - first.high)} to ${percent(second.high - first.low)})`
}

/** Creates the choice of the method and of the confidence level. */
function options() {
	const select = (/** @type {"method" | "level"} */ name, /** @type {[string, string][]} */ entries, /** @type {string} */ title) => h("div", { class: "field" },
		h("label", { for: name }, title), h("select", { id: name, onchange: (/** @type {any} */ event) => {
			chosen[name] = event.target.value
			listen()
		} }, ...entries.map(([value, label]) => h("option", { value, selected: chosen[name] === value }, label))))
	return h("details", {}, h("summary", {}, "Method of estimation"), h("div", { class: "row" },
		select("method", Object.entries(METHODS), "Method"),
		select("level", LEVELS.map((level) => [level, percent(Number(level), 0)]), "Confidence level of the intervals")))
}

// -- downloads and comparison --------------------------------------------------------------------------------------------

const fileName = (ending = "") => `${groups[0].collection.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || groups[0].collection.id}${ending}`

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
	return h("div", {}, h("div", { class: "actions" },
		h("button", { type: "button", onclick: take(saveCsv) }, "CSV"),
		h("button", { type: "button", onclick: take(saveParquet) }, "Parquet"),
		h("button", { type: "button", onclick: take(savePng) }, "PNG of the chart")), fault)
}

async function saveCsv() {
	if (groups.some(({ collection }) => collection.question)) return saveAnswers()
	const columns = ["frequency", "standard_error", "low", "high"]
	const rows = groups.flatMap(({ collection, reports, rows }) => rows.map((row) =>
		[collection.id, collection.title, reports, nameOf(row.value, domain), ...columns.map((name) => /** @type {any} */ (row)[name])]))
	download(fileName(".csv"), csv([["collection", "title", "reports", "value", ...columns], ...rows]))
}

/** Saves the answers to the question, which the live estimates leave out if there are many. */
async function saveAnswers() {
	const columns = ["answer", "value", "standard_error", "low", "high"]
	const tables = await Promise.all(groups.map(async ({ collection }) => {
		const { reports, answers } = await ask(`/v1/collections/${collection.id}/estimate?method=${chosen.method}&level=${chosen.level}`)
		return answers.map((/** @type {any} */ row) => [collection.id, collection.title, reports, ...columns.map((name) => row[name])])
	}))
	download(fileName(".csv"), csv([["collection", "title", "reports", ...columns], ...tables.flat()]))
}

async function saveParquet() {
	for (const [i, { collection }] of groups.entries()) {
		const file = await askFile(`/v1/collections/${collection.id}/estimate?method=${chosen.method}&level=${chosen.level}`, PARQUET)
		download(fileName(i ? `-${i + 1}.parquet` : ".parquet"), file)
	}
}

async function savePng() {
	const drawn = /** @type {SVGSVGElement | null} */ (picture.querySelector("svg"))
	if (!drawn) throw new Error("The chart is not drawn yet. Wait for the first answers.")
	download(fileName(".png"), await png(drawn))
}

/** Creates the form that compares this collection with another one. */
function comparison() {
	const fault = h("p", { class: "alarm", role: "alert", hidden: true }), list = h("select", { id: "other" }, h("option", { value: "" }, "Choose …"))
	const form = h("form", { onsubmit: (/** @type {Event} */ event) => {
		event.preventDefault()
		if (list.value) location.search = `?with=${[...ids.slice(1), list.value].join(",")}`
	} }, h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "other" }, "Another collection with the same values",
		h("span", { class: "hint" }, "The same question asked of other people, such as another region or another year.")), list)), fault, h("button", {}, "Compare"))
	const section = h("section", { class: "card", hidden: true }, h("h2", {}, "Compare groups"), form)
	ask("/v1/collections").then(async ({ collections }) => {
		const others = collections.filter((/** @type {any} */ { id }) => !ids.includes(id)).slice(0, 50)
		const full = await Promise.all(others.map((/** @type {any} */ { id }) => ask(`/v1/collections/${id}`).catch(() => null)))
		const same = full.filter((one) => one && JSON.stringify(labelsOf(one.policy.domain)) === JSON.stringify(labels))
		list.append(...same.map(({ id, title, reports }) => h("option", { value: id }, `${title} (${whole(reports)} ${reports === 1 ? "answer" : "answers"})`)))
		section.hidden = !same.length
	}).catch(() => 0)
	return section
}

/** Describes the certificate of each collection. */
async function certificates() {
	for (const { collection } of groups) {
		const certificate = await ask(`/v1/collections/${collection.id}/certificate`)
		at("certificate").append(...(groups.length > 1 ? [h("h3", {}, collection.title)] : []),
			h("p", {}, `The rule of this collection: ${collection.asks}`),
			...certificateInWords(certificate).map((sentence) => h("p", {}, sentence)),
			h("p", { class: "actions" }, h("a", { class: "button", href: `/v1/collections/${collection.id}/certificate`, download: `certificate-${collection.id}.json` }, "Download the certificate"),
				h("span", { class: "quiet small" }, "To check it, run ", h("code", {}, "sfumato verify certificate.json"), ", or call ", h("code", {}, "sfumato.verify"), " in Python.")))
	}
}

begin()
