// Sentences about what a reply can reveal and what a certificate proves. This file computes no bounds: Studio gets them
// from
// the collector, the survey from the client library.
import { factorsOf, labelsOf, listed, nameOf } from "./domains.js"
import { h } from "./dom.js"
import { number, quoted, stressedMessage, t } from "./messages.js"
/** @import {Fraction, NamedPart, ReplyReader} from "./replies.js" */

/**
 * Bounds on what an observer can learn, from a policy (computed by the planner) or from the law of a mechanism
 * (computed by the
 * device). `before` is the observer's belief in a value before the reply. `within` bounds the belief of an observer who
 * knows the
 * group of the value, or the belief in a value of the secret. `across` bounds the belief in a value against those of
 * other groups.
 * @typedef {{ policy: any, before: number, suspicions: { values: any[], count: number, before: number, after: number
 * }[], within: number | null,
 * across?: number | null }} Facts
 */

/**
 * Classifies how likely a reply reveals the answer; "" if the reply closes less than half of the gap between guessing
 * and certainty.
 * @param {{ guess: number, chance: number }} odds
 * @returns {"" | "likely" | "nearly" | "always"}
 */
export function exposure({ guess, chance }) {
	if (chance === 1) return ""
	if (guess === 1) return "always"
	return (guess - chance) / (1 - chance) < 0.5 ? "" : guess < 0.9 ? "likely" : "nearly"
}

/** Formats an upper bound as a percentage, rounded up. @param {number} share */
export const atMost = (share) =>
	number(Math.min(100, Math.ceil(1000 * share - 1e-9) / 10) / 100, { style: "percent", maximumFractionDigits: 1 })

/** Formats a probability; only an exact 0 or 1 is shown as 0% or 100%. @param {number} share */
export const odds = (share) =>
	share < 1 && share >= 0.9995
		? t("more-99")
		: share > 0 && share < 0.0005
			? t("less-01")
			: number(share, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 })

/**
 * Returns a sentence in three parts: the words before the odds, the odds, and the words after.
 * @param {{ guess: number, chance: number }} known
 * @param {"guess" | "guess-participant" | "guess-part" | "guess-participant-part"} [message]
 * @returns {[string, string, string]}
 */
export const guessInWords = ({ guess, chance }, message = "guess") =>
	stressedMessage(message, { bound: odds(guess), chance: odds(chance) })

/**
 * States the odds for one part of the answer, such as the option that a reply names: those for all parts together are
 * much lower.
 * @param {{ guess: number, chance: number } | null | undefined} part
 */
export function partOdds(part) {
	if (!part) return null
	const [start, bound, rest] = guessInWords(part, "guess-part")
	return h("p", { class: exposure(part) ? "part-odds alarm loud" : "part-odds" }, start, h("strong", {}, bound), rest)
}

/**
 * Returns sentences about what a reply can reveal, each in three parts: words, a bound to emphasize (or ""), and more
 * words.
 * @param {Facts} facts
 * @param {string} [seen] name of the thing that a stranger sees
 * @returns {[string, string, string][]}
 */
export function disclosureSentences(
	{ policy: document, before: suspected, suspicions, within, across = null },
	seen = t("reply"),
) {
	const { domain, policy } = document
	const names = (/** @type {any[]} */ values, count = values.length) =>
		listed(
			values.map((value) => nameOf(value, domain)),
			6,
			count,
		)
	if (within !== null && policy.kind === "blocks")
		return ofBlocks({ domain, policy, before: suspected, suspicions, within, across }, names, seen)
	if (within !== null) {
		const known = policy.distributions.anything ? "raise-secret" : "raise-secret-known",
			values = { seen, secret: policy.secret, before: atMost(suspected), bound: atMost(within) }
		return [within < 1 ? stressedMessage(known, values) : plain("learn-secret", values), plain("learn-rest")]
	}
	return suspicions.map(({ values, count, before, after }) => {
		const all = suspicions.length === 1,
			filled = { seen, names: names(values, count), before: atMost(before), bound: atMost(after) }
		if (after < 1) return stressedMessage(all ? "raise-all" : "raise-some", filled)
		return plain(all ? "may-reveal-all" : "may-reveal-some", filled)
	})
}

/**
 * A sentence without a bound.
 * @param {string} key
 * @param {Record<string, any>} [values]
 * @returns {[string, string, string]}
 */
const plain = (key, values = {}) => [t(key, values), "", ""]

/**
 * Returns the sentences for a block policy: one per level within groups, and the level between groups, or that the
 * group may be known.
 * @param {{ domain: any, policy: any, before: number, suspicions: Facts["suspicions"], within: number, across: number |
 * null }} facts
 * @param {(values: any[], count?: number) => string} names
 * @param {string} seen
 * @returns {[string, string, string][]}
 */
