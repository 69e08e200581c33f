// Studio: describe the values, choose which must stay hidden, see the expected error from the collector's planner, open
// a collection.
import { adminToken, ApiError, ask, keepAdminToken } from "./api.js"
import { chart, noChart, regionChart, stepFor } from "./charts.js"
import { gridOf, labelsOf, nameOf } from "./domains.js"
import { at, csv, download, h, percent, whole } from "./dom.js"
import { painter } from "./painter.js"
import { shareLink, sheetButton } from "./share.js"
import { number, quoted } from "./messages.js"
import { moment, pieces, t } from "./owners.js"
import { frameFields, placeFields, statedPresentation } from "./studio-structure.js"
import { backgroundFields, statedBackground, studioLayer } from "./studio-map.js"
import { isNumber, learnOf, newNumbers, numericDomain, numericInputs, spanOf } from "./studio-numbers.js"
import { term } from "./terms.js"
import { expectedShares, LEVELS, tradeoff } from "./tradeoff.js"
import { atMost, disclosureSentences, exposure, guessInWords } from "./words.js"

/** @typedef {{ name: string, values: string }} Part */
/**
 * @typedef {{ title: string, description: string, kind: "list" | "marks" | "scale" | "number" | "grid" | "product",
 * values: string, rows: number, columns: number,
 *   latitude: number[], longitude: number[], parts: Part[], keep: "uniform" | "high-low" | "blocks" | "secret",
 *   sensitive: Record<string, number>,
 *   block: Record<string, number>, shares?: string, blocks: number, brush: number, secret: number, epsilon: string,
 *   across: string, heading?: string, section?: string, required?: boolean,
 *   low: number, high: number, from: number, to: number, bins: number, learn: string, lowLabel: string, highLabel:
 *   string, drawing?: import("./studio-map.js").Drawing }} Question
 */

const DRAFT = "sfumato-studio-draft"
/** Maximum one-time links per survey. */
const MOST_LINKS = 10000
/** Maximum values that can be marked by hand. */
const MOST_PAINTED = 2500
/** Maximum options of a multiple choice; each doubles the number of values. */
const MOST_OPTIONS = 10
/** The question of a multiple choice: the share of each option. */
const SHARES_OF_OPTIONS = "marginals:1"
/** Number of group colours in the style sheet. */
const PARTS = 8
const TOO_FEW = t("Enter how many people will answer: at least 1.")

/** @returns {Question} */
const newQuestion = () => ({
	title: "",
	description: "",
	kind: "list",
	values: "",
	rows: 6,
	columns: 8,
	latitude: [0, 1],
	longitude: [0, 1],
	parts: [
		{ name: "answer", values: "yes\nno" },
		{ name: "age", values: "under 40\n40 or over" },
	],
	keep: "uniform",
	sensitive: {},
	block: {},
	blocks: 2,
	brush: 1,
	secret: 0,
	epsilon: "1",
	across: "",
	...newNumbers(),
})

/** Who answers and who reads until the author decides; the same as by `POST /v1/collections`, for every rule. */
const ACCESS = { submission: "token", results: "admin", listed: false }
const draft = localStorage.getItem(DRAFT)
const survey = {
	shared: true,
	total: 20,
	again: "once",
	days: 7,
	waves: 10,
	factor: "2",
	changes: "",
	opens: "",
	closes: "",
	keep: "",
	consent: "",
	ending: "",
	...(draft
		? JSON.parse(draft)
		: {
				questions: [newQuestion()],
				now: 0,
				people: 1000,
				before: 0.1,
				links: 100,
			}),
}
// Drafts of earlier versions lack some properties.
if (!(survey.submission && survey.results)) Object.assign(survey, ACCESS)
survey.questions = survey.questions.map((/** @type {Question} */ one) => ({ ...newQuestion(), ...one }))
const question = () => /** @type {Question} */ (survey.questions[survey.now])
const save = () => {
	try {
		localStorage.setItem(DRAFT, JSON.stringify(survey))
	} catch {
		// The draft is larger than the storage of the browser, or the browser blocks it: it then lasts as long as the tab.
	}
}

/**
 * The ± that is needed, in percent: the author's choice, or twice that of a survey without privacy, rounded up, until
 * the author chooses.
 */
const accuracy = {
	get target() {
		return survey.target ?? Math.min(50, Math.max(0.1, stepFor(196 / Math.sqrt(Math.max(1, survey.people || 1)), 1)))
	},
	set target(value) {
		survey.target = value
	},
}

// -- from the form to a policy
// -----------------------------------------------------------------------------------------

/** Returns the lines of a text field that are not empty. @param {string} content */
const lines = (content) =>
	content
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean)

/** The reason why a question is not complete yet. */
class Unfinished extends Error {}

/** Returns the values of a text field, which must be distinct. @param {string} content @param {string} name */
function distinct(content, name) {
	const values = lines(content),
		twice = values.find((line, i) => values.indexOf(line) < i)
	if (twice) throw new Unfinished(t("{name} contains “{value}” twice. Remove one of them.", { name, value: twice }))
	if (values.length < 2) throw new Unfinished(t("{name} needs at least two values, one on each line.", { name }))
	return values
}

/** Returns the document of the domain. @param {Question} current */
function domainOf(current) {
	const { kind, values, rows, columns, latitude, longitude, parts } = current
	if (isNumber(current)) return numericDomain(current)
	if (kind === "list") return { values: distinct(values, t("The list")) }
	if (kind === "marks") {
		const order = distinct(values, t("The list of options"))
		if (order.length > MOST_OPTIONS)
			throw new Unfinished(
				t("There are {number} options; a multiple choice has at most {most}.", {
					number: order.length,
					most: MOST_OPTIONS,
				}),
			)
		return { product: Object.fromEntries(order.map((option) => [option, ["no", "yes"]])), order }
	}
	if (kind === "grid") {
		if (!(rows >= 1 && columns >= 1 && rows * columns >= 2 && rows * columns <= 5000))
			throw new Unfinished(t("A map must have 2 to 5,000 cells."))
		if (!(latitude[0] < latitude[1] && longitude[0] < longitude[1]))
			throw new Unfinished(t("South must be less than north, and west less than east."))
		return { grid: { latitude, longitude, rows, columns } }
	}
	const names = parts.map(({ name }) => name.trim())
	if (names.some((name, i) => !name || names.indexOf(name) < i))
		throw new Unfinished(t("Every part needs a name that no other part has."))
	return {
		product: Object.fromEntries(parts.map((part, i) => [names[i], distinct(part.values, quoted(names[i]))])),
		order: names,
	}
}

/**
 * Returns the mark of a value. Marks are stored by value, so that they survive changes of the list.
 * @param {Question} current
 * @param {any} value
 */
const markOf = (current, value) =>
	current.keep === "high-low"
		? (current.sensitive[JSON.stringify(value)] ?? 0)
		: Math.min(current.block[JSON.stringify(value)] ?? 0, current.blocks - 1)

/**
 * Returns the field of a request that states what is to be learned, if it is not the share of every value.
 * @param {Question} current
 */
