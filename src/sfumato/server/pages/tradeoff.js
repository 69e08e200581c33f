// The trade-off in Studio: error against the level next to error against the number of people, the error of each share,
// simulated
// results, and what participants will see. All numbers come from the planner.
import { chart, errorChart, estimateChart, frame, heatMap, label, noChart, path, stepFor } from "./charts.js"
import { gridOf, nameOf } from "./domains.js"
import { h, percent, s } from "./dom.js"
import { t as participantMessage } from "./messages.js"
import { number, pieces, t } from "./owners.js"
import { term } from "./terms.js"
import { disclosureSentences, exposure, guessInWords, partOdds } from "./words.js"

/** @typedef {{ epsilon: string, standard_error: number | null, alike: number | null }} Level */
/**
 * @typedef {{ value: any, expected: number, expected_error: number, frequency: number, standard_error: number, low:
 * number, high: number }} Share
 */

/** Levels at which the planner predicts the error. */
export const LEVELS = ["0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "2.5", "3", "4", "5", "6"]
/** Maximum shares that are listed and drawn. */
const MOST_SHOWN = 12

/**
 * Draws the ± of a share against the level; dashed, that of hiding everything alike.
 * @param {{ level: number, half: number, alike: number | null }[]} points
 * @param {{ level: number, half: number }} now
 * @param {number} width
 */
function levelChart(points, now, width) {
	const height = Math.min(300, Math.max(220, width * 0.6)),
		left = 52,
		bottom = 44,
		top = 16,
		right = 18
	const most = Math.min(1, now.half * 3),
		last = Math.max(6, now.level)
	const x = (/** @type {number} */ v) => left + (v / last) * (width - left - right),
		y = (/** @type {number} */ v) => top + (1 - Math.min(v, most) / most) * (height - top - bottom)
	const step = stepFor(most, 4),
		marks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step)
	const line = (/** @type {number[][]} */ all) => all.filter(([, v]) => v <= most).map(([e, v]) => [x(e), y(v)])
	const own = line(points.map((one) => [one.level, one.half])),
		other = line(points.flatMap((one) => (one.alike === null ? [] : [[one.level, one.alike]])))
	const isLeft = now.level < last * 0.12
	return frame(
		width,
		height,
		t("Predicted ± against the level: {bound} at ε = {level}", { bound: percent(now.half), level: now.level }),
		...marks.flatMap((v) => [
			s("path", {
				d: path([
					[left, y(v)],
					[width - right, y(v)],
				]),
				class: v ? "rule" : "axis",
			}),
			label(left - 8, y(v) + 4, percent(v, step < 0.01 ? 1 : 0), { "text-anchor": "end", class: "quiet" }),
		]),
		...[0, 1, 2, 3, 4, 5, 6].map((v) =>
			label(x(v), height - bottom + 20, String(v), { "text-anchor": "middle", class: "quiet" }),
		),
		label((left + width - right) / 2, height - 4, t("level ε"), { "text-anchor": "middle" }),
		other.length > 1 && s("path", { d: path(other), class: "other" }),
		own.length > 1 && s("path", { d: path(own), class: "line" }),
		s("path", {
			d: path([
				[x(now.level), y(0)],
				[x(now.level), y(now.half)],
			]),
			class: "rule",
		}),
		s("circle", { cx: x(now.level), cy: y(now.half), r: 5, class: "dot" }),
		label(x(now.level) + (isLeft ? 10 : -8), y(now.half) + (isLeft ? -6 : 19), percent(now.half), {
			"text-anchor": isLeft ? "start" : "end",
		}),
	)
}

/**
 * Returns the lowest of the levels whose ± is at most the target.
 * @param {{ level: number, half: number }[]} points
 * @param {number} target
 */
const levelFor = (points, target) => points.find(({ half }) => half <= target)?.level

/**
 * Creates the parts of the trade-off.
 * @param {{ expect: () => string, own: () => string, chooseExpected: (name: string) => void,
 * stateOwn: (shares: string) => void, redraw: () => void }} actions
 */
