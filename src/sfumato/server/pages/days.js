// Answers per day, for owners: other readers do not see on which day answers arrived.
import { adminToken, ask } from "./api.js"
import { chart } from "./charts.js"
import { csv, download, h, s, whole } from "./dom.js"
import { t } from "./owners.js"
import { answers } from "./result-table.js"
import { today } from "./result-options.js"
/** @typedef {{ day: string, reports: number, alarm: boolean }} Day */

/** Maximum days of the chart: the latest ones. */
const MOST_DAYS = 120
const DAY = 86400000

/** Returns all days from the first to the last one, also those without answers. @param {Day[]} days */
export function everyDay(days) {
	const known = new Map(days.map((day) => [day.day, day])),
		ends = days.map(({ day }) => Date.parse(day))
	/** @type {Day[]} */
	const all = []
	for (
		let time = Math.max(Math.min(...ends), Math.max(...ends) - (MOST_DAYS - 1) * DAY);
		time <= Math.max(...ends);
		time += DAY
	) {
		const day = new Date(time).toISOString().slice(0, 10)
		all.push(known.get(day) ?? { day, reports: 0, alarm: false })
	}
	return all
}

/** Draws one bar per day. @param {Day[]} days @param {number} width */
function dayChart(days, width) {
	const height = 170,
		left = 48,
		bottom = 30,
		top = 14,
		most = Math.max(...days.map(({ reports }) => reports)),
		each = (width - left - 8) / days.length
	const y = (/** @type {number} */ n) => top + (1 - n / most) * (height - top - bottom),
		every = Math.ceil(days.length / Math.max(1, Math.floor((width - left) / 90)))
	const label = (
		/** @type {number} */ x,
		/** @type {number} */ at,
		/** @type {string} */ content,
		/** @type {string} */ anchor,
	) => s("text", { x, y: at, "text-anchor": anchor, class: "quiet" }, content)
	return s(
		"svg",
		{
			width,
			height,
			viewBox: `0 0 ${width} ${height}`,
			role: "img",
			"aria-label": t("Answers per day from {first} to {last}, at most {most}; the table has the same numbers", {
				first: days[0].day,
				last: days[days.length - 1].day,
				most: whole(most),
			}),
		},
		label(left - 8, y(most) + 4, whole(most), "end"),
		label(left - 8, y(0) + 4, "0", "end"),
		s("path", { d: `M${left} ${y(0)}H${width - 8}`, class: "axis" }),
		...days.map(({ day, reports }, i) =>
			s(
				"rect",
				{
					x: left + i * each + Math.min(2, each * 0.1),
					y: y(reports),
					width: Math.max(1, Math.min(48, each - Math.min(4, each * 0.2))),
					height: y(0) - y(reports),
					class: "day",
				},
				s("title", {}, `${day}: ${answers(reports)}`),
			),
		),
		...days.flatMap(({ day }, i) => (i % every ? [] : [label(left + i * each, height - 10, day, "start")])),
	)
}

/**
 * Creates the card of the answers per day of all groups. It stays hidden unless the token is that of an owner and a
 * collection stores days.
 * @param {any[]} collections
 * @param {string} tag
 */
export function daysCard(collections, tag) {
	const pictures = h("div", {}),
		table = h("div", { class: "wide" }),
		about = h("p", { class: "quiet" })
	/** @type {{ id: string, title: string, reports: number, days: Day[] }[]} */
	let latest = []
	const save = () =>
		download(
			"days.csv",
			csv([
				["collection", "title", "day", "answers", "date"],
				...latest.flatMap(({ id, title, days }) => days.map(({ day, reports }) => [id, title, day, reports, today()])),
			]),
		)
	const section = h(
		"section",
		{
			class: "card",
			id: `days${tag}`,
			"aria-label": t("Answers per day: {title}", { title: collections[0].title }),
			hidden: true,
		},
		h("h2", {}, t("Answers per day")),
		about,
		pictures,
		h("details", {}, h("summary", {}, t("Table of the days")), table),
		h("div", { class: "actions" }, h("button", { type: "button", onclick: save }, t("CSV of the days"))),
	)
	const show = async () => {
		if (!adminToken() || adminToken().startsWith("sfr_")) return
		const read = await Promise.all(
			collections.map(async ({ id, title }) => ({
				id,
				title,
				...(await ask(`/v1/collections/${id}/days`).catch(() => ({ reports: 0, days: [] }))),
			})),
		)
		latest = read.filter(({ days }) => days.length)
		section.hidden = !latest.length
		const many = collections.length > 1,
			missing = latest.reduce(
				(sum, { reports, days }) => sum + reports - days.reduce((all, day) => all + day.reports, 0),
				0,
			)
		about.textContent = `${t("Only owners see this, because the day of an answer may point to a person. Days are in UTC; the collector stores no times.")}${missing > 0 ? ` ${t("{count} answers of earlier days are no longer stored by day.", { count: missing })}` : ""}`
		pictures.replaceChildren(
			...latest.map(({ title, days }) => {
				const picture = h("div", { class: "chart" }),
					all = everyDay(days)
				requestAnimationFrame(() => chart(picture, (width) => dayChart(all, width)))
				return h("figure", {}, many && h("figcaption", {}, title), picture)
			}),
		)
		table.replaceChildren(
			...latest.map(({ title, days }) =>
				h(
					"table",
					{},
					many && h("caption", {}, title),
					h(
						"thead",
						{},
						h("tr", {}, h("th", { scope: "col" }, t("day")), h("th", { scope: "col", class: "number" }, t("answers"))),
					),
					h(
						"tbody",
						{},
						...days.map(({ day, reports }) =>
							h("tr", {}, h("th", { scope: "row" }, day), h("td", { class: "number" }, whole(reports))),
						),
					),
				),
			),
		)
	}
	return { section, show }
}