const questionOf = (current) =>
	current.kind === "marks" ? { question: SHARES_OF_OPTIONS } : learnOf(current) ? { question: learnOf(current) } : {}

/** Whether the questions share one budget. */
const isShared = () => survey.shared && survey.questions.length > 1

/** Returns a number of tenths, divided into equal parts, as an exact decimal or fraction. @param {number} tenths */
function share(tenths, parts = 1) {
	let [a, b] = [tenths, 10 * parts]
	while (b) [a, b] = [b, a % b]
	const [n, d] = [tenths / a, (10 * parts) / a]
	return d === 1 ? String(n) : 10 % d ? `${n}/${d}` : String(n / d)
}

/** Returns the level of a question: its part of the shared budget, or its separate level. @param {Question} current */
const levelOf = (current) => lifetimeLevel(current, 1)

/**
 * Returns a multiple of the level of a question, for all replies about an unchanged answer.
 * @param {Question} current
 * @param {number} factor
 */
function lifetimeLevel(current, factor) {
	if (isShared()) return share(survey.total * factor, survey.questions.length)
	return factor === 1 ? current.epsilon : share(Math.round(Number(current.epsilon) * 10) * factor)
}

/**
 * Returns the document of the policy; with a factor, of the lifetime policy, whose levels are multiples.
 * @param {Question} current
 * @param {number} [factor]
 */
function policyOf(current, factor = 1) {
	const domain = /** @type {any} */ (domainOf(current)),
		{ keep } = current,
		epsilon = lifetimeLevel(current, factor),
		values = labelsOf(domain)
	const across =
		current.across && factor > 1 ? String(Number((Number(current.across) * factor).toFixed(6))) : current.across
	if (values.length > 5000)
		throw new Unfinished(t("There are {count} values; the collector accepts at most 5,000.", { count: values.length }))
	if (keep === "uniform") return { domain, policy: { kind: keep, epsilon } }
	if (keep === "secret")
		return {
			domain,
			policy: {
				kind: keep,
				secret: domain.order[current.secret] ?? domain.order[0],
				epsilon,
				distributions: { anything: true },
			},
		}
	if (keep === "high-low") {
		const sensitive = values.filter((value) => markOf(current, value))
		if (!sensitive.length) throw new Unfinished(t("Mark at least one value as sensitive."))
		return { domain, policy: { kind: keep, sensitive, epsilon } }
	}
	const blocks = values.map((value) => markOf(current, value))
	return { domain, policy: { kind: keep, blocks, epsilon, ...(across && { across }) } }
}

// -- the form
// ----------------------------------------------------------------------------------------------------------

/**
 * Draws a part of the form again, and keeps the keyboard focus on the same control, or on a neighbour if the control is
 * gone.
 * @param {HTMLElement} place
 * @param {() => void} work
 */
function keepFocus(place, work) {
	const active = /** @type {HTMLElement | null} */ (document.activeElement),
		had = active && place.contains(active) && active !== place
	const controls = () =>
		/** @type {HTMLElement[]} */ (
			[...place.querySelectorAll("input, select, textarea, button")].filter(
				(one) => !one.closest("details:not([open])"),
			)
		)
	const keyOf = (/** @type {any} */ one) =>
		one.id ||
		(one.name ? `${one.name} ${one.value}` : `${one.tagName} ${one.getAttribute("data-cell") ?? one.textContent}`)
	const key = had ? keyOf(active) : "",
		index = had ? controls().indexOf(active) : -1
	work()
	if (!had || (place.contains(document.activeElement) && document.activeElement !== place)) return
	const all = controls(),
		same = all.find((one) => keyOf(one) === key) ?? all[Math.min(index, all.length - 1)]
	same?.focus()
}

/**
 * Creates a section of the form that can be redrawn separately.
 * @param {string} title
 * @param {() => (Node | false | null | "")[]} content
 */
function card(title, content) {
	const body = h("div", { class: "body" }),
		element = h("section", { class: "card", "aria-label": title }, h("h2", {}, title), body)
	const show = () => keepFocus(element, () => body.replaceChildren(...content().filter((one) => one instanceof Node)))
	return { element, show }
}

/**
 * Creates an input with its label.
 * @param {string} id
 * @param {string} label
 * @param {Node} input
 * @param {string} [hint]
 */
const field = (id, label, input, hint) =>
	h("div", { class: "field" }, h("label", { for: id }, label, hint && h("span", { class: "hint" }, hint)), input)

/**
 * Creates an input that is bound to a property.
 * @param {any} owner
 * @param {string} name
 * @param {import("./dom.js").Attributes} attributes
 * @param {() => void} [then]
 */
function input(owner, name, attributes, then = changed) {
	const number = attributes.type === "number"
	return h("input", {
		...attributes,
		value: owner[name],
		oninput: (/** @type {any} */ event) => {
			owner[name] = number ? Number(event.target.value) : event.target.value
			then()
		},
	})
}

/**
 * Creates a multi-line input that is bound to a property.
 * @param {any} owner
 * @param {string} name
 * @param {string} id
 * @param {number} rows
 * @param {() => void} then
 */
function lineInput(owner, name, id, rows, then) {
	return h("textarea", {
		id,
		rows,
		value: owner[name],
		oninput: (/** @type {any} */ event) => {
			owner[name] = event.target.value
			then()
		},
	})
}

/**
 * Creates radio buttons with large labels.
 * @param {any} owner
 * @param {string} name
 * @param {string} legend
 * @param {[string, string, string][]} entries
 * @param {() => void} then
 */
function oneOf(owner, name, legend, entries, then) {
	return h(
		"fieldset",
		{},
		h("legend", {}, legend),
		h(
			"div",
			{ class: "choices two" },
			...entries.map(([value, label, hint]) =>
				h(
					"label",
					{ class: "choice" },
					h("input", {
						type: "radio",
						name: `one-of-${name}`,
						value,
						checked: owner[name] === value,
						onchange: () => {
							owner[name] = value
							then()
						},
					}),
					h("span", {}, label, h("span", { class: "hint" }, hint)),
				),
			),
		),
	)
}

const questions = h("div", { class: "tabs", role: "group", "aria-label": t("Questions") })

