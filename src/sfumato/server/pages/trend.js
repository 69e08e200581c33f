// The trend of a survey that returns: the share of each value in every wave, and the change since the first wave.
import { ask } from "./api.js"
import { chart, trendChart } from "./charts.js"
import { nameOf } from "./domains.js"
import { csv, download, h, percent } from "./dom.js"
import { dateOf, t } from "./owners.js"
import { answers } from "./result-table.js"
/** @typedef {import("./charts.js").Row} Row */
/** @typedef {{ wave: number, reports: number, rows: Row[] }} Wave */

/** Maximum values with a chart; the table has all of them. */
const MOST_CHARTS = 12
/** Maximum rows of the table of changes. */
const MOST_ROWS = 1000
/** Methods that estimate waves. */
const METHODS = ["unbiased", "simplex", "mle"]

const LIMITS = t(
	"Replies of one person in different waves are not linked, so the errors of a change are not known exactly. The limits are the widest that are possible, and contain the true change with at least this probability.",
)

/** States the bias of devices that keep few permanent answers or follow a schedule, or "". @param {any} mechanism */
function bias({ parameters: { max_changes: changes, refresh_every: every } }) {
	const most = { count: changes + 1 }
	const kept =
		changes === null
			? ""
			: every
				? t("A device keeps at most {count} stored answers.", most)
				: t("A device keeps at most {count} stored answers per person.", most)
	const drawn = every ? t("A device takes up a new answer every {count} waves.", { count: every }) : ""
	return kept || drawn
		? [
				drawn,
				kept,
				t(
					"People whose answer has changed since then are counted with an earlier one. The shares may be off by as much, and the limits do not include it.",
				),
			]
				.filter(Boolean)
				.join(" ")
		: ""
}

/** Names a wave for people. @param {number} wave @param {any} schedule */
export function waveName(wave, { days, start }) {
	return days
		? t("Wave {number}, from {date}", { number: wave + 1, date: dateOf(start + wave * days * 86400) })
		: t("Wave {number}", { number: wave + 1 })
}

/**
 * Creates the card of the trend, and the function that shows the latest estimates. `tag` makes the ids of its elements
 * unique.
 * @param {any} collection
 * @param {string} tag
 */
export function trendCard(collection, tag) {
	const {
		id,
		waves: schedule,
		policy: { domain },
	} = collection
	const state = h("p", { class: "quiet", id: `wave${tag}` }),
		stale = h("p", { class: "quiet", id: `stale${tag}` }, bias(collection.mechanism)),
		charts = h("div", { class: "trends", id: `trends${tag}` }),
		changes = h("div", { class: "wide", id: `changes${tag}` }),
		fault = h("p", { class: "alarm", hidden: true })
	/** @type {Wave[]} */
	let latest = []
	/** What the latest estimates are. */
	let about = { method: "", level: "" }
	const save = h(
		"button",
		{
			type: "button",
			onclick: () =>
				download(
					"waves.csv",
					csv([
						[
							"title",
							"wave",
							"reports",
							"value",
							"frequency",
							"standard_error",
							"low",
							"high",
							"method",
							"level",
							"date",
						],
						...latest.flatMap(({ wave, reports, rows }) =>
							rows.map((row) => [
								collection.title,
								wave,
								reports,
								nameOf(row.value, domain),
								row.frequency,
								row.standard_error,
								row.low,
								row.high,
								about.method,
								about.level,
								new Date().toISOString().slice(0, 10),
							]),
						),
					]),
				),
		},
		t("CSV of all waves"),
	)
	const section = h(
		"section",
		{ class: "card", id: `trend${tag}`, "aria-label": t("Trend over waves") },
		h("h2", {}, t("Trend over waves")),
		state,
		fault,
		stale,
		charts,
		changes,
		h("div", { class: "actions" }, save),
	)
	let turn = 0
	/** Shows the latest estimates. @param {string} method @param {string} level */
	const show = async (method = "unbiased", level = "0.95") => {
		const current = ++turn
		try {
			const result = await ask(
				`/v1/collections/${id}/waves?method=${METHODS.includes(method) ? method : "unbiased"}&level=${level}`,
			)
			if (current !== turn) return
			fault.hidden = true
			latest = result.waves
			about = result
			draw(result, level)
		} catch (error) {
			if (current !== turn) return
			fault.hidden = false
			fault.textContent = error instanceof Error ? error.message : String(error)
		}
	}
	/** @param {{ waves: Wave[], changes: any[] }} result @param {string} level */
	function draw({ waves, changes: all }, level) {
		const { current, count } = schedule,
			last = waves.at(-1)
		state.textContent = `${current === null ? t("No wave is open now.") : t("{wave} of {number} is open.", { wave: waveName(current, schedule), number: count })} ${waves.map(({ wave, reports }) => `${t("Wave {number}", { number: wave + 1 })}: ${answers(reports)}.`).join(" ")}`
		if (!last) return charts.replaceChildren(h("p", { class: "quiet" }, t("The trend appears with the first results.")))
		const places = last.rows.map((_, x) => x)
		const shown =
			places.length > MOST_CHARTS
				? places.sort((a, b) => last.rows[b].frequency - last.rows[a].frequency).slice(0, MOST_CHARTS)
				: places
		const most = Math.max(
			0.01,
			...waves.flatMap(({ rows }) => shown.map((x) => Math.max(rows[x].high, rows[x].frequency))),
		)
		charts.replaceChildren(
			...shown.map((x) => {
				const name = nameOf(last.rows[x].value, domain),
					picture = h("div", { class: "chart" })
				requestAnimationFrame(() =>
					chart(picture, (width) =>
						trendChart(
							waves.map(({ wave, rows }) => ({ wave, row: rows[x] })),
							count,
							most,
							name,
							width,
						),
					),
				)
				return h("figure", {}, h("figcaption", {}, name), picture)
			}),
		)
		const change = all.at(-1)
		changes.replaceChildren(...(change ? [changeTable(change, level)] : []))
	}
	/** @param {{ first: number, second: number, rows: any[] }} change @param {string} level */
	function changeTable({ first, second, rows }, level) {
		const text = (/** @type {number | null} */ value) =>
			h("td", { class: "number" }, value === null ? "–" : percent(value))
		return h(
			"table",
			{},
			h(
				"caption",
				{},
				`${t("Change from wave {first} to wave {second}, with {level} limits.", { first: first + 1, second: second + 1, level: percent(Number(level), 0) })} ${LIMITS}`,
			),
			h(
				"thead",
				{},
				h(
					"tr",
					{},
					...[t("value"), t("Change"), t("low"), t("high")].map((name, i) =>
						h("th", { scope: "col", ...(i && { class: "number" }) }, name),
					),
				),
			),
			h(
				"tbody",
				{},
				...rows
					.slice(0, MOST_ROWS)
					.map((row) =>
						h(
							"tr",
							{},
							h("th", { scope: "row" }, nameOf(row.value, domain)),
							text(row.change),
							text(row.low),
							text(row.high),
						),
					),
			),
		)
	}
	return { section, show }
}
