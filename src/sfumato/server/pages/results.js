// The results page: live estimates with intervals, as charts and tables, with comparison, downloads and certificates. A survey of
// several questions has one panel per question on the page.
import { answersCard } from "./answers.js"
import { adminToken, ask, askFile, follow, keepAdminToken, takeReaderToken } from "./api.js"
import { chart, estimateChart, heatMap, noChart, png, rare, svgFile, unsure } from "./charts.js"
import { gridOf, isMarks, labelsOf, nameOf } from "./domains.js"
import { at, copyable, csv, download, h, percent, whole } from "./dom.js"
import { trendCard } from "./trend.js"
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

takeReaderToken()
const parameters = new URLSearchParams(location.search)
const listOf = (/** @type {string} */ name) => (parameters.get(name) ?? "").split(",").filter(Boolean)
const first = location.pathname.split("/")[2], questions = listOf("then"), compared = listOf("with")
const page = at("results")
/** Shares are shown within 0 to 1; an unbiased estimate from few answers may lie outside. @param {number} share */
const within = (share) => Math.min(1, Math.max(0, share))
/** Options of the page, which its address holds. */
const chosen = {
	method: Object.hasOwn(METHODS, parameters.get("method") ?? "") ? String(parameters.get("method")) : "unbiased",
	level: LEVELS.includes(parameters.get("level") ?? "") ? String(parameters.get("level")) : "0.95",
	view: parameters.get("view") ?? "", sort: parameters.get("sort") ?? "",
}
/** Changes an option, and the address with it. @param {keyof typeof chosen} name @param {string} value */
function choose(name, value) {
	chosen[name] = value
	const address = new URL(location.href)
	address.searchParams.set(name, value)
	history.replaceState(null, "", address)
	for (const link of document.querySelectorAll("#permalink input")) Object.assign(link, { value: location.href })
}

/** Whether an error was about the admin token, and what to say about it. */
let problem = ""

/** Creates the form for the admin token. */
function tokenForm() {
	const field = h("input", { type: "password", id: "admin", autocomplete: "off", required: true })
	return h("form", { class: "card", id: "token-form", onsubmit: (/** @type {Event} */ event) => {
		event.preventDefault()
		keepAdminToken(field.value.trim())
		location.reload()
	} }, problem && h("p", { class: "alarm", role: "alert" }, problem), h("div", { class: "field" }, h("label", { for: "admin" }, "Admin token", h("span", { class: "hint" },
		"Only administrators may read these results. Only this tab stores the token.")), field), h("button", { class: "main" }, "Show the results"))
}

/** Asks for the admin token, once. */
function askForToken() {
	if (adminToken()) problem = "The collector does not accept this admin token for these results. Check it and try again."
	keepAdminToken("")
	if (!at("token-form")) page.querySelector(".panel")?.before(tokenForm())
	else if (problem && !at("token-form").querySelector(".alarm")) at("token-form").prepend(h("p", { class: "alarm", role: "alert" }, problem))
}

/** Shows one panel per question. */
async function begin() {
	const panels = [first, ...questions].map((id, i) => panel(i ? [id] : [id, ...compared], i ? `-${i + 1}` : ""))
	page.replaceChildren(...panels.map(({ element }) => element))
	for (const { start } of panels) await start()
	if (questions.length) {
		document.title = "Results of a survey"
		page.prepend(h("nav", { class: "tabs", "aria-label": "Questions" }, ...panels.map(({ element, title }, i) => h("a", { class: "button", href: `#${element.id}` }, `${i + 1}. ${title()}`))))
	}
	page.append(h("section", { class: "card", id: "permalink" }, h("h2", {}, "Link to this page"), h("p", { class: "quiet" }, "The link contains the questions, the comparison, the method, the view and the order. It does not contain the admin token."),
		copyable(location.href, "Link to these results")))
}

/** Creates the results of one question, and of the groups that it is compared with. `tag` makes the ids of its elements unique.
 * @param {string[]} ids @param {string} tag */