function showQuestions() {
	const go = (/** @type {number} */ i) => {
		survey.now = i
		showAll()
	}
	const move = (/** @type {number} */ by) => {
		const [one] = survey.questions.splice(survey.now, 1)
		survey.questions.splice(survey.now + by, 0, one)
		go(survey.now + by)
	}
	keepFocus(questions, () =>
		questions.replaceChildren(
			...survey.questions.map((/** @type {Question} */ _, /** @type {number} */ i) =>
				h(
					"button",
					{ type: "button", "aria-current": String(i === survey.now), onclick: () => go(i) },
					t("Question {number}", { number: i + 1 }),
				),
			),
			h(
				"button",
				{
					type: "button",
					class: "plain",
					onclick: () => {
						survey.questions.push(newQuestion())
						go(survey.questions.length - 1)
						at("title").focus()
					},
				},
				t("Add a question"),
			),
			h(
				"button",
				{
					type: "button",
					class: "plain",
					onclick: () => {
						survey.questions.splice(
							survey.now + 1,
							0,
							structuredClone({ ...question(), title: t("{title} (copy)", { title: question().title }) }),
						)
						go(survey.now + 1)
					},
				},
				t("Duplicate"),
			),
			...(survey.questions.length > 1
				? [
						survey.now > 0 &&
							h("button", { type: "button", class: "plain", onclick: () => move(-1) }, t("Move earlier")),
						survey.now < survey.questions.length - 1 &&
							h("button", { type: "button", class: "plain", onclick: () => move(1) }, t("Move later")),
						h(
							"button",
							{
								type: "button",
								class: "plain",
								onclick: () => {
									survey.questions.splice(survey.now, 1)
									go(Math.max(0, survey.now - 1))
								},
							},
							t("Remove this question"),
						),
					].filter((one) => one instanceof Node)
				: []),
		),
	)
}

const asking = card(t("What do you ask?"), () => {
	const current = question()
	return [
		field(
			"title",
			t("Question"),
			input(current, "title", {
				type: "text",
				id: "title",
				maxlength: 200,
				placeholder: t("Which of these have you had this year?"),
			}),
		),
		field(
			"description",
			t("Explanation"),
			h("textarea", {
				id: "description",
				rows: 2,
				class: "short",
				value: current.description,
				oninput: (/** @type {any} */ event) => {
					current.description = event.target.value
					save()
				},
			}),
			t("Optional. Participants see it below the question."),
		),
		oneOf(
			current,
			"kind",
			t("What are the possible answers?"),
			[
				["list", t("One of a list"), t("such as diagnoses, parties or professions")],
				["marks", t("Any of a list"), t("multiple choice, such as “which of these have you had?”")],
				["scale", t("A scale"), t("such as 1 to 5, with words at both ends")],
				["number", t("A number"), t("such as an age or an income")],
				["grid", t("A place on a map"), t("cells in rows and columns")],
				["product", t("Several things at once"), t("such as a secret and an age group")],
			],
			() => {
				if ((current.kind !== "product" && current.keep === "secret") || current.kind === "marks")
					current.keep = "uniform"
				asking.show()
				keeping.show()
				changed()
			},
		),
		...valuesInputs(current),
		placeFields(current, field, save),
	]
})

/** Creates the inputs for the values of a question. @param {Question} current */
function valuesInputs(current) {
	const then = () => {
		keeping.show()
		changed()
	}
	if (current.kind === "marks")
		return [
			field(
				"values",
				t("Options"),
				lineInput(current, "values", "values", 5, then),
				t("One on each line, at most {most}. Participants mark all that apply.", { most: MOST_OPTIONS }),
			),
		]
	if (current.kind === "list")
		return [field("values", t("Values"), lineInput(current, "values", "values", 5, then), t("One on each line."))]
	if (isNumber(current)) return numericInputs(current, { field, input, oneOf, then, save, show: () => people.show() })
	if (current.kind === "grid") {
		const size = (/** @type {"rows" | "columns"} */ name, /** @type {string} */ label) =>
			field(name, label, input(current, name, { type: "number", id: name, min: 1, max: 500, step: 1 }, then))
		const edge = (/** @type {"latitude" | "longitude"} */ axis, /** @type {number} */ i, /** @type {string} */ label) =>
			field(
				`${axis}-${i}`,
				label,
				input(current[axis], String(i), { type: "number", id: `${axis}-${i}`, step: "any" }, then),
			)
		return [
			h("div", { class: "row" }, size("rows", t("Rows")), size("columns", t("Columns"))),
			h(
				"details",
				{},
				h("summary", {}, t("Coordinates of the map")),
				h(
					"p",
					{ class: "hint" },
					t("In degrees. The default, 0 to 1 in both directions, means a map without coordinates."),
				),
				h(
					"div",
					{ class: "row" },
					edge("latitude", 0, t("South (latitude)")),
					edge("latitude", 1, t("North")),
					edge("longitude", 0, t("West (longitude)")),
					edge("longitude", 1, t("East")),
				),
			),
			backgroundFields(current, { field, restructured }),
		]
	}
	return [
		h(
			"div",
			{ class: "side-by-side" },
			...current.parts.map((part, i) =>
				h(
					"div",
					{},
					field(
						`part-${i}`,
						t("Part {number}", { number: i + 1 }),
						input(part, "name", { type: "text", id: `part-${i}` }, then),
					),
					field(
						`part-values-${i}`,
						t("Its values"),
						lineInput(part, "values", `part-values-${i}`, 4, then),
						t("One on each line."),
					),
				),
			),
		),
		h(
			"div",
			{ class: "actions" },
			current.parts.length < 4 &&
				h(
					"button",
					{
						type: "button",
						class: "plain",
						onclick: () => restructured(() => current.parts.push({ name: "", values: "" })),
					},
					t("Add a part"),
				),
			current.parts.length > 2 &&
				h(
					"button",
					{ type: "button", class: "plain", onclick: () => restructured(() => current.parts.pop()) },
					t("Remove the last part"),
				),
		),
	]
}

/** Applies a change that affects several sections of the form. @param {() => void} change */
function restructured(change) {
	change()
	asking.show()
	keeping.show()
	changed()
}

const keeping = card(t("What must stay hidden?"), () => {
	const current = question()
	/** @type {[string, string, string][]} */
	const kinds = [
		[
			"uniform",
			t("Every value, alike"),
			current.kind === "marks"
				? t("all combinations of marks are equally hard to tell apart, within one level for all options")
				: t("all values are equally hard to tell apart"),
		],
	]
	if (current.kind !== "marks")
		kinds.push(
			[
				"high-low",
				t("Some values are sensitive"),
				t("the other values may be revealed, which makes the error smaller"),
			],
			["blocks", t("Which one of a group"), t("the group may be revealed, but not the value within it")],
		)
	if (current.kind === "product")
		kinds.push(["secret", t("One part is the secret"), t("it stays hidden even if the other parts are related to it")])
	return [
		oneOf(current, "keep", t("The rule"), kinds, () => {
			current.brush = current.keep === "blocks" ? 0 : 1
			keeping.show()
			changed()
		}),
		...marks(current),
	]
})

/**
 * Creates the inputs that mark values: as sensitive, by group, or as the secret part.
 * @param {Question} current
 * @returns {(Node | false | "")[]}
 */
