// What an answer can reveal, and what a certificate proves, in plain words.
import { labelsOf, listed, nameOf } from "./domains.js"
import { atMost } from "./dom.js"

/** What a policy's level is as a number: "1", "3/2", "ln 3", "1/2*ln 3", "inf". @param {any} level */
export function levelOf(level) {
	const found = /^(?:(\d+(?:\.\d+)?)(?:\/(\d+))?)?(?:\*?ln (\d+)(?:\/(\d+))?)?$/.exec(String(level))
	if (level === "inf") return Infinity
	if (!found || !found[0]) return NaN
	const [, n, d, of, by] = found
	return (Number(n ?? 1) / Number(d ?? 1)) * (of ? Math.log(Number(of) / Number(by ?? 1)) : 1)
}

/** What is believed with `before` is believed at most so much after an answer of this level. @param {number} before @param {number} level */
const moved = (before, level) => before / (before + (1 - before) * Math.exp(-level))

/** @param {string} text @returns {[string, string]} a sentence and what of it is the bound */
const raise = (text, before = 0, after = 0) => [`${text} from ${atMost(before)} to at most `, atMost(after)]

/** Sentences about what an answer can reveal: each a text, a bound to stress (or "") and what follows.
 * @param {any} checked the answer of `check` @param {string} [seen] what a stranger sees @returns {[string, string, string][]} */
export function reveals({ policy: document, suspicions }, seen = "answer") {
	const { domain, policy } = document
	const names = (/** @type {any[]} */ values, count = values.length) => listed(values.map((value) => nameOf(value, domain)), 6, count)
	if (policy.kind === "blocks" && policy.across === "inf") return ofBlocks(domain, policy, suspicions[0].before, names, seen)
	/** @type {[string, string, string][]} */
	const found = []
	if (policy.kind === "secret") {
		const level = levelOf(policy.epsilon), { before } = suspicions[0]
		const parts = raise(`A stranger who sees your ${seen} can raise their suspicion of your “${policy.secret}”`, before, moved(before, level))
		return [[...parts, "."], ["Of the rest they may learn more.", "", ""]]
	}
	for (const { values, count, before, after } of suspicions) {
		const all = suspicions.length === 1 ? "" : ` that it is ${names(values, count)}`
		if (after < 1) found.push([...raise(`A stranger who sees your ${seen} can raise their suspicion${all}`, before, after), "."])
		else found.push([`${all ? `If it is ${names(values, count)}` : "Whatever it is"}, your ${seen} may show it.`, "", ""])
	}
	return found
}

/** For which values a reply may be the answer in clear, as far as the policy goes.
 * @param {any} checked the answer of `check` @returns {"all" | "some" | "none"} */
export function inClear({ least, policy: { domain, policy }, suspicions }) {
	if (least.startsWith("inf (nothing") || (policy.kind === "prior" && levelOf(policy.epsilon) === Infinity)) return "all"
	if (policy.kind === "secret") return "none" // the secret is part of every answer
	if (policy.kind === "blocks" && policy.across === "inf") {
		const { alone, levels } = blocksOf(domain, policy)
		return alone.length || levels.includes(Infinity) ? "some" : "none"
	}
	return suspicions.some((/** @type {any} */ { after }) => after >= 1) ? "some" : "none"
}

/** @param {any} domain @param {any} policy */
function blocksOf(domain, policy) {
	/** @type {any[][]} */
	const blocks = []
	labelsOf(domain).forEach((value, i) => (blocks[policy.blocks[i]] ??= []).push(value))
	return { blocks, levels: [policy.epsilon].flat().map(levelOf), alone: blocks.filter((block) => block.length === 1).flat() }
}

/** @param {any} domain @param {any} policy @param {number} before @param {(values: any[]) => string} names @param {string} seen
 * @returns {[string, string, string][]} */
function ofBlocks(domain, policy, before, names, seen) {
	const { blocks, levels, alone } = blocksOf(domain, policy), many = blocks.length > 1
	/** @type {[string, string, string][]} */
	const found = [[...raise(`A stranger who sees your ${seen}${many ? " and knows your group" : ""} can raise their suspicion of one value`,
		before, moved(before, Math.max(...levels))), "."]]
	if (many) found.push([`Your ${seen} may show your group`, "", domain.grid ? ", one of the coloured areas of the map." : `: ${groups(blocks, names)}.`])
	if (alone.length) found.push([`If it is ${names(alone)}, which stands alone, your ${seen} may show it.`, "", ""])
	return found
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
	const said = [`The mechanism ${mechanism.mechanism} ${holds ? "obeys" : "does not obey"} the ${policy.policy.kind} policy of this collection.`]
	if (worst.names && Array.isArray(worst.names)) {
		const between = worst.names.map((/** @type {any} */ value) => (typeof value === "string" || Array.isArray(value) ? name(value) : value))
		said.push(`It comes closest to the limit between ${between.join(" and ")}, where an answer is at most e^${worst.epsilon} times likelier for the one than for the other, and the exact odds stay within that.`)
	}
	said.push(`What was compared: ${evidence}.`)
	return said
}
