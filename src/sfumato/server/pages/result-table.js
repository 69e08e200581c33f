// The order and the table of estimates, for one group or several groups.
import { MOST_BARS, rare, unsure } from "./charts.js"
import { h, percent, whole } from "./dom.js"
import { t } from "./owners.js"
/** @typedef {import("./charts.js").Row} Row */

/** Maximum rows of a table; the files contain all values. */
const MOST_ROWS = 1000

/** Shares are shown within 0 to 1; an unbiased estimate from few answers may lie outside. @param {number} share */
const within = (share) => Math.min(1, Math.max(0, share))

/**
 * Returns the indices of the values whose names contain the filter: sorted by share, by name or as in the survey.
 * Without a choice, many values are sorted by share.
 * @param {string[]} names
 * @param {Row[]} rows
 * @param {string} sort
 * @param {string} filter
 */
export function placesOf(names, rows, sort, filter) {
	const query = filter.trim().toLowerCase(),
		places = [...names.keys()].filter((x) => names[x].toLowerCase().includes(query))
	if (sort === "label") return places.sort((x, y) => names[x].localeCompare(names[y], undefined, { numeric: true }))
	return sort === "share" || (sort !== "list" && names.length > MOST_BARS)
		? places.sort((x, y) => rows[y].frequency - rows[x].frequency)
		: places
}

/**
 * Creates the table of one group, or of several groups next to each other.
 * @param {{ title: string, reports: number, rows: Row[] }[]} groups
 * @param {string[]} names
 * @param {number[]} places
 * @param {string} about
 */
export function resultTable(groups, names, places, about) {
	const many = groups.length > 1,
		count = names.length
	const rest =
		places.length > MOST_ROWS
			? ` ${t("The first {number} of {all} values; the files contain all of them.", { number: whole(MOST_ROWS), all: places.length })}`
			: ""
	const shown =
		places.length < count
			? ` ${t("{number} of {all} values match.", { number: whole(places.length), all: count })}`
			: ""
	const heads = many
		? groups.map(({ title, reports }, i) =>
				h(
					"th",
					{ class: "number group", scope: "col" },
					`${i + 1}. ${title}`,
					h("span", { class: "verdict" }, answers(reports)),
				),
			)
		: [t("share"), t("s.e."), t("low"), t("high")].map((name) => h("th", { class: "number", scope: "col" }, name))
	const all = groups.every(({ rows }) => rows.every(unsure))
	const body = places.slice(0, MOST_ROWS).map((x) => {
		const each = groups.map(({ rows }) => rows[x])
		return h(
			"tr",
			{ class: each.every(unsure) ? "open-row" : "" },
			h(
				"th",
				{ scope: "row", dir: "auto" },
				names[x],
				!many &&
					h(
						"span",
						{ class: "verdict" },
						rare(each[0])
							? t("at most {bound}", { bound: percent(each[0].high) })
							: !all && unsure(each[0])
								? t("not enough answers yet")
								: "",
					),
			),
			...(many
				? each.map(groupCell)
				: [within(each[0].frequency), each[0].standard_error, each[0].low, each[0].high].map((v) =>
						h("td", { class: "number" }, percent(v)),
					)),
		)
	})
	return h(
		"table",
		{},
		h("caption", {}, `${about}.${shown}${rest}`),
		h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("value")), ...heads)),
		h("tbody", {}, ...body),
	)
}

/**
 * Creates the cell of a value in a group: its share, or its upper limit if it is rare, and its interval.
 * @param {Row} row
 */
const groupCell = (row) =>
	h(
		"td",
		{ class: "number" },
		rare(row) ? t("at most {bound}", { bound: percent(row.high) }) : percent(within(row.frequency)),
		h("span", { class: "verdict" }, t("{low} to {high}", { low: percent(row.low), high: percent(row.high) })),
	)

/** @param {number} reports */
export const answers = (reports) => t("{count} answers", { count: reports })