function marks(current) {
	if (current.keep === "uniform") return []
	if (current.keep === "secret") {
		return [
			oneOf(
				{
					get secret() {
						return String(current.secret)
					},
					set secret(i) {
						current.secret = Number(i)
					},
				},
				"secret",
				t("Which part is the secret?"),
				current.parts.map(({ name }, i) => [String(i), name || t("Part {number}", { number: i + 1 }), ""]),
				changed,
			),
		]
	}
	/** @type {any} */
	let domain
	try {
		domain = domainOf(current)
	} catch (error) {
		return [h("p", { class: "quiet" }, error instanceof Error ? error.message : "")]
	}
	const values = labelsOf(domain),
		grid = gridOf(domain)
	if (values.length > MOST_PAINTED)
		return [
			h(
				"p",
				{ class: "quiet" },
				t(
					"There are {count} values, too many to mark by hand. Write a policy file and create the collection with the API.",
					{ count: values.length },
				),
			),
		]
	const blocks = current.keep === "blocks",
		brushes = blocks
			? Array.from({ length: current.blocks }, (_, i) => ({
					name: t("Group {number}", { number: i + 1 }),
					className: `part-${i % PARTS}`,
					mark: String(i + 1),
				}))
			: [
					{ name: t("may be revealed"), className: "", mark: "" },
					{ name: t("sensitive"), className: "kept", mark: grid ? "●" : "" },
				]
	const board = painter({
		names: values.map((value) => nameOf(value, domain)),
		order: grid ? grid.order : [...values.keys()],
		columns: grid ? grid.columns : 0,
		marks: values.map((value) => markOf(current, value)),
		brushes,
		brush: Math.min(current.brush, brushes.length - 1),
		background: current.kind === "grid" ? studioLayer(current) : null,
		about: blocks ? t("Values by group") : t("Values, sensitive or not"),
		onpaint: (x, brush) => {
			;(blocks ? current.block : current.sensitive)[JSON.stringify(values[x])] = brush
			changed()
		},
		onbrush: (brush) => {
			current.brush = brush
			save()
		},
	})
	const note =
		grid && !grid.map
			? ` ${t("Rows are {rows}; columns {columns}.", { rows: grid.rowNames.join(", "), columns: grid.columnNames.join(", ") })}`
			: grid
				? ` ${t("North is up; rows count from the south.")}`
				: ""
	return [
		h(
			"p",
			{ class: "hint" },
			`${t("Choose a brush, then click or drag over the values. With the keyboard, arrow keys move, space marks, and shift with arrow keys draws.")}${blocks ? ` ${t("Digits choose a group.")}` : ""}${note}`,
		),
		board,
		blocks &&
			h(
				"div",
				{ class: "actions" },
				h(
					"button",
					{ type: "button", class: "plain", onclick: () => restructured(() => (current.brush = current.blocks++)) },
					t("Add a group"),
				),
				current.blocks > 1 &&
					h(
						"button",
						{
							type: "button",
							class: "plain",
							onclick: () => restructured(() => (current.brush = --current.blocks - 1)),
						},
						t("Remove the last group"),
					),
			),
		blocks &&
			h(
				"label",
				{ class: "choice" },
				h("input", {
					type: "checkbox",
					id: "across",
					checked: !!current.across,
					onchange: (/** @type {any} */ event) =>
						restructured(() => (current.across = event.target.checked ? "2" : "")),
				}),
				h(
					"span",
					{},
					t("Hide the group too, less strongly"),
					h("span", { class: "hint" }, t("with a separate level between groups")),
				),
			),
		blocks &&
			current.across &&
			field(
				"across-level",
				t("Level between groups (ε)"),
				input(current, "across", { type: "text", inputmode: "decimal", id: "across-level" }),
			),
	]
}

const promised = h("div", { class: "promise", id: "promise", "aria-live": "polite" })
const warning = h("div", { id: "warning", role: "alert" })
const rule = h("p", { class: "small quiet" })
const region = h("div", { class: "chart", id: "region" })
const regionCaption = h("p", { class: "small quiet" })

const together = h("p", { class: "promise", id: "together", "aria-live": "polite" })

/** States what all replies reveal together, from a check of one rule with the sum of the levels. @param {string} sum */
async function showTogether(sum) {
	const checked = await ask("/v1/check", {
		policy: { domain: { size: 2 }, policy: { kind: "uniform", epsilon: sum } },
		before: survey.before,
	})
	together.replaceChildren(
		...pieces(
			t(
				"All {number} questions together have ε = {sum}: they can raise a stranger’s suspicion from {before} to at most {bound}. Participants see this before they answer.",
				{ number: survey.questions.length, sum, before: percent(survey.before, 0) },
			),
			{ bound: h("strong", {}, atMost(checked.suspicions[0].after)) },
		),
	)
}

/** Returns the sum of the levels of all questions, or "" if a level is not a plain decimal. */
function sumOfLevels() {
	if (isShared()) return share(survey.total)
	const levels = survey.questions.map((/** @type {Question} */ one) => Math.round(Number(one.epsilon) * 10))
	return levels.every(Number.isFinite)
		? share(levels.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0))
		: ""
}

const strength = card(t("How strongly?"), () => {
	const current = question(),
		shown = h("output", { for: "epsilon" }, current.epsilon)
	const level = h("input", {
		type: "range",
		id: "epsilon",
		min: 0.1,
		max: 6,
		step: 0.1,
		value: current.epsilon,
		oninput: () => {
			current.epsilon = String(Number(level.value))
			shown.textContent = current.epsilon
			changed()
		},
	})
	const before = h(
		"select",
		{
			id: "before",
			onchange: () => {
				survey.before = Number(before.value)
				changed()
			},
		},
		...[0.01, 0.1, 0.5].map((share) =>
			h("option", { value: share, selected: share === survey.before }, percent(share, 0)),
		),
	)
	const total = h("input", {
			type: "range",
			id: "total-level",
			min: 1,
			max: 120,
			step: 1,
			value: survey.total,
			oninput: () => {
				survey.total = Number(total.value)
				sum.textContent = share(survey.total)
				each.textContent = levelOf(current)
				changed()
			},
		}),
		sum = h("output", { for: "total-level" }, share(survey.total)),
		each = h("strong", { id: "part-level" }, levelOf(current))
	const several = survey.questions.length > 1,
		separate = !isShared()
	return [
		several &&
			oneOf(
				{
					get shared() {
						return String(survey.shared)
					},
					set shared(is) {
						survey.shared = is === "true"
					},
				},
				"shared",
				t("Levels of the questions"),
				[
					["true", t("One budget for all questions"), t("what all replies reveal together stays within it")],
					["false", t("A level for each question"), t("the levels add up")],
				],
				() => {
					strength.show()
					changed()
				},
			),
		h(
			"div",
			{ class: "side-by-side" },
			h(
				"div",
				{},
				!separate &&
					h(
						"div",
						{ class: "field" },
						h(
							"label",
							{ for: "total-level" },
							`${t("Level of all questions together, ε:")} `,
							sum,
							h(
								"span",
								{ class: "hint" },
								t("Each of the {number} questions gets an equal part.", { number: survey.questions.length }),
							),
						),
						total,
						h("p", {}, ...pieces(t("This question gets ε = {level}."), { level: each })),
					),
				several && together,
				separate &&
					h(
						"div",
						{ class: "field" },
						h(
							"label",
							{ for: "epsilon" },
							`${t("Level ε:")} `,
							shown,
							h("span", { class: "hint" }, t("A lower level hides more. A higher level needs fewer people.")),
						),
						level,
					),
				warning,
				promised,
				field("before", t("A stranger’s suspicion before the reply"), before),
				rule,
			),
			h("figure", { class: "chart" }, region, h("figcaption", {}, regionCaption)),
		),
	]
})