function ofBlocks({ domain, policy, before, suspicions, within, across }, names, seen) {
	/** @type {any[][]} */
	const blocks = []
	labelsOf(domain).forEach((value, i) => (blocks[policy.blocks[i]] ??= []).push(value))
	const alone = blocks.filter((block) => block.length === 1).flat(),
		many = blocks.length > 1,
		open = across === null
	const isAlone = (/** @type {any} */ value) => alone.some((one) => JSON.stringify(one) === JSON.stringify(value))
	// Values that are alone in their group have no level within it.
	const levels = suspicions.filter(({ values, count }) => count > values.length || !values.every(isAlone)),
		start = { seen, before: atMost(before) }
	/** @type {[string, string, string][]} */
	const sentences =
		within === 1
			? [plain("may-reveal-all", start)]
			: levels.length > 1 && levels.every(({ after }) => after <= within + 1e-9)
				? levels.map(({ values, count, after }) =>
						stressedMessage("raise-group-some", { ...start, names: names(values, count), bound: atMost(after) }),
					)
				: alone.length < blocks.flat().length || !many
					? [stressedMessage(many ? "raise-group" : "raise-one", { ...start, bound: atMost(within) })]
					: []
	if (!open && across !== null)
		sentences.push(
			across < 1
				? stressedMessage("raise-across", { ...start, bound: atMost(across) })
				: plain("may-reveal-all", start),
		)
	if (many && open)
		sentences.push(
			domain.grid
				? plain(domain.grid.latitude ? "may-reveal-group-map" : "may-reveal-group-grid", start)
				: plain("may-reveal-group", { seen, groups: groups(blocks, names) }),
		)
	if (alone.length && open) sentences.push(plain("may-reveal-alone", { seen, names: names(alone) }))
	return sentences
}

/** Lists the groups, at most five of them. @param {any[][]} blocks @param {(values: any[]) => string} names */
function groups(blocks, names) {
	const shown = blocks
			.slice(0, 5)
			.map((block) => names(block))
			.join("; "),
		more = blocks.length - 5
	return more > 0 ? `${shown}; ${t("more-groups", { count: more })}` : shown
}

// -- how often a reply names the answer
// ----------------------------------------------------------------------------------

/**
 * Returns a probability as "73 times in 100"; only an exact 0 or 1 is "never" or "always".
 * @param {Fraction} probability
 */
export function timesInWords([n, d]) {
	if (n === d) return t("times-always")
	if (!n) return t("times-never")
	const rounded = Number((200n * n + d) / (2n * d))
	return rounded >= 100 ? t("times-more") : rounded < 1 ? t("times-less") : t("times", { count: rounded })
}

/** Whether two fractions are equal. @param {Fraction} first @param {Fraction} second */
const equal = ([a, b], [c, d]) => a * d === c * b

/**
 * Returns the values that a part of a reply is about: those of the domain, or of some attributes.
 * @param {any} domain
 * @param {NamedPart} part
 */
function partLabels(domain, { axes }) {
	if (!axes)
		return {
			names: labelsOf(domain).map((value) => nameOf(value, domain)),
			attribute: "",
			at: (/** @type {number} */ x) => x,
		}
	const factors = factorsOf(domain),
		chosen = axes.map((axis) => factors[axis]),
		sizes = factors.map(({ labels }) => labels.length)
	const names = chosen
		.reduce(
			(all, { labels }) => all.flatMap((start) => labels.map((label) => [...start, String(label)])),
			/** @type {string[][]} */ ([[]]),
		)
		.map((tuple) => tuple.join(" · "))
	const at = (/** @type {number} */ x) => {
		const digits = sizes
			.reduceRight(([rest, ...more], size) => [Math.floor(rest / size), rest % size, ...more], [x])
			.slice(1)
		return axes.reduce((index, axis) => index * sizes[axis] + digits[axis], 0)
	}
	return { names, attribute: chosen.map(({ name }) => name).join(" · "), at }
}

/**
 * Returns sentences about how often a reply names the answer: for the chosen value, or else for one value of each kind.
 * @param {ReplyReader} reader
 * @param {any} domain
 * @param {number | null} [chosen] index of the chosen value
 * @returns {[string, string, string][]}
 */