export function tradeoff(actions) {
	const byPeople = h("div", { class: "chart", id: "curve" }),
		byLevel = h("div", { class: "chart", id: "level-curve" })
	const peopleCaption = h("p", { class: "small quiet" }),
		levelCaption = h("p", { class: "small quiet" })
	const comparison = h("p", { id: "alike" }),
		levelGoal = h("p", { id: "level-goal", "aria-live": "polite" })
	const charts = h(
		"div",
		{ class: "side-by-side" },
		h("figure", { class: "chart" }, byLevel, h("figcaption", {}, levelCaption)),
		h("figure", { class: "chart" }, byPeople, h("figcaption", {}, peopleCaption)),
	)
	const shares = h("ul", { id: "shares" }),
		picture = h("div", { class: "chart", id: "simulated" }),
		note = h("p", { class: "promise", id: "simulated-note" })
	const participants = h("div", { id: "participants" })

	/**
	 * Shows the curves.
	 * @param {{ n: number, half: number, alike: number | null, level: number, levels: Level[], z: number, target: number,
	 * mean: boolean }} known
	 */
	function showCurves({ n, half, alike, level, levels, z, target, mean }) {
		const others = levels.flatMap(({ epsilon, standard_error: error, alike: other }) =>
			error === null || Number(epsilon) === level
				? []
				: [{ level: Number(epsilon), half: z * error, alike: other === null ? null : z * other }],
		)
		// Without a finite level, a reply is the answer: the level is not on the axis.
		const isFinite = Number.isFinite(level),
			points = [...others, ...(isFinite ? [{ level, half, alike }] : [])].sort((a, b) => a.level - b.level)
		const better = alike !== null && alike > half * 1.001
		chart(byPeople, (width) => errorChart({ n, tv: half, classical: better ? alike : null }, width))
		if (isFinite)
			chart(byLevel, (width) =>
				levelChart(better ? points : points.map((one) => ({ ...one, alike: null })), { level, half }, width),
			)
		else noChart(byLevel)
		const dashed = better ? ` ${t("Dashed: every value hidden alike.")}` : "",
			what = mean ? t("± of the mean, in % of the range") : t("± of a share")
		peopleCaption.replaceChildren(
			...pieces(
				t("{term} against the number of people, at ε = {level}.", {
					level: isFinite ? Number(level.toPrecision(3)) : "∞",
				}),
				{ term: term("interval", what) },
			),
			dashed,
		)
		levelCaption.replaceChildren(
			...(isFinite
				? [
						...pieces(
							t("{what} against the {term}, with {count} people. A lower level hides more.", { what, count: n }),
							{ term: term("level", t("level")) },
						),
						dashed,
					]
				: []),
		)
		comparison.replaceChildren(
			...(better && alike !== null
				? pieces(
						t("{term} would give ± {alike} instead of ± {bound}, or need {number} times as many people.", {
							alike: percent(alike),
							bound: percent(half),
							number: number(Number(((alike / half) ** 2).toPrecision(2))),
						}),
						{ term: term("alike", t("Hiding everything alike")) },
					)
				: []),
		)
		const enough = levelFor(points, target)
		levelGoal.textContent = !(target > 0)
			? ""
			: enough === undefined
				? t("With {count} people, no level up to 6 gives ± {bound}.", { count: n, bound: percent(target) })
				: t("With {count} people, the level ε = {level} gives ± {bound} or less.", {
						count: n,
						level: Number(enough.toPrecision(3)),
						bound: percent(target),
					})
	}

	/**
	 * Shows the expected shares and the simulated results.
	 * @param {{ quantile: number, rows: Share[] } | null} preview
	 * @param {any} domain
	 * @param {string} asked "marks", a question about numbers, or ""
	 */
	function showPreview(preview, domain, asked) {
		const marks = asked === "marks"
		shares.replaceChildren()
		if (!preview) {
			note.textContent = t("This rule has no simulated results.")
			return noChart(picture)
		}
		const { quantile: z } = preview,
			rows = marks ? preview.rows.filter(({ value }) => String(value).endsWith("=yes")) : preview.rows
		note.replaceChildren(
			term("simulated", t("Simulated results.")),
			" ",
			t("There are no answers yet. These results are drawn at random for the shares that you expect."),
		)
		if (asked === "mean") {
			const amount = (/** @type {number} */ value) =>
					number(Number(value.toPrecision(3)), { maximumFractionDigits: 6 }),
				[{ expected, expected_error: error, frequency, low, high }] = rows
			shares.replaceChildren(h("li", {}, `${t("mean:")} ${amount(expected)} ± `, h("strong", {}, amount(z * error))))
			note.append(
				` ${t("The simulated mean is {mean}, and its interval {low} to {high}.", { mean: amount(frequency), low: amount(low), high: amount(high) })}`,
			)
			return noChart(picture)
		}
		const names = rows.map(({ value }) =>
			marks
				? String(value).replace(/=yes$/, "")
				: asked === "distribution"
					? t("up to {value}", { value: nameOf(value, domain) })
					: nameOf(value, domain),
		)
		const places = [...rows.keys()]
			.sort((a, b) => (asked === "distribution" ? 0 : rows[b].expected - rows[a].expected) || a - b)
			.slice(0, MOST_SHOWN)
		shares.replaceChildren(
			...places.map((i) =>
				h(
					"li",
					{},
					h("bdi", {}, names[i]),
					`: ${percent(rows[i].expected)} ± `,
					h("strong", {}, percent(z * rows[i].expected_error)),
					z * rows[i].expected_error > rows[i].expected &&
						h("span", { class: "quiet" }, ` ${t("(too few people to tell it from 0)")}`),
				),
			),
			...(rows.length > MOST_SHOWN
				? [h("li", { class: "quiet" }, t("and {count} more values", { count: rows.length - MOST_SHOWN }))]
				: []),
		)
		const grid = asked ? null : gridOf(domain),
			most = Math.max(0.01, ...rows.map(({ frequency }) => Math.min(1, frequency)))
		if (grid) chart(picture, (width) => heatMap(rows, grid, names, width, most))
		else chart(picture, (width) => estimateChart([{ name: "", rows }], names, places, width))
	}

	/**
	 * Shows the survey page as participants will see it, without its controls.
	 * @param {{ title: string, description: string, names: string[], checked: any, before: number, guess: number, chance:
	 * number, part: { guess: number, chance: number } | null }} known
	 */
	function showParticipants({ title, description, names, checked, before, guess, chance, part }) {
		const [start, bound, rest] = guessInWords({ guess, chance }),
			exposed = exposure({ guess, chance })
		participants.replaceChildren(
			h(
				"div",
				{ class: "page-preview" },
				h("p", { class: "title", dir: "auto" }, title || t("Your question")),
				description && h("p", { class: "lead", dir: "auto" }, description),
				h(
					"ul",
					{ class: "plain-list" },
					...names.slice(0, 6).map((name) => h("li", { dir: "auto" }, name)),
					names.length > 6 && h("li", { class: "quiet" }, t("and {count} more values", { count: names.length - 6 })),
				),
				h(
					"div",
					{ class: "promise" },
					h("p", {}, participantMessage(`exposed${exposed && `-${exposed}`}`)),
					h("p", {}, start, h("strong", {}, bound), rest),
					partOdds(part),
					h(
						"ul",
						{},
						...disclosureSentences({ ...checked, before }).map(([a, b, c]) =>
							h("li", {}, a, b && h("strong", {}, b), c),
						),
					),
				),
			),
		)
	}

	/** Removes everything that depends on a plan. */
	function clear() {
		for (const place of [byPeople, byLevel, picture]) noChart(place)
		for (const place of [peopleCaption, levelCaption, comparison, levelGoal, shares, note, participants])
			place.replaceChildren()
	}

	/** Creates the choice of the expected shares. */
	const expecting = () =>
		h(
			"div",
			{ class: "row" },
			h(
				"div",
				{ class: "field" },
				h("label", { for: "expected" }, t("Which shares do you expect?")),
				h(
					"select",
					{ id: "expected", onchange: (/** @type {any} */ event) => actions.chooseExpected(event.target.value) },
					...[
						["zipf", t("the first values are the most frequent")],
						["uniform", t("all values are equally frequent")],
						["own", t("these:")],
					].map(([name, words]) => h("option", { value: name, selected: actions.expect() === name }, words)),
				),
			),
			actions.expect() === "own" &&
				h(
					"div",
					{ class: "field" },
					h(
						"label",
						{ for: "own-shares" },
						t("Shares in %, separated by spaces"),
						h(
							"span",
							{ class: "hint" },
							t("In the order of the values. The values that you leave out share the rest."),
						),
					),
					h("input", {
						type: "text",
						id: "own-shares",
						inputmode: "decimal",
						value: actions.own(),
						oninput: (/** @type {any} */ event) => actions.stateOwn(event.target.value),
					}),
				),
		)
	const outlook = () => [
		expecting(),
		h(
			"div",
			{ class: "side-by-side" },
			h("div", {}, h("p", {}, t("What you will report, with 95% intervals:")), shares),
			h(
				"div",
				{},
				note,
				picture,
				h(
					"div",
					{ class: "actions" },
					h(
						"button",
						{ type: "button", class: "plain", id: "draw-again", onclick: actions.redraw },
						t("Simulate again"),
					),
				),
			),
		),
	]
	return { charts, comparison, levelGoal, outlook, participants, showCurves, showPreview, showParticipants, clear }
}