const predicted = h("p", { id: "predicted", "aria-live": "polite" })
const each = h("p", { id: "each-share" }),
	goal = h("p", { id: "goal", "aria-live": "polite" }),
	planTable = h("div", { class: "wide", id: "plan-table" })
const why = h("p", { class: "small quiet" })
/** Number of the simulated survey that is shown. */
let draw = 0
const outlook = tradeoff({
	expect: () => survey.expect ?? "zipf",
	chooseExpected: (name) => {
		survey.expect = name
		learning.show()
		changed()
	},
	own: () => question().shares ?? "",
	stateOwn: (shares) => {
		question().shares = shares
		changed()
	},
	redraw: () => {
		draw++
		changed()
	},
})

const people = card(t("How many people?"), () => [
	h(
		"div",
		{ class: "side-by-side" },
		h(
			"div",
			{},
			field(
				"people",
				t("People who will answer"),
				input(survey, "people", { type: "number", id: "people", min: 1, max: 1e12, step: 1 }, () => {
					at("target").value = accuracy.target
					changed()
				}),
			),
			predicted,
			each,
			outlook.comparison,
		),
		h(
			"div",
			{},
			field(
				"target",
				learnOf(question()) === "mean"
					? t("I need the mean to within ± … % of the range")
					: t("I need each share to within ± … %"),
				input(accuracy, "target", { type: "number", id: "target", min: 0.1, max: 50, step: "any" }),
			),
			goal,
			outlook.levelGoal,
			why,
		),
	),
	outlook.charts,
	h("details", {}, h("summary", {}, t("Compare all randomizers")), planTable),
])
const learning = card(t("What will you learn?"), () => outlook.outlook())
const showing = card(t("What will participants see?"), () => [outlook.participants])

const lifetime = h("p", { class: "promise", id: "lifetime", "aria-live": "polite", hidden: true })

const repeating = card(t("Once, or again?"), () => [
	oneOf(
		survey,
		"again",
		t("How often do you ask?"),
		[
			["once", t("Once"), t("each person answers one time")],
			["again", t("Again and again"), t("the same people answer in every wave, for example every week")],
		],
		() => {
			repeating.show()
			sharing.show()
			changed()
		},
	),
	survey.again === "again" &&
		h(
			"div",
			{ class: "row" },
			field(
				"days",
				t("Days per wave"),
				input(survey, "days", { type: "number", id: "days", min: 1, max: 366, step: 1 }),
			),
			field(
				"waves",
				t("Number of waves"),
				input(survey, "waves", { type: "number", id: "waves", min: 1, max: 400, step: 1 }),
			),
			field(
				"changes",
				t("Changes of one answer"),
				input(survey, "changes", { type: "text", inputmode: "numeric", id: "changes", placeholder: t("no limit") }),
				t("After that, the device keeps replying about the last answer that it knows."),
			),
		),
	survey.again === "again" &&
		oneOf(
			survey,
			"factor",
			t("What may all replies of one person reveal together?"),
			[
				["2", t("Twice the level of one reply"), t("as long as the answer does not change")],
				["3", t("Three times"), t("more accurate means over waves")],
				["4", t("Four times"), ""],
			],
			changed,
		),
	survey.again === "again" && lifetime,
])

/**
 * States what all replies about an unchanged answer reveal together, from a check of one rule at the lifetime level.
 */
async function showLifetime() {
	lifetime.hidden = survey.again !== "again"
	if (lifetime.hidden) return
	const epsilon = lifetimeLevel(question(), Number(survey.factor))
	const checked = await ask("/v1/check", {
		policy: { domain: { size: 2 }, policy: { kind: "uniform", epsilon } },
		before: survey.before,
	})
	const changes = survey.changes.trim(),
		total = changes && lifetimeLevel(question(), Number(survey.factor) * (Number(changes) + 1))
	const sum =
		total &&
		(await ask("/v1/check", {
			policy: { domain: { size: 2 }, policy: { kind: "uniform", epsilon: total } },
			before: survey.before,
		}))
	lifetime.replaceChildren(
		...pieces(
			t(
				"All replies about an unchanged answer together have ε = {level}: they can raise a stranger’s suspicion from {before} to at most {bound}. Participants see both levels before they answer.",
				{ level: epsilon, before: percent(survey.before, 0) },
			),
			{ bound: h("strong", {}, atMost(checked.suspicions[0].after)) },
		),
		" ",
		...(sum
			? pieces(
					t(
						"What the answers before and after each change reveal adds up: with {number} changes to at most ε = {level}, and from {before} to at most {bound}.",
						{ number: changes, level: total, before: percent(survey.before, 0) },
					),
					{ bound: h("strong", {}, atMost(sum.suspicions[0].after)) },
				)
			: [
					t(
						"What the answers before and after each change reveal adds up, without a limit on changes for every answer that the person gives.",
					),
				]),
	)
}

/** Returns the fields of a collection that asks again. @param {Question} current */
function wavesOf(current) {
	if (survey.again !== "again") return {}
	if (!(survey.days >= 1 && survey.waves >= 1 && survey.waves <= 400))
		throw new Unfinished(t("Enter the days per wave, and a number of waves from 1 to 400."))
	if (!/^\d{0,6}$/.test(survey.changes.trim()))
		throw new Unfinished(t("Enter the number of changes as a whole number, or leave it empty."))
	return {
		waves: { count: Math.round(survey.waves), days: Math.round(survey.days) },
		lifetime: policyOf(current, Number(survey.factor)),
		...(survey.changes.trim() && { max_changes: Number(survey.changes) }),
	}
}

const sharing = card(t("Who answers, who reads?"), () => [
	oneOf(
		survey,
		"submission",
		t("Who may answer?"),
		[
			["open", t("Anybody with the link"), t("the same person can answer more than once")],
			["token", t("One answer for each one-time link"), t("you get a list of links to distribute")],
		],
		() => {
			sharing.show()
			save()
		},
	),
	survey.submission === "token" &&
		field(
			"links",
			t("How many one-time links?"),
			input(survey, "links", { type: "number", id: "links", min: 1, max: MOST_LINKS, step: 1 }, save),
		),
	oneOf(
		survey,
		"results",
		t("Who may read the results?"),
		[
			["public", t("Anybody"), ""],
			[
				"admin",
				t("Only owners"),
				t("administrators, you, and those who get a reader link or an owner’s token in My surveys"),
			],
		],
		() => {
			sharing.show()
			save()
		},
	),
	survey.again === "once" &&
		h(
			"div",
			{ class: "row" },
			...[
				["opens", t("Opens"), t("Optional. It cannot change after that time.")],
				["closes", t("Closes"), t("Optional. You can change it in My surveys.")],
			].map(([name, label, hint]) =>
				field(name, label, input(survey, name, { type: "datetime-local", id: name }, save), hint),
			),
		),
	survey.again === "once" &&
		field(
			"keep-days",
			t("Delete single replies after … days"),
			input(survey, "keep", { type: "text", inputmode: "numeric", id: "keep-days", placeholder: t("keep them") }, save),
			t("Optional. The counts, and so the results, stay. 0 stores no single replies. Participants see the date."),
		),
	h(
		"label",
		{ class: "choice" },
		h("input", {
			type: "checkbox",
			id: "listed",
			checked: survey.listed,
			onchange: (/** @type {any} */ event) => {
				survey.listed = event.target.checked
				save()
			},
		}),
		h(
			"span",
			{},
			t("List it on the first page"),
			h("span", { class: "hint" }, t("Every visitor of the collector can then read the title.")),
		),
	),
])