export function oddsInWords(reader, domain, chosen = null) {
	return reader.parts.slice(0, 6).flatMap((part) => {
		const { names, attribute, at } = partLabels(domain, part),
			name = (/** @type {number} */ x) => quoted(names[x])
		const size = part.groups ? labelsOf(domain).length : part.size
		if (part.scale) {
			const x = chosen === null ? size - 1 : at(chosen),
				other = x ? 0 : size - 1
			return [
				stressedMessage("odds-scale", {
					name: name(x),
					bound: timesInWords(part.own(x)),
					other: name(other),
					least: timesInWords(part.own(other)),
				}),
			]
		}
		/** @type {{ x: number, own: Fraction, values: number[] }[]} */
		const kinds = []
		for (let x = 0; x < size; x++) {
			const own = part.own(x),
				kind = kinds.find((one) => equal(one.own, own))
			if (kind) kind.values.push(x)
			else kinds.push({ x, own, values: [x] })
		}
		const shown =
			chosen === null
				? kinds.slice(0, 3)
				: kinds.filter(({ values }) => values.includes(at(chosen))).map((kind) => ({ ...kind, x: at(chosen) }))
		return shown.flatMap(({ x, own, values }) => {
			const filled = { name: name(x), attribute: quoted(attribute), bound: timesInWords(own) }
			if (part.groups) return [stressedMessage("odds-groups", filled)]
			if (part.axes && part.share[0] !== part.share[1])
				return [
					stressedMessage("odds-attribute-drawn", {
						...filled,
						bound: timesInWords(part.share),
						own: timesInWords(own),
					}),
				]
			if (part.axes) return [stressedMessage(part.one ? "odds-attribute-one" : "odds-attribute-set", filled)]
			const key = domain.grid && !part.one ? "odds-cells" : part.one ? "odds-one" : "odds-set",
				sentences = [stressedMessage(key, filled)]
			if (part.other) {
				const [low, high] = part.other(x),
					bound = equal(low, high)
						? timesInWords(low)
						: t("between", { low: timesInWords(low), high: timesInWords(high) })
				sentences.push(
					stressedMessage(size === 2 && part.one ? "odds-one-two" : `${key}-other`, {
						...filled,
						other: name(1 - x),
						bound,
					}),
				)
			}
			if (chosen === null && values.length > 1)
				sentences.push(
					plain(kinds.length === 1 ? "odds-same" : "odds-same-few", {
						names: listed(values.filter((one) => one !== x).map((one) => names[one])),
					}),
				)
			return sentences
		})
	})
}

// -- a reply in words
// ------------------------------------------------------------------------------------------------------

/** Maximum values of a reply that are named one by one. */
const MOST_NAMED = 8

/**
 * Describes the parts of a drawn reply; `cells` are the named values, for a map or a list of all of them.
 * @param {any} domain
 * @param {{ part: NamedPart, values: number[] }[]} parts
 * @returns {{ words: string, names: string[], cells: number[] | null }[]}
 */
export function replyInWords(domain, parts) {
	return parts.map(({ part, values }) => {
		const { names, attribute } = partLabels(domain, part),
			name = (/** @type {number} */ x) => quoted(names[x])
		const count = values.length,
			all = part.size,
			few = values.slice(0, MOST_NAMED).map(name).join(", ")
		const isRange = values.every((x, i) => !i || x === values[i - 1] + 1),
			plainNumbers = !domain.values && !domain.product && !domain.grid
		const words = part.scale
			? t(values.includes(part.size - 1) ? "reply-bit-1" : "reply-bit-0")
			: part.groups
				? t("reply-groups", { names: values.map((group) => group + 1).join(", ") })
				: !count
					? t(part.one || part.outputs ? "reply-nothing" : "reply-empty")
					: domain.grid && !part.axes
						? t("reply-cells", { count, all, names: few })
						: count === 1
							? name(values[0])
							: plainNumbers && isRange
								? t("reply-range", { first: name(values[0]), last: name(values[count - 1]) })
								: count <= MOST_NAMED
									? t("reply-set", { names: few })
									: t("reply-many", { count, all, names: `${few} …` })
		const shown = attribute ? t("reply-attribute", { attribute, reply: words }) : words
		return {
			words: shown,
			names: part.groups ? [] : values.map((x) => names[x]),
			cells: domain.grid && !part.axes && !part.groups ? values : null,
		}
	})
}

/** Returns sentences that describe a certificate. @param {any} certificate */
export function certificateInWords({ holds, mechanism, policy, worst, evidence }) {
	const name = (/** @type {any} */ value) => `“${nameOf(value, policy.domain)}”`
	const sentences = [
		`The mechanism ${mechanism.mechanism} ${holds ? "obeys" : "does not obey"} the ${policy.policy.kind} policy of this collection.`,
	]
	if (worst.names && Array.isArray(worst.names)) {
		const between = worst.names.map((/** @type {any} */ value) =>
			typeof value === "string" || Array.isArray(value) ? name(value) : value,
		)
		sentences.push(
			`The mechanism comes closest to the limit for ${between.join(" and ")}. A report may be at most e^${worst.epsilon} times as likely for the one as for the other, and the exact ratio is within that limit.`,
		)
	}
	sentences.push(`Evidence: ${evidence}.`)
	return sentences
}