/**
 * Returns the expected distribution for a request: a name, or the stated shares, completed and scaled to 1.
 * @param {string} expect
 * @param {string} own
 * @param {any[]} labels
 * @param {number} options number of options of a multiple choice, whose shares are independent; else 0
 */
export function expectedShares(expect, own, labels, options) {
	if (expect !== "own") return options ? "uniform" : expect
	const stated = own
		.split(/[\s;%]+/)
		.filter(Boolean)
		.map((one) => Math.min(100, Math.max(0, Number(one.replace(",", ".")))))
		.map((one) => (Number.isFinite(one) ? one / 100 : 0))
	if (options)
		return labels.map((label) =>
			label.reduce(
				(/** @type {number} */ all, /** @type {string} */ mark, /** @type {number} */ i) =>
					all * (mark === "yes" ? (stated[i] ?? 0.5) : 1 - (stated[i] ?? 0.5)),
				1,
			),
		)
	const sum = stated.slice(0, labels.length).reduce((a, b) => a + b, 0),
		rest = Math.max(0, labels.length - stated.length)
	const all = labels.map((_, i) => stated[i] ?? Math.max(0, 1 - sum) / rest),
		total = all.reduce((a, b) => a + b, 0)
	return total > 0 ? all.map((one) => one / total) : "uniform"
}