const framing = card(t("Before and after"), () => frameFields(survey, field, save))

const fault = h("p", { class: "alarm", role: "alert", hidden: true })
const create = h("button", { type: "submit", class: "main" }, t("Open the survey"))
const form = h("form", { onsubmit: open, novalidate: true }),
	done = h("div", { id: "done" })

// -- the planner
// ---------------------------------------------------------------------------------------------------------

/**
 * Runs work, and runs it once more if it was requested meanwhile, because the planner handles one request at a time.
 * @param {() => Promise<void>} work
 */
function latest(work) {
	let running = false,
		again = false
	return async () => {
		again = true
		if (running) return
		running = true
		while (again) {
			again = false
			await work()
		}
		running = false
	}
}

/** Returns the message of an error; asks for the admin token if it was rejected. @param {unknown} error */
function errorMessage(error) {
	if (error instanceof ApiError && error.reason === "unauthorized") showToken(UNKNOWN_TOKEN)
	return error instanceof Error ? error.message : String(error)
}

/** Warnings for the organiser about replies that reveal answers. */
const EXPOSED = {
	likely: t("Warning: a reply is likely to reveal the answer."),
	nearly: t("Warning: a reply almost always reveals the answer."),
	always: t("Warning: a reply is the answer. Nothing is hidden."),
	part: t("Warning: a reply is likely to reveal a part of the answer, such as an option."),
}

/**
 * Returns a warning if replies are likely to reveal answers, or a part of them, such as one option.
 * @param {{ guess: number, chance: number, part?: { guess: number, chance: number } | null }} odds
 * @returns {HTMLElement | null}
 */
function alarm(odds) {
	const exposed = exposure(odds),
		part = odds.part && exposure(odds.part) ? guessInWords(odds.part, "guess-participant-part") : null
	if (!exposed && !part) return null
	const [start, bound, rest] = guessInWords(odds, "guess-participant")
	return h(
		"div",
		{ class: "alarm" },
		h("p", {}, h("strong", {}, exposed ? EXPOSED[exposed] : EXPOSED.part)),
		h("p", {}, start, h("strong", {}, bound), rest),
		part && h("p", {}, part[0], h("strong", {}, part[1]), part[2]),
		h("p", {}, t("Participants see this before they answer.")),
	)
}

const look = latest(async () => {
	if (!adminToken()) return quiet(t("Enter the admin token above to see the expected error."))
	// Numbers about a draft that was changed meanwhile are not shown: every change looks again.
	const current = changes,
		isOld = () => current !== changes
	try {
		const policy = policyOf(question())
		const checked = await ask("/v1/check", { policy, before: survey.before })
		if (isOld()) return
		showCheck(checked)
		if (survey.questions.length > 1 && sumOfLevels()) await showTogether(sumOfLevels())
		await showLifetime()
		if (!(survey.people >= 1)) return noPlan(TOO_FEW)
		if (isOld()) return
		if (!predicted.textContent) predicted.textContent = t("Planning …")
		const asked = question(),
			isMarks = asked.kind === "marks",
			{ domain } = /** @type {any} */ (policy),
			labels = labelsOf(domain)
		const expected = expectedShares(
			survey.expect ?? "zipf",
			asked.shares ?? "",
			labels,
			isMarks ? domain.order.length : 0,
		)
		const plan = await ask("/v1/plan", {
			policy,
			n: Math.round(survey.people),
			...questionOf(asked),
			levels: LEVELS,
			expected,
			draw,
		})
		if (isOld()) return
		keepFocus(people.element, () => showPlan(plan, labels.length))
		const names = isMarks ? domain.order : labels.map((value) => nameOf(value, domain))
		keepFocus(learning.element, () => outlook.showPreview(plan.preview, domain, isMarks ? "marks" : learnOf(asked)))
		outlook.showParticipants({
			title: asked.title,
			description: asked.description,
			names,
			checked,
			before: survey.before,
			guess: plan.guess,
			chance: plan.chance,
			part: plan.part,
		})
	} catch (error) {
		if (!isOld()) quiet(errorMessage(error))
	}
})

/** Shows a message instead of the check and the plan. @param {string} message */
function quiet(message) {
	promised.replaceChildren(h("p", {}, message))
	warning.replaceChildren()
	for (const place of [rule, regionCaption]) place.textContent = ""
	noChart(region)
	noPlan("")
}

/** Shows a message instead of the plan. @param {string} message */
function noPlan(message) {
	predicted.textContent = message
	for (const place of [why, each, goal]) place.textContent = ""
	planTable.replaceChildren()
	outlook.clear()
}

/** Shows what the policy lets a reply reveal. @param {any} checked */
function showCheck(checked) {
	promised.replaceChildren(
		...disclosureSentences({ ...checked, before: survey.before }).map(([start, bound, rest]) =>
			h("p", {}, start, bound && h("strong", {}, bound), rest),
		),
	)
	rule.replaceChildren(t("The rule:"), " ", h("span", { lang: "en", dir: "ltr" }, checked.asks))
	regionCaption.textContent = ""
	region.hidden = !checked.region
	if (!checked.region) return noChart(region)
	chart(region, (width) => regionChart(checked.region.points, width))
	const [x, other] = [checked.region.x, checked.region.other].map((value) =>
		quoted(nameOf(value, checked.policy.domain)),
	)
	regionCaption.textContent = t(
		"The error rates of every test that tries to tell {first} from {second} by one reply lie in the shaded region. The dashed line is guessing without a reply.",
		{ first: x, second: other },
	)
}

/** Formats a number with two significant digits. @param {number} value */
const amount = (value) => number(Number(value.toPrecision(2)), { maximumFractionDigits: 6 })

/** Quantile of the normal distribution for 95% intervals. */
const QUANTILE = 1.96

