// Sentences about what a reply can reveal and what a certificate proves. This file computes no bounds: Studio gets them from
// the collector, the survey from the client library.
import { labelsOf, listed, nameOf } from "./domains.js"
import { atMost, percent } from "./dom.js"

/** Bounds on what an observer can learn, from a policy (computed by the planner) or from the law of a mechanism (computed by the
 * device). `before` is the observer's belief in a value before the reply. `within` bounds the belief of an observer who knows the
 * group of the value, or the belief in a value of the secret.
 * @typedef {{ policy: any, before: number, suspicions: { values: any[], count: number, before: number, after: number }[], within: number | null }} Facts */

/** Classifies how likely a reply reveals the answer; "" if the reply closes less than half of the gap between guessing and certainty.
 * @param {{ guess: number, chance: number }} odds @returns {"" | "likely" | "nearly" | "always"} */
export function exposure({ guess, chance }) {
	if (chance === 1) return ""
	if (guess === 1) return "always"
	return (guess - chance) / (1 - chance) < 0.5 ? "" : guess < 0.9 ? "likely" : "nearly"
}

/** Formats a probability; only an exact 0 or 1 is shown as 0% or 100%. @param {number} share */
export const odds = (share) => (share < 1 && share >= 0.9995 ? "more than 99.9%" : share > 0 && share < 0.0005 ? "less than 0.1%" : percent(share))

/** Returns a sentence in three parts: the words before the odds, the odds, and the words after. @param {{ guess: number, chance: number }} known
 * @param {string} [whose] @returns {[string, string, string]} */
export const guessInWords = ({ guess, chance }, whose = "your") =>
	[`If all answers are equally likely, a stranger’s best guess of ${whose} answer from the reply alone is correct with probability `, odds(guess), ` (without the reply: ${odds(chance)}).`]

/** @param {string} start @returns {[string, string]} the beginning of a sentence, and the bound at its end */
const raise = (start, before = 0, after = 0) => [`${start} from ${atMost(before)} to at most `, atMost(after)]

/** Returns sentences about what a reply can reveal, each in three parts: words, a bound to emphasize (or ""), and more words.
 * @param {Facts} facts @param {string} [seen] name of the thing that a stranger sees @returns {[string, string, string][]} */
export function disclosureSentences({ policy: document, before: suspected, suspicions, within }, seen = "reply") {
	const { domain, policy } = document
	const names = (/** @type {any[]} */ values, count = values.length) => listed(values.map((value) => nameOf(value, domain)), 6, count)
	if (within !== null && policy.kind === "blocks") return ofBlocks(domain, policy, suspected, within, names, seen)
	if (within !== null) {
		const known = policy.distributions.anything ? "" : ", however the rest of your answer depends on it"
		const learned = /** @type {[string, string, string]} */ (within < 1
			? [...raise(`A stranger who sees your ${seen} can raise their suspicion of your “${policy.secret}”`, suspected, within), `${known}.`]
			: [`A stranger who knows how the rest of your answer depends on your “${policy.secret}” may learn it from your ${seen}.`, "", ""])
		return [learned, ["They may learn more about the rest of your answer.", "", ""]]
	}
	/** @type {[string, string, string][]} */
	const sentences = []
	for (const { values, count, before, after } of suspicions) {
		const all = suspicions.length === 1 ? "" : ` that it is ${names(values, count)}`
		if (after < 1) sentences.push([...raise(`A stranger who sees your ${seen} can raise their suspicion${all}`, before, after), "."])
		else sentences.push([`${all ? `If it is ${names(values, count)}` : "Whatever your answer is"}, your ${seen} may reveal it.`, "", ""])
	}
	return sentences
}

/** Returns the sentences for a block policy that does not hide the group. @param {any} domain @param {any} policy @param {number} before @param {number} within @param {(values: any[]) => string} names @param {string} seen
 * @returns {[string, string, string][]} */