function panel(ids, tag) {
	const page = h("div", { class: "panel", id: `question${tag || "-1"}` }, h("p", { class: "quiet" }, "Loading …"))
	/** Quantile of the displayed intervals, as sent by the collector. */
	const quantile = () => groups[0].quantile
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
	/** The trend of a collection with waves. @type {ReturnType<typeof trendCard> | null} */
	let trend = null

	// -- the page ----------------------------------------------------------------------------------------------------------

	const count = h("span", { class: "big", id: `reports${tag}` }, "–")
	const countName = h("span", { class: "quiet", id: `answers${tag}` }, "answers")
	const certificate = h("section", { class: "card", id: `certificate${tag}` })
	const connection = h("span", { class: "live quiet", role: "status" }, "connecting")
	const verdict = h("div", { id: `verdict${tag}`, role: "status" })
	const picture = h("div", { class: "chart", id: `chart${tag}` })
	const caption = h("p", { class: "small quiet" })
	const key = h("p", { class: "small" })
	const table = h("div", { class: "wide", id: `table${tag}` })
	const answered = answersCard(tag)
	const views = h("div", { class: "tabs", hidden: true })
	const search = h("input", { type: "search", id: `filter${tag}`, oninput: () => groups.every(({ rows }) => rows.length) && showTable() })

	async function start() {
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
		if (gridOf(domain)) view = chosen.view === "bars" ? "bars" : "map"
		const { title, description } = groups[0].collection
		if (!questions.length) document.title = `${title}: results`
		const hidden = groups.some(({ collection }) => collection.results === "admin")
		// The answers to a question come first: its reports say little about single values.
		const asks = groups.some(({ collection }) => collection.question)
		const counter = h("div", { class: "count" }, count, countName, connection)
		if (asks) answered.section.prepend(counter)
		const repeats = groups.some(({ collection }) => collection.waves)
		trend = groups.length === 1 && repeats ? trendCard(groups[0].collection, tag) : null
		page.replaceChildren(
			h("p", { class: "step" }, "Results"),
			h("h1", {}, groups.map(({ collection }) => collection.title).filter((one, i, all) => all.indexOf(one) === i).join(" and ")),
			...(description ? [h("p", { class: "lead" }, description)] : []),
			...(asks ? [answered.section] : []),
			...(trend ? [trend.section] : []),
			h("section", { class: "card", "aria-label": questions.length ? `Estimates: ${title}` : "Estimates" }, asks ? h("h2", {}, "Shares of single values") : counter,
				repeats && h("p", { class: "quiet", id: `last-wave${tag}` }, "These are the answers of the last wave that has any."),
				verdict, views, key, picture, caption, explanation(), options()),
			h("section", { class: "card" }, h("h2", {}, "Table"), sorting(), table, downloads()),
			...(tag || questions.length ? [] : [comparison()]),
			certificate)
		certificate.append(h("h2", {}, groups.length > 1 ? "Certificates" : "Certificate"))
		if (hidden && !adminToken()) askForToken()
		showViews()
		listen()
		certificates()
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
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
				trend?.show(chosen.method, chosen.level)
			}, (connected, error) => {
				const open = groups.some(({ collection }) => collection.state === "open")
				connection.textContent = !connected ? (error?.reason === "unauthorized" ? "an admin token is needed" : "not connected; reconnecting") : open ? "live" : "closed: no more answers are accepted"
				connection.classList.toggle("on", connected && open)
				if (error && !connected && error.reason === "invalid") verdict.replaceChildren(h("p", { class: "alarm" }, error.message))
				if (error?.reason === "unauthorized") {
					verdict.replaceChildren()
					askForToken()
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
				choose("view", name)
				showViews()
				draw()
			},
		}, label)))
	}

	/** Draws chart, table and verdict from the latest estimates. */
	function draw() {
		count.textContent = groups.map(({ reports }) => whole(reports)).join(" + ")
		countName.textContent = groups.length === 1 && groups[0].reports === 1 ? "answer" : "answers"
		answered.show(groups.map(({ collection, answers, rounding }) => ({ title: collection.title, question: collection.question, answers, rounding, marks: isMarks(domain) })), chosen.level)
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
			const which = groups.map(({ rows }) => rows), most = Math.max(0.001, ...which.flat().filter((row) => !unsure(row, quantile()) || row.frequency <= 1).map((row) => within(row.frequency)))
			chart(picture, (width) => {
				const each = groups.length > 1 ? Math.max(240, Math.floor(width / Math.min(groups.length, width < 560 ? 1 : 2)) - 16) : width
				return h("div", { class: "maps" }, ...which.map((rows, i) => h("figure", {}, groups.length > 1 && h("figcaption", {}, titles[i]), heatMap(rows, grid, names, quantile(), Math.min(each, width), most))))
			})
			caption.textContent = `${grid.map ? "North is up. " : ""}A dashed cell has no number: its interval is wider than its estimate.${groups.length > 1 ? " All maps have the same scale." : ""}`
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
		return chosen.sort === "share" || (chosen.sort !== "list" && labels.length > MOST_BARS) ? places.sort((x, y) => groups[0].rows[y].frequency - groups[0].rows[x].frequency) : places
	}

	/** States for which values there are enough answers. */
	function showVerdict() {
		const lines = groups.map(({ collection, rows, reports }) => {
			const open = rows.filter((row) => unsure(row, quantile()) && !rare(row, quantile())), few = rows.filter((row) => rare(row, quantile())), who = groups.length > 1 ? `${collection.title}: ` : ""
			const small = few.length ? ` ${few.length === 1 ? "1 value is" : `${whole(few.length)} values are`} rare: at most ${percent(Math.max(...few.map(({ high }) => high)))}.` : ""
			if (!open.length) return h("p", { class: "quiet" }, `${who}There are enough answers to estimate every value.${small}`)
			if (collection.question) {
				return h("p", { class: "quiet" }, `${who}The reports are designed for the question above. For ${open.length} of ${rows.length} single values, the interval is wider than the estimate.`)
			}
			const best = rows.reduce((a, b) => (b.frequency > a.frequency ? b : a))
			if (open.length < rows.length) {
				const which = open.length <= 5 ? `: ${open.map((row) => nameOf(row.value, domain)).join(", ")}` : ""
				return h("p", { class: "promise" }, h("strong", {}, `${who}Not enough answers yet for ${open.length} of ${rows.length} values`), `${which}. Their intervals are wider than their estimates.${small}`)
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
		const query = search.value.trim().toLowerCase(), places = order().filter((x) => names[x].toLowerCase().includes(query))
		const body = places.slice(0, 1000).map((x) => h("tr", { class: groups.every(({ rows }) => unsure(rows[x], z)) ? "open-row" : "" },
			h("th", { scope: "row" }, names[x], !many && (rare(groups[0].rows[x], z) ? h("span", { class: "verdict" }, `at most ${percent(groups[0].rows[x].high)}`) : !all && unsure(groups[0].rows[x], z) && h("span", { class: "verdict" }, "not enough answers yet"))),
			...groups.flatMap(({ rows }) => [within(rows[x].frequency), rows[x].standard_error, rows[x].low, rows[x].high].map((v) => h("td", { class: "number" }, percent(v)))),
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

	/** Creates the order and the filter of the table. */
	function sorting() {
		const order = h("select", { id: `sort${tag}`, onchange: () => {
			choose("sort", order.value)
			draw()
		} }, ...[["", "automatic"], ["list", "as in the survey"], ["share", "by share"]].map(([value, label]) => h("option", { value, selected: chosen.sort === value }, label)))
		return h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: `sort${tag}` }, "Order"), order), h("div", { class: "field" }, h("label", { for: `filter${tag}` }, "Find a value"), search))
	}

	/** Explains intervals in a few sentences. */
	const explanation = () => h("details", {}, h("summary", {}, "What do the intervals mean?"),
		h("p", {}, `Replies are random, so an estimate differs from the true share. If the survey were repeated many times, ${percent(Number(chosen.level), 0)} of the intervals of a value would contain its true share.`),
		h("p", {}, "“At most” names the upper limit of a rare value. “Not enough answers yet” means that the interval is wider than the estimate itself: wait for more answers. Shares below 0% or above 100%, which few answers can give, are shown as 0% and 100%; the files have the exact numbers."))

	/** Creates the choice of the method and of the confidence level. */
	function options() {
		const select = (/** @type {"method" | "level"} */ name, /** @type {[string, string][]} */ entries, /** @type {string} */ title) => h("div", { class: "field" },
			h("label", { for: `${name}${tag}` }, title), h("select", { id: `${name}${tag}`, onchange: (/** @type {any} */ event) => {
				choose(name, event.target.value)
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
			h("button", { type: "button", onclick: take(saveJson) }, "JSON"),
			h("button", { type: "button", onclick: take(saveSvg) }, "SVG of the chart"),
			h("button", { type: "button", onclick: take(savePng) }, "PNG of the chart")), fault)
	}

	async function saveCsv() {
		if (groups.some(({ collection }) => collection.question)) return saveAnswers()
		const columns = ["frequency", "standard_error", "low", "high"]
		const rows = groups.flatMap(({ collection, reports, rows }) => rows.map((row) =>
			[collection.id, collection.title, reports, nameOf(row.value, domain), ...columns.map((name) => /** @type {any} */ (row)[name]), chosen.method, chosen.level, today()]))
		download(fileName(".csv"), csv([["collection", "title", "reports", "value", ...columns, "method", "level", "date"], ...rows]))
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

	/** Saves the whole estimate of each group, with its title, number of answers, date and method. */
	async function saveJson() {
		const estimates = await Promise.all(groups.map(async ({ collection }) => ({ title: collection.title, date: today(), ...(await ask(`/v1/collections/${collection.id}/estimate?method=${chosen.method}&level=${chosen.level}`)) })))
		download(fileName(".json"), new Blob([JSON.stringify(estimates.length === 1 ? estimates[0] : estimates, null, 1)], { type: "application/json" }))
	}

	const today = () => new Date().toISOString().slice(0, 10)

	/** Returns the drawn charts, with the lines that a picture of them starts with: title, number of answers, method and date. */
	function drawnCharts() {
		const charts = /** @type {SVGSVGElement[]} */ ([...picture.querySelectorAll("svg")])
		if (!charts.length) throw new Error("The chart is not drawn yet. Wait for the first answers.")
		const about = `${percent(Number(chosen.level), 0)} intervals, ${METHODS[/** @type {keyof typeof METHODS} */ (chosen.method)]} estimate, ${today()}`
		const lines = groups.map(({ collection, reports }) => `${collection.title}: ${whole(reports)} ${reports === 1 ? "answer" : "answers"}`)
		return { charts, lines: [...lines, about] }
	}

	async function savePng() {
		const { charts, lines } = drawnCharts()
		download(fileName(".png"), await png(charts, lines))
	}

	function saveSvg() {
		const { charts, lines } = drawnCharts()
		download(fileName(".svg"), svgFile(charts, lines))
	}

	/** Creates the form that compares this collection with another one. */
	function comparison() {
		const fault = h("p", { class: "alarm", role: "alert", hidden: true }), list = h("select", { id: `other${tag}` }, h("option", { value: "" }, "Choose …"))
		const form = h("form", { onsubmit: (/** @type {Event} */ event) => {
			event.preventDefault()
			const address = new URL(location.href)
			address.searchParams.set("with", [...ids.slice(1), list.value].join(","))
			if (list.value) location.assign(address)
		} }, h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: `other${tag}` }, "Another collection with the same values",
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
			const document = await ask(`/v1/collections/${collection.id}/certificate`)
			certificate.append(...(groups.length > 1 ? [h("h3", {}, collection.title)] : []),
				h("p", {}, `The rule of this collection: ${collection.asks}`),
				...certificateInWords(document).map((sentence) => h("p", {}, sentence)),
				h("p", { class: "actions" }, h("a", { class: "button", href: `/v1/collections/${collection.id}/certificate`, download: `certificate-${collection.id}.json` }, "Download the certificate"),
					h("span", { class: "quiet small" }, "To check it, run ", h("code", {}, "sfumato verify certificate.json"), ", or call ", h("code", {}, "sfumato.verify"), " in Python.")))
		}
	}

	return { element: page, start, title: () => groups[0]?.collection.title ?? "" }
}

begin()