/** Shows the expected error. @param {any} plan @param {number} values number of values */
function showPlan({ n, best, why: reason, rows, guess, chance, part, one_percent: needed, levels, preview }, values) {
	warning.replaceChildren(alarm({ guess, chance, part }) ?? "")
	const current = question(),
		learn = learnOf(current),
		asks = current.kind === "marks" || !!learn,
		span = learn === "mean" ? spanOf(current) : 1,
		row = rows.find((/** @type {any} */ one) => one.name === best),
		alike = row?.classical ? null : rows.find((/** @type {any} */ one) => one.classical)
	const errorOf = (/** @type {any} */ one) =>
		/** @type {any} */ (
			asks
				? one.standard_error === null
					? null
					: one.standard_error / span
				: one.risk === null
					? null
					: Math.sqrt(one.risk / values)
		)
	if (!row || (asks ? row.standard_error : row.tv) === null)
		return quiet(t("No mechanism is available for this rule. Choose a higher level."))
	const half = QUANTILE * errorOf(row),
		bound = h("strong", {}, learn === "mean" ? amount(half * span) : percent(half)),
		people = { count: n }
	const visible =
		preview &&
		preview.rows.filter((/** @type {any} */ { expected, expected_error: error }) => expected > QUANTILE * error).length
	const off =
		half >= 1
			? [t("With {count} people, nothing can be estimated: the expected ± is 100% or more.", people)]
			: learn === "mean"
				? pieces(
						t(
							"With {count} people, the mean will be known to about ± {bound} (95% interval), which is {share} of the range.",
							{ ...people, share: percent(half) },
						),
						{ bound },
					)
				: learn
					? pieces(
							t(
								"With {count} people, the share of people up to each value will be known to about ± {bound} (95% interval).",
								people,
							),
							{ bound },
						)
					: asks
						? pieces(
								t(
									"With {count} people, the share of each option will be known to about ± {bound} (95% interval).",
									people,
								),
								{ bound },
							)
						: row.tv < 1
							? pieces(
									t(
										"With {count} people, the estimated shares will be {term} {bound}. That part of the shares would have to move to other values to be correct.",
										people,
									),
									{ term: term("misplaced", t("off by about")), bound: h("strong", {}, percent(row.tv)) },
								)
							: [
									...pieces(
										t("With {count} people, only shares above about {bound} can be distinguished from 0.", people),
										{ bound },
									),
									visible === null
										? ""
										: ` ${t("Of the shares that you expect, these are {number} of {all}.", { number: whole(visible), all: values })}`,
								]
	// The number of people is for an error of 1% of the kind that the sentence before it states.
	const manyPeople = row.tv < 1 ? needed : n * (half / 0.01) ** 2
	predicted.replaceChildren(
		...off,
		!asks && row.tv > 0.01 && manyPeople !== null
			? ` ${t("For {error} you need about {count} people.", { error: percent(0.01, 0), count: Number(manyPeople.toPrecision(2)) })}`
			: "",
	)
	each.replaceChildren(
		...(learn === "mean" || half >= 1
			? []
			: pieces(
					t(
						"Each single share: about ± {bound} on average ({term}), so a share of 30% would be reported as {example}.",
						{ example: `${percent(0.3)} ± ${percent(half)}` },
					),
					{ bound: h("strong", {}, percent(half)), term: term("interval", t("95% interval")) },
				)),
	)
	// Errors fall as 1/√n.
	const wanted = accuracy.target / 100,
		enough = wanted > 0 ? n * (half / wanted) ** 2 : 0
	goal.textContent = enough
		? t("For {error} you need about {count} people.", {
				error: `± ${learn === "mean" ? amount(wanted * span) : `${number(accuracy.target)}%`}`,
				count: Number(enough.toPrecision(2)),
			})
		: ""
	why.replaceChildren(t("The planner’s choice:"), " ", h("span", { lang: "en", dir: "ltr" }, `${reason}.`))
	const [top, bottom] = levelOf(question()).split("/").map(Number)
	outlook.showCurves({
		n,
		half,
		alike: alike && errorOf(alike) !== null ? QUANTILE * errorOf(alike) : null,
		level: top / (bottom ?? 1),
		levels,
		z: QUANTILE / span,
		target: wanted,
		mean: learn === "mean",
	})
	planTable.replaceChildren(
		h(
			"table",
			{},
			h("caption", {}, t("All randomizers that the planner compared, for {count} people.", { count: n })),
			h(
				"thead",
				{},
				h(
					"tr",
					{},
					h("th", { scope: "col" }, term("randomizer", t("randomizer"))),
					...[learn === "mean" ? t("± of the mean, in % of the range") : t("± per share"), t("bits")].map((name) =>
						h("th", { scope: "col", class: "number" }, name),
					),
				),
			),
			h(
				"tbody",
				{},
				...rows.map((/** @type {any} */ one) =>
					h(
						"tr",
						{},
						h(
							"th",
							{ scope: "row" },
							h("span", { lang: "en" }, one.name),
							one.name === best && h("span", { class: "verdict" }, t("the planner’s choice")),
							one.classical && h("span", { class: "verdict" }, t("hides every value alike")),
						),
						h("td", { class: "number" }, errorOf(one) === null ? "–" : percent(QUANTILE * errorOf(one))),
						h("td", { class: "number" }, String(one.bits)),
					),
				),
			),
		),
	)
}

let timer = 0
/** Counts changes of what the planner is asked about. */
let changes = 0
/** Saves the draft, and updates check and plan after a short pause. */
function changed() {
	changes++
	save()
	clearTimeout(timer)
	timer = setTimeout(look, 250)
}

// -- opening
// -------------------------------------------------------------------------------------------------------------

/** Returns the dates of a survey that does not return, in Unix seconds. */
function datesOf() {
	const stated = ["opens", "closes"].filter((name) => survey.again === "once" && survey[name])
	return Object.fromEntries(stated.map((name) => [name, Math.floor(new Date(survey[name]).getTime() / 1000)]))
}

/** Returns the field of a collection that deletes single replies after some days. */
function retentionOf() {
	const days = String(survey.keep ?? "").trim()
	if (survey.again !== "once" || !days) return {}
	if (!/^\d{1,4}$/.test(days))
		throw new Unfinished(
			t("Enter the days after which single replies are deleted as a whole number of at most 9999, or leave it empty."),
		)
	return { keep_days: Number(days) }
}

/** Reasons after which the collector may have opened the survey all the same: its response was lost. */
const DOUBTFUL = ["offline", "internal", "unavailable"]