function ofBlocks(domain, policy, before, within, names, seen) {
	/** @type {any[][]} */
	const blocks = []
	labelsOf(domain).forEach((value, i) => (blocks[policy.blocks[i]] ??= []).push(value))
	const alone = blocks.filter((block) => block.length === 1).flat(), many = blocks.length > 1
	/** @type {[string, string, string][]} */
	const sentences = [within < 1 ? [...raise(`A stranger who sees your ${seen}${many ? " and knows your group" : ""} can raise their suspicion of one value`, before, within), "."]
		: [`Whatever your answer is, your ${seen} may reveal it.`, "", ""]]
	if (many) sentences.push([`Your ${seen} may reveal your group`, "", domain.grid ? `, one of the coloured areas of the ${domain.grid.latitude ? "map" : "grid"}.` : `: ${groups(blocks, names)}.`])
	if (alone.length) sentences.push([`If it is ${names(alone)}, the only value of its group, your ${seen} may reveal it.`, "", ""])
	return sentences
}

/** Lists the groups, at most five of them. @param {any[][]} blocks @param {(values: any[]) => string} names */
function groups(blocks, names) {
	const shown = blocks.slice(0, 5).map(names).join("; "), more = blocks.length - 5
	return more > 0 ? `${shown}; and ${more} more ${more === 1 ? "group" : "groups"}` : shown
}

/** Describes the drawn reply; null if the reply is only a code. @param {any} spec @param {string} report JSON */
export function drawnInWords({ mechanism, parameters: p, domain, report: { encoding } }, report) {
	const labels = labelsOf(domain), drawn = JSON.parse(report)
	const name = (/** @type {number} */ x) => `“${nameOf(labels[x], domain)}”`
	if (mechanism === "randomized-response" || mechanism === "truncated-geometric") return name(drawn)
	if (mechanism === "shifted-bins") {
		const ends = [Math.max(drawn - p.width + 1, 0), Math.min(drawn, labels.length - 1)]
		return ends[0] === ends[1] ? name(ends[0]) : `a value from ${ends.map(name).join(" to ")}`
	}
	if (encoding === "index" && p.sensitive && p.threshold && !p.block_size && !p.design) {
		const others = [...labels.keys()].filter((x) => !p.sensitive.includes(x))
		return name(drawn < p.sensitive.length ? p.sensitive[drawn] : others[drawn - p.sensitive.length])
	}
	if (mechanism === "block" && p.kinds.every((/** @type {any} */ kind) => kind.mechanism === "randomized-response")) {
		const inOrder = [...labels.keys()].sort((x, y) => p.blocks[x] - p.blocks[y] || x - y)
		return name(inOrder[drawn])
	}
	if (mechanism === "subset-selection" || mechanism === "unary-encoding") {
		const has = (/** @type {number} */ x) => (parseInt(drawn.slice(2 * (x >> 3), 2 * (x >> 3) + 2), 16) >> (x & 7)) & 1
		const chosen = [...labels.keys()].filter(has)
		return chosen.length ? `the set ${chosen.map(name).join(", ")}` : "the empty set"
	}
	return null
}

/** Returns sentences that describe a certificate. @param {any} certificate */
export function certificateInWords({ holds, mechanism, policy, worst, evidence }) {
	const name = (/** @type {any} */ value) => `“${nameOf(value, policy.domain)}”`
	const sentences = [`The mechanism ${mechanism.mechanism} ${holds ? "obeys" : "does not obey"} the ${policy.policy.kind} policy of this collection.`]
	if (worst.names && Array.isArray(worst.names)) {
		const between = worst.names.map((/** @type {any} */ value) => (typeof value === "string" || Array.isArray(value) ? name(value) : value))
		sentences.push(`The mechanism comes closest to the limit for ${between.join(" and ")}. A report may be at most e^${worst.epsilon} times as likely for the one as for the other, and the exact ratio is within that limit.`)
	}
	sentences.push(`Evidence: ${evidence}.`)
	return sentences
}
