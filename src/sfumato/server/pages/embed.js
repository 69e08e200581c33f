// Public results of one question in a page of another site: a chart with its title, number of answers, method and date.
// This page reads no stored token and sends none, and
// it has no control that changes anything, because the other site may cover it.
import { answerName, answerText } from "./answers.js"
import { chart, estimateChart, heatMap, MOST_BARS } from "./charts.js"
import { backgroundOf } from "./districts.js"
import { gridOf, labelsOf, nameOf } from "./domains.js"
import { at, h } from "./dom.js"
import { t } from "./owners.js"
import { aboutEstimates, chosen, queryOf, today } from "./result-options.js"
import { answers, placesOf } from "./result-table.js"

/** Milliseconds between two requests. */
const PAUSE = 60000

const page = at("embedded"),
	id = location.pathname.split("/")[2]

/** Requests public data, without a token. @param {string} path */
async function read(path) {
	const response = await fetch(path, { credentials: "omit" })
	const body = await response.json()
	if (!response.ok) throw new Error(body.error?.message ?? response.statusText)
	return body
}

/** Shows the latest estimate. @param {any} collection */
async function show(collection) {
	const estimate = await read(`/v1/collections/${id}/estimate?method=${chosen.method}&level=${chosen.level}`)
	const {
			title,
			state,
			policy: { domain },
		} = collection,
		{ rows, reports, question } = estimate,
		names = labelsOf(domain).map((value) => nameOf(value, domain))
	document.title = t("{title}: results", { title })
	const picture = h("div", { class: "chart" }),
		query = queryOf(["method", "level", "sort", "filter", "view"])
	const link = h(
		"a",
		{ href: `/c/${id}/results${query && `?${query}`}`, target: "_blank", rel: "noopener" },
		t("All results and their explanation"),
	)
	const places = rows.length ? placesOf(names, rows, chosen.sort, chosen.filter) : [],
		shown = places.slice(0, MOST_BARS),
		grid = gridOf(domain)
	const single = question && estimate.answers.length && (estimate.answers.length === 1 || !rows.length)
	const facts = single
		? h(
				"ul",
				{},
				...estimate.answers
					.slice(0, MOST_BARS)
					.map((/** @type {any} */ row) =>
						h(
							"li",
							{},
							`${answerName(row, question)}: ${answerText(row.value, question)} (${t("{low} to {high}", { low: answerText(row.low, question), high: answerText(row.high, question) })})`,
						),
					),
			)
		: ""
	const about = `${answers(reports)}, ${aboutEstimates(chosen)}, ${today()}${state === "open" ? "" : `, ${state === "scheduled" ? t("not open yet") : t("closed")}`}.${shown.length < places.length ? ` ${t("The first {number} of {all} values.", { number: shown.length, all: places.length })}` : ""}`
	page.replaceChildren(
		h("h1", {}, title),
		facts,
		picture,
		h(
			"p",
			{ class: "small quiet", id: "about" },
			rows.length || single ? about : `${t("No answer to show yet.")} (${today()})`,
		),
		h("p", { class: "small" }, link),
	)
	if (grid && rows.length && chosen.view !== "bars") {
		const most = Math.max(0.001, ...rows.map((/** @type {any} */ { frequency }) => Math.min(1, frequency)))
		chart(picture, (width) => heatMap(rows, grid, names, width, most, grid.map ? backgroundOf(collection) : null))
	} else if (shown.length) chart(picture, (width) => estimateChart([{ name: title, rows }], names, shown, width))
}

/** Shows the results, and again at intervals while the survey is open and the page is visible. */
async function begin() {
	try {
		const collection = await read(`/v1/collections/${id}`)
		if (collection.results !== "public") throw new Error(t("The results of this survey are not public."))
		await show(collection)
		setInterval(async () => {
			if (!document.hidden)
				await read(`/v1/collections/${id}`)
					.then(show)
					.catch(() => 0)
		}, PAUSE)
	} catch (error) {
		page.replaceChildren(
			h("h1", {}, t("These results cannot be shown")),
			h("p", { class: "alarm" }, error instanceof Error ? error.message : String(error)),
		)
	}
}

begin()