/** Opens all questions of the draft, or none of them, in one request. @param {Event} event */
async function open(event) {
	event.preventDefault()
	fault.hidden = true
	// What was sent is what opens: until the collector answers, nothing can be changed, and leaving needs a confirmation.
	form.inert = create.disabled = unsaved = true
	try {
		const questions = /** @type {Question[]} */ (survey.questions)
		if (!(survey.people >= 1)) throw new Unfinished(TOO_FEW)
		const bodies = questions.map((one, i) => {
			if (!one.title.trim())
				throw new Unfinished(t("Question {number} is empty. Enter its wording.", { number: i + 1 }))
			try {
				return {
					title: one.title.trim(),
					description: one.description.trim(),
					policy: policyOf(one),
					n: Math.round(survey.people),
					...questionOf(one),
					submission: survey.submission,
					results: survey.results,
					listed: survey.listed,
					...datesOf(),
					...retentionOf(),
					...wavesOf(one),
					...statedPresentation(survey, one, {
						...(one.kind === "scale" && { low_label: one.lowLabel, high_label: one.highLabel }),
						background: statedBackground(one),
					}),
				}
			} catch (error) {
				throw new Unfinished(
					`${t("Question {number}", { number: i + 1 })}: ${error instanceof Error ? error.message : error}`,
				)
			}
		})
		const count = Math.min(MOST_LINKS, Math.max(1, Math.round(survey.links || 1)))
		const { questions: created, tokens } = await ask("/v1/surveys", {
			questions: bodies,
			...(survey.submission === "token" && { tokens: count }),
		})
		finished(
			created.map((/** @type {any} */ { collection, guess, chance, part }) => ({ ...collection, guess, chance, part })),
			tokens,
		)
	} catch (error) {
		const isDoubtful = error instanceof ApiError && DOUBTFUL.includes(error.reason)
		unsaved = fault.hidden = false
		fault.textContent = `${errorMessage(error)}${isDoubtful ? ` ${t("Look in “My surveys” before you try again: the survey may be open all the same.")}` : ""}`
		fault.scrollIntoView({ block: "center" })
	}
	form.inert = create.disabled = false
}

/** Whether a survey is being opened, or one-time links are shown that were not downloaded: they are not shown again. */
let unsaved = false
addEventListener("beforeunload", (event) => unsaved && event.preventDefault())

/** Shows the links of an open survey. @param {any[]} collections @param {string[][]} tokens */
function finished(collections, tokens) {
	const [first, ...others] = collections.map(({ id }) => id)
	// A link has the begin of the hash of each mechanism: the survey page rejects any other mechanism.
	const address = `${location.origin}/c/${first}${others.length ? `?then=${others.join(",")}` : ""}`
	const linkOf = (/** @type {string[]} */ secrets) =>
		`${address}#${secrets.join(",")};${collections.map((one) => one.mechanism_hash.slice(0, 32)).join(",")}`
	const link = linkOf([]),
		links = (tokens[0] ?? []).map((_, i) => linkOf(tokens.map((list) => list[i])))
	const waits = collections[0].opens && collections[0].opens * 1000 > Date.now()
	const heading = h(
		"h2",
		{ tabindex: -1 },
		waits ? t("The survey opens on {date}", { date: moment(collections[0].opens) }) : t("The survey is open"),
	)
	done.replaceChildren(
		h(
			"section",
			{ class: "card" },
			heading,
			...collections.map((one) => {
				const notice = alarm(one)
				if (notice && collections.length > 1) notice.prepend(h("p", {}, `${one.title}:`))
				return notice
			}),
			...(links.length
				? [
						h(
							"p",
							{},
							t("{count} one-time links are ready, one for each person. Download now: the links are not shown again.", {
								count: links.length,
							}),
						),
						h(
							"p",
							{ class: "actions" },
							h(
								"button",
								{
									type: "button",
									class: "main",
									id: "links-csv",
									onclick: () => {
										download("one-time-links.csv", csv([["number", "link"], ...links.map((one, i) => [i + 1, one])]))
										unsaved = false
									},
								},
								t("Download the links (CSV)"),
							),
							sheetButton(links, collections[0].title),
						),
					]
				: [h("p", {}, t("Send this link to the people who should answer:")), shareLink(link, collections[0].title)]),
			h("h3", {}, t("Results")),
			others.length > 0 &&
				h(
					"p",
					{},
					h(
						"a",
						{ id: "all-results", href: `/c/${first}/results?then=${others.join(",")}` },
						t("Live results of all questions"),
					),
				),
			...collections.map(({ id, title }) =>
				h(
					"p",
					{ class: "links" },
					collections.length > 1 && `${title}: `,
					h("a", { href: `/c/${id}/results` }, t("live results")),
					h("a", { href: `/v1/collections/${id}/certificate`, download: `certificate-${id}.json` }, t("certificate")),
				),
			),
			h(
				"div",
				{ class: "actions" },
				links.length ? null : h("a", { class: "button", href: link }, t("See the survey")),
				h("a", { class: "button", href: "/surveys" }, t("My surveys")),
				h(
					"button",
					{
						type: "button",
						onclick: () => {
							form.hidden = false
							done.replaceChildren()
						},
					},
					t("Make another like it"),
				),
				h(
					"button",
					{
						type: "button",
						onclick: () => {
							localStorage.removeItem(DRAFT)
							location.reload()
						},
					},
					t("Make a new one"),
				),
			),
		),
	)
	form.hidden = true
	unsaved = links.length > 0
	scrollTo(0, 0)
	heading.focus()
}

const UNKNOWN_TOKEN = t(
	"The collector does not know this admin token. Check it, or create another with “sfumato admin-tokens --new”.",
)

/** Shows the form for the admin token, or that a token is stored. @param {string} [problem] */
function showToken(problem = "") {
	const tokenInput = h("input", {
			type: "password",
			id: "admin-token",
			autocomplete: "off",
			required: true,
			placeholder: "sfa_…",
		}),
		message = h("p", { class: "alarm", role: "alert", hidden: !problem }, problem)
	if (adminToken() && !problem) {
		return at("token").replaceChildren(
			h(
				"p",
				{ class: "small quiet" },
				`${t("This tab stores the admin token until you close it.")} `,
				h(
					"button",
					{
						type: "button",
						class: "plain",
						onclick: () => {
							keepAdminToken("")
							showToken()
							changed()
						},
					},
					t("Forget it"),
				),
			),
		)
	}
	keepAdminToken("")
	at("token").replaceChildren(
		h(
			"form",
			{
				class: "card",
				onsubmit: async (/** @type {Event} */ event) => {
					event.preventDefault()
					keepAdminToken(tokenInput.value.trim())
					try {
						await ask("/v1/check", { policy: { domain: { size: 2 }, policy: { kind: "uniform", epsilon: "1" } } })
						showToken()
						changed()
					} catch (error) {
						keepAdminToken("")
						message.hidden = false
						message.textContent =
							error instanceof ApiError && error.reason === "unauthorized" ? UNKNOWN_TOKEN : errorMessage(error)
					}
				},
			},
			h(
				"div",
				{ class: "field" },
				h(
					"label",
					{ for: "admin-token" },
					t("Admin token"),
					h(
						"span",
						{ class: "hint" },
						t(
							"It begins with sfa_. The collector printed one when it first started, unless there was one already. The token of an author (sfu_) works, too. Only this tab stores it.",
						),
					),
				),
				tokenInput,
			),
			message,
			h("button", { class: "main" }, t("Use it")),
		),
	)
}

/** Draws all sections of the form. */
function showAll() {
	showQuestions()
	for (const part of [asking, keeping, strength, people, learning, showing, repeating, framing, sharing]) part.show()
	changed()
}

form.append(
	questions,
	asking.element,
	keeping.element,
	strength.element,
	people.element,
	learning.element,
	showing.element,
	repeating.element,
	framing.element,
	sharing.element,
	fault,
	h("div", { class: "actions" }, create),
)
at("studio").append(form, done)
showToken()
showAll()
