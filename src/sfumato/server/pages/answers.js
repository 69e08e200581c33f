// Answers to the question of a collection: a headline for one answer, a chart of the distribution function or of other
// shares, and a table.
import { chart, distributionChart, estimateChart, MOST_BARS, noChart } from "./charts.js"
import { h, percent } from "./dom.js"
import { t } from "./owners.js"

/** @typedef {{ answer: any, value: any, standard_error: number | null, low: any, high: any }} AnswerRow */
/** @typedef {{ title: string, question: any, answers: AnswerRow[], rounding: number,
 * clipped: number[] | null, marks?: boolean }} Answered */

/** Titles of the questions, by name. */
const TITLES = {
	mean: t("Mean"),
	distribution: t("Share of people up to each value"),
	ranges: t("Shares of ranges"),
	quantiles: t("Quantiles"),
	workload: t("Answers"),
	marginals: t("Shares of people"),
}
/** Questions whose answers are shares of people. */
const SHARES = ["distribution", "ranges", "marginals"]
/** Maximum rows of the table; the files contain all of them. */
const MOST_ROWS = 1000

/** Formats an answer or one of its limits. @param {any} value @param {any} question */
export function answerText(value, question) {
	if (typeof value !== "number") return value === null ? "–" : String(value)
	if (SHARES.includes(question.question)) return percent(value)
	return question.question === "quantiles" ? String(value) : String(Number(value.toPrecision(5))).replace(/^-/, "−")
}

/** Names an answer. @param {AnswerRow} row @param {any} question */
export function answerName({ answer }, question) {
	if (question.question === "distribution") return t("up to {value}", { value: answer })
	if (question.question === "marginals") return String(answer).replace(/=yes$/, "")
	return question.question === "quantiles" ? (answer === 0.5 ? t("median") : percent(answer, 0)) : String(answer)
}

/** Creates the card of the answers, and the function that shows the latest ones. */
export function answersCard(tag = "") {
	const headline = h("div", { id: `answer${tag}` }),
		picture = h("div", { class: "chart", id: `distribution${tag}` }),
		caption = h("p", { class: "small quiet" }),
		table = h("div", { class: "wide", id: `answer-table${tag}` })
	const heading = h("h2", {}),
		section = h(
			"section",
			{ class: "card", id: tag ? `asked${tag}` : "question" },
			heading,
			headline,
			picture,
			caption,
			table,
		)
	/** @param {Answered[]} groups @param {string} level */
	const show = (groups, level) => {
		// Of the options of a multiple choice, the share of "no" says nothing more than that of "yes".
		const asked = groups
			.filter(({ question }) => question)
			.map((group) =>
				group.marks
					? { ...group, answers: group.answers.filter(({ answer }) => String(answer).endsWith("=yes")) }
					: group,
			)
		if (!asked.length) return
		heading.textContent = TITLES[/** @type {keyof typeof TITLES} */ (asked[0].question.question)] ?? t("Answers")
		headline.replaceChildren(...asked.flatMap((group) => sentences(group, level, asked.length > 1)))
		const [{ question, answers }] = asked
		caption.textContent = ""
		if (question.question === "distribution" && answers.length)
			chart(picture, (width) => distributionChart(answers, width))
		else if (SHARES.includes(question.question) && asked.every((group) => group.answers.length)) {
			const names = answers.slice(0, MOST_BARS).map((row) => answerName(row, question)),
				bars = asked.map((group) => ({
					name: group.title,
					rows: group.answers.map((row) => ({ ...row, frequency: row.value })),
				}))
			chart(picture, (width) => estimateChart(bars, names, [...names.keys()], width))
			caption.textContent = t(
				"Lines are {level} confidence intervals. A hollow dot means that the interval contains 0.",
				{ level: percent(Number(level), 0) },
			)
		} else noChart(picture)
		table.replaceChildren(
			...asked.filter((group) => group.answers.length > 1).map((group) => answerTable(group, level, asked.length > 1)),
		)
	}
	return { section, show }
}

/**
 * States a single answer, or why there are none.
 * @param {Answered} group
 * @param {string} level
 * @param {boolean} many
 */
function sentences({ title, question, answers, rounding, clipped }, level, many) {
	const who = many ? `${title}: ` : ""
	const bounded =
		question.question === "mean" &&
		clipped &&
		h(
			"p",
			{ class: "small quiet" },
			t("This is the mean of numbers from {low} to {high}. A number outside counts as the nearer of the two.", {
				low: String(clipped[0]),
				high: String(clipped[1]),
			}),
		)
	const binned =
		rounding > 0 &&
		h(
			"p",
			{ class: "small quiet" },
			t("Numbers were divided into bins, which adds an error of at most {error}.", {
				error: Number(rounding.toPrecision(3)),
			}),
		)
	if (!answers.length) return [h("p", { class: "quiet" }, `${who}${t("No answer to show yet.")}`)]
	if (answers.length > 1) return [binned || ""]
	const [row] = answers,
		text = (/** @type {any} */ value) => answerText(value, question)
	return [
		h("p", {}, who, h("span", { class: "big" }, text(row.value))),
		h(
			"p",
			{ class: "quiet" },
			t("{name}; {level} interval: {low} to {high}", {
				name: answerName(row, question),
				level: percent(Number(level), 0),
				low: text(row.low),
				high: text(row.high),
			}),
		),
		bounded || "",
		binned || "",
	]
}

/** Shows the answers as a table. @param {Answered} group @param {string} level @param {boolean} many */
function answerTable({ title, question, answers }, level, many) {
	const text = (/** @type {any} */ value) => h("td", { class: "number" }, answerText(value, question))
	const body = answers
		.slice(0, MOST_ROWS)
		.map((row) =>
			h(
				"tr",
				{},
				h("th", { scope: "row" }, answerName(row, question)),
				text(row.value),
				text(row.standard_error),
				text(row.low),
				text(row.high),
			),
		)
	const heads = [t("estimate"), t("s.e."), t("low"), t("high")].map((name) =>
		h("th", { class: "number", scope: "col" }, name),
	)
	return h(
		"table",
		{},
		h(
			"caption",
			{},
			`${many ? `${title}. ` : ""}${t("{level} intervals, unbiased estimates.", { level: percent(Number(level), 0) })}`,
		),
		h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("answer")), ...heads)),
		h("tbody", {}, ...body),
	)
}
