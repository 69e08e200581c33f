// Differences between groups: the table of all differences with intervals that hold together, as the collector computes
// them.
import { answerName } from "./answers.js"
import { ask } from "./api.js"
import { nameOf } from "./domains.js"
import { csv, download, h, percent } from "./dom.js"
import { t } from "./owners.js"
import { AGAINST, chosen, optionField, today } from "./result-options.js"
/**
 * @typedef {{ group: number, minus: number | null, answer: any, difference: number, standard_error: number, low:
 * number, high: number, p_value: number, adjusted_p_value: number }} Difference
 */

/** Milliseconds between two comparisons, because one may take seconds. */
const PAUSE = 20000
/** Questions whose answers are shares. */
const SHARES = ["distribution", "ranges", "marginals"]

/**
 * Creates the card of the differences, and the function that shows the latest ones.
 * @param {any[]} collections
 * @param {string} tag
 */
export function differencesCard(collections, tag) {
	const [
			{
				id,
				question,
				policy: { domain },
			},
		] = collections,
		asked = question?.question !== "quantiles" && question
	const fault = h("p", { class: "quiet", hidden: true }),
		summary = h("p", { role: "status" }),
		table = h("div", {
			class: "wide",
			id: `differences${tag}`,
			tabindex: "0",
			role: "region",
			"aria-label": t("Table of differences"),
		})
	const save = h("button", { type: "button", disabled: true, onclick: () => saveCsv() }, t("CSV of the differences"))
	const section = h(
		"section",
		{ class: "card", "aria-label": t("Differences between groups") },
		h("h2", {}, t("Differences between groups")),
		h("div", { class: "row" }, optionField("against", AGAINST, t("Differences"), tag)),
		fault,
		summary,
		table,
		h(
			"details",
			{},
			h("summary", {}, t("What do these intervals mean?")),
			h(
				"p",
				{},
				t(
					"All intervals of this table together contain the true differences with the stated probability, so you may look for the largest ones. They are wider than those of single differences.",
				),
			),
			h(
				"p",
				{},
				t(
					"A difference is clear if its interval does not contain 0. The p-value is the probability of a difference at least this large if the groups were alike, adjusted for the number of differences by Holm's method. Both use unbiased estimates.",
				),
			),
		),
		h("div", { class: "actions" }, save),
	)
	/** @type {any} */
	let latest = null
	let shownKey = "",
		running = false,
		wanted = "",
		after = 0,
		timer = 0
	/** Names a group. @param {number | null} place */
	const groupName = (place) => (place === null ? t("all others") : `${place + 1}. ${collections[place].title}`)
	const valueName = (/** @type {Difference} */ row) =>
		latest.question ? answerName(/** @type {any} */ (row), latest.question) : nameOf(row.answer, domain)
	const text = (/** @type {number} */ value) =>
		!latest.question || SHARES.includes(latest.question.question)
			? percent(value)
			: String(Number(value.toPrecision(4))).replace(/^-/, "−")

	/**
	 * Requests the comparison if the groups have other answers than before, or the options changed.
	 * @param {number[]} reports
	 */
	function show(reports) {
		wanted = JSON.stringify([reports, chosen.against, chosen.level])
		if (wanted === shownKey || running || reports.some((n) => !n)) return draw()
		const changed =
				!shownKey || JSON.stringify(JSON.parse(shownKey).slice(1)) !== JSON.stringify([chosen.against, chosen.level]),
			wait = changed ? 0 : after - Date.now()
		clearTimeout(timer)
		timer = window.setTimeout(() => update(wanted, reports), Math.max(0, wait))
		draw()
	}

	/** @param {string} key @param {number[]} reports */
	async function update(key, reports) {
		running = true
		try {
			const others = collections
				.slice(1)
				.map((one) => one.id)
				.join(",")
			latest = await ask(
				`/v1/collections/${id}/comparison?with=${others}&against=${chosen.against}&level=${chosen.level}${question && !asked ? "&question=frequencies" : ""}`,
			)
			fault.hidden = true
		} catch (error) {
			latest = null
			fault.hidden = false
			fault.textContent = t("The differences cannot be shown: {reason}", {
				reason: error instanceof Error ? error.message : String(error),
			})
		}
		running = false
		shownKey = key
		after = Date.now() + PAUSE
		draw()
		if (wanted !== key) show(reports)
	}

	function draw() {
		save.disabled = !latest
		if (!latest) return (table.replaceChildren(), void (summary.textContent = ""))
		/** @type {Difference[]} */
		const rows = latest.rows,
			clear = rows.filter(({ low, high }) => low > 0 || high < 0),
			query = chosen.filter.trim().toLowerCase()
		const level = percent(latest.level, 0)
		summary.textContent = clear.length
			? t(
					"{count} of {all} differences are clear: with {level} confidence, all intervals together contain the true differences.",
					{ count: clear.length, all: rows.length, level },
				)
			: t("No difference is clear: with {level} confidence, every interval contains 0.", { level })
		const cells = rows
			.filter((row) => valueName(row).toLowerCase().includes(query))
			.map((row) =>
				h(
					"tr",
					{ class: row.low > 0 || row.high < 0 ? "" : "open-row" },
					h(
						"th",
						{ scope: "row" },
						valueName(row),
						h("span", { class: "verdict" }, `${groupName(row.group)} − ${groupName(row.minus)}`),
					),
					...[row.difference, row.low, row.high].map((value) => h("td", { class: "number" }, text(value))),
					h("td", { class: "number" }, row.adjusted_p_value < 0.001 ? "< 0.001" : row.adjusted_p_value.toFixed(3)),
					h("td", {}, row.low > 0 ? t("higher") : row.high < 0 ? t("lower") : t("not clear")),
				),
			)
		table.replaceChildren(
			h(
				"table",
				{},
				h(
					"caption",
					{},
					`${AGAINST[latest.against][0].toUpperCase()}${AGAINST[latest.against].slice(1)}; ${t("simultaneous {level} intervals, unbiased estimates.", { level })}`,
				),
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						h("th", { scope: "col" }, t("value and groups")),
						...[t("difference"), t("low"), t("high"), "p"].map((name) =>
							h("th", { class: "number", scope: "col" }, name),
						),
						h("th", { scope: "col" }, t("verdict")),
					),
				),
				h("tbody", {}, ...cells),
			),
		)
	}

	function saveCsv() {
		const columns = ["difference", "standard_error", "low", "high", "p_value", "adjusted_p_value"]
		download(
			"differences.csv",
			csv([
				["group", "reports", "minus", "minus_reports", "value", ...columns, "method", "level", "date"],
				...latest.rows.map((/** @type {any} */ row) => [
					collections[row.group].title,
					latest.reports[row.group],
					row.minus === null ? "all others" : collections[row.minus].title,
					row.minus === null
						? latest.reports.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b) -
							latest.reports[row.group]
						: latest.reports[row.minus],
					valueName(row),
					...columns.map((name) => row[name]),
					latest.method,
					latest.level,
					today(),
				]),
			]),
		)
	}

	return { section, show }
}
