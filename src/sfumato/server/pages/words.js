// What a reply can reveal, and what a certificate proves, in plain words. Every bound is given: Studio has it from the
// collector, the survey from the client library.
import { labelsOf, listed, nameOf } from "./domains.js"
import { atMost, percent } from "./dom.js"

/** What a policy (of which the planner tells) or a mechanism (whose law the device knows) lets an observer learn: one that
 * believed a value with `before`; `within`, one that knows its group, or of a secret.
 * @typedef {{ policy: any, before: number, suspicions: { values: any[], count: number, before: number, after: number }[], within: number | null }} Facts */

/** How likely a reply gives the answer away: "" where less than half of what guessing leaves is learned.
 * @param {{ guess: number, chance: number }} odds @returns {"" | "likely" | "nearly" | "always"} */
export function exposure({ guess, chance }) {
	if (chance === 1) return ""
	if (guess === 1) return "always"
	return (guess - chance) / (1 - chance) < 0.5 ? "" : guess < 0.9 ? "likely" : "nearly"
}

/** A probability that is shown neither as certain nor as impossible unless it is. @param {number} share */
export const odds = (share) => (share < 1 && share >= 0.9995 ? "more than 99.9%" : share > 0 && share < 0.0005 ? "less than 0.1%" : percent(share))

/** What stands before the odds, the odds, and what stands behind. @param {{ guess: number, chance: number }} known
 * @param {string} [whose] @returns {[string, string, string]} */
export const guessInWords = ({ guess, chance }, whose = "your") =>
	[`From the reply alone, a stranger’s best guess of ${whose} answer is right with probability `, odds(guess), ` (without the reply: ${odds(chance)}), if all answers are equally likely.`]

/** @param {string} text @returns {[string, string]} a sentence and what of it is the bound */
const raise = (text, before = 0, after = 0) => [`${text} from ${atMost(before)} to at most `, atMost(after)]

/** Sentences about what an answer can reveal: each a text, a bound to stress (or "") and what follows.
 * @param {Facts} facts @param {string} [seen] what a stranger sees @returns {[string, string, string][]} */
export function disclosureSentences({ policy: document, before: suspected, suspicions, within }, seen = "answer") {
	const { domain, policy } = document
	const names = (/** @type {any[]} */ values, count = values.length) => listed(values.map((value) => nameOf(value, domain)), 6, count)
	if (within !== null && policy.kind === "blocks") return ofBlocks(domain, policy, suspected, within, names, seen)
	if (within !== null) {
		const known = policy.distributions.anything ? "" : ", however the rest of your answer depends on it"
		const learned = /** @type {[string, string, string]} */ (within < 1
			? [...raise(`A stranger who sees your ${seen} can raise their suspicion of your “${policy.secret}”`, suspected, within), `${known}.`]
			: [`A stranger who knows how the rest of your answer depends on your “${policy.secret}” may learn it from your ${seen}.`, "", ""])
		return [learned, ["Of the rest they may learn more.", "", ""]]
	}
	/** @type {[string, string, string][]} */
	const sentences = []
	for (const { values, count, before, after } of suspicions) {
		const all = suspicions.length === 1 ? "" : ` that it is ${names(values, count)}`
		if (after < 1) sentences.push([...raise(`A stranger who sees your ${seen} can raise their suspicion${all}`, before, after), "."])
		else sentences.push([`${all ? `If it is ${names(values, count)}` : "Whatever it is"}, your ${seen} may show it.`, "", ""])
	}
	return sentences
}

/** @param {any} domain @param {any} policy @param {number} before @param {number} within @param {(values: any[]) => string} names @param {string} seen
 * @returns {[string, string, string][]} */
function ofBlocks(domain, policy, before, within, names, seen) {
	/** @type {any[][]} */
	const blocks = []
	labelsOf(domain).forEach((value, i) => (blocks[policy.blocks[i]] ??= []).push(value))
	const alone = blocks.filter((block) => block.length === 1).flat(), many = blocks.length > 1
	/** @type {[string, string, string][]} */
	const sentences = [within < 1 ? [...raise(`A stranger who sees your ${seen}${many ? " and knows your group" : ""} can raise their suspicion of one value`, before, within), "."]
		: [`Whatever it is, your ${seen} may show it.`, "", ""]]
	if (many) sentences.push([`Your ${seen} may show your group`, "", domain.grid ? ", one of the coloured areas of the map." : `: ${groups(blocks, names)}.`])
	if (alone.length) sentences.push([`If it is ${names(alone)}, which stands alone, your ${seen} may show it.`, "", ""])
	return sentences
}

/** @param {any[][]} blocks @param {(values: any[]) => string} names */
function groups(blocks, names) {
	const shown = blocks.slice(0, 5).map(names).join("; ")
	return blocks.length > 5 ? `${shown}; and ${blocks.length - 5} more groups` : shown
}

/** What was drawn, as a person would say it; null where it is only a code. @param {any} spec @param {string} report JSON */
export function drawnInWords({ mechanism, parameters: p, domain, report: { encoding } }, report) {
	const labels = labelsOf(domain), drawn = JSON.parse(report)
	const name = (/** @type {number} */ x) => `“${nameOf(labels[x], domain)}”`
	if (mechanism === "randomized-response") return name(drawn)
	if (encoding === "index" && p.sensitive && p.threshold && !p.block_size) {
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

/** @param {any} certificate */
export function certificateInWords({ holds, mechanism, policy, worst, evidence }) {
	const name = (/** @type {any} */ value) => `“${nameOf(value, policy.domain)}”`
	const sentences = [`The mechanism ${mechanism.mechanism} ${holds ? "obeys" : "does not obey"} the ${policy.policy.kind} policy of this collection.`]
	if (worst.names && Array.isArray(worst.names)) {
		const between = worst.names.map((/** @type {any} */ value) => (typeof value === "string" || Array.isArray(value) ? name(value) : value))
		sentences.push(`It comes closest to the limit between ${between.join(" and ")}, where an answer is at most e^${worst.epsilon} times likelier for the one than for the other, and the exact odds stay within that.`)
	}
	sentences.push(`What was compared: ${evidence}.`)
	return sentences
}
