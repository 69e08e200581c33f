// The share of each district of a map, with its interval.
import { ask } from "./api.js"
import { backgroundOf } from "./districts.js"
import { csv, download, h, percent } from "./dom.js"
import { t } from "./owners.js"

/** @typedef {{ answer: string, value: number, standard_error: number, low: number, high: number }} Total */

/**
 * Creates the card of the districts of a map, or null if the map has none.
 * @param {any} collection
 * @param {string} tag
 */
export function districtsCard(collection, tag) {
	if (!backgroundOf(collection)?.districts?.length) return null
	const table = h("div", {
			class: "wide",
			id: `districts${tag}`,
			tabindex: "0",
			role: "region",
			"aria-label": t("Table of districts"),
		}),
		actions = h("div", { class: "actions" })
	const section = h("section", { class: "card" }, h("h2", {}, t("Districts")), table, actions)
	let asked = ""
	/** Shows the shares of the districts after each change. @param {number} reports @param {string} level */
	const show = async (reports, level) => {
		const now = `${reports} ${level}`
		if (now === asked) return
		asked = now
		if (!reports) return table.replaceChildren(h("p", { class: "quiet" }, t("Nothing to show yet.")))
		/** @type {Total[]} */
		let rows
		try {
			rows = (await ask(`/v1/collections/${collection.id}/estimate?question=districts&level=${level}`)).answers
		} catch (error) {
			asked = ""
			return table.replaceChildren(h("p", { class: "quiet" }, error instanceof Error ? error.message : String(error)))
		}
		if (now !== asked) return
		const within = (/** @type {number} */ share) => percent(Math.min(1, Math.max(0, share)))
		table.replaceChildren(
			h(
				"table",
				{},
				h(
					"caption",
					{},
					t("The share of people in each district, with {level} intervals.", { level: percent(Number(level), 0) }),
				),
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						h("th", { scope: "col" }, t("District")),
						...[t("share"), t("s.e."), t("low"), t("high")].map((name) =>
							h("th", { class: "number", scope: "col" }, name),
						),
					),
				),
				h(
					"tbody",
					{},
					...rows.map((row) =>
						h(
							"tr",
							{},
							h("th", { scope: "row", dir: "auto" }, row.answer),
							h("td", { class: "number" }, within(row.value)),
							h("td", { class: "number" }, percent(row.standard_error)),
							h("td", { class: "number" }, within(row.low)),
							h("td", { class: "number" }, within(row.high)),
						),
					),
				),
			),
		)
		actions.replaceChildren(
			h(
				"button",
				{
					type: "button",
					onclick: () =>
						download(
							`districts-${collection.id}.csv`,
							csv([
								["district", "share", "standard_error", "low", "high"],
								...rows.map((row) => [row.answer, row.value, row.standard_error, row.low, row.high]),
							]),
						),
				},
				t("Districts as CSV"),
			),
		)
	}
	return { section, show }
}
