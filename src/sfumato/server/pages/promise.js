// What replies reveal, for the survey page. The client library computes the numbers from the law of the mechanism (its
// `disclosure`). This file reads no epsilon and computes no law.
import { factorsOf, labelsOf } from "./domains.js"
/** @import {Collection} from "./sfumato.js" */
/** @typedef {import("./words.js").Facts} Facts */

/** Probability that a stranger assigns to a participant's answer before the reply. */
const BEFORE = 0.1

/** @param {number[]} levels */
const greatest = (levels) => levels.reduce((a, b) => Math.max(a, b), 0)

/** Returns the bounds of a collection's mechanism, the epsilon of the values that it hides, and whether a reply may reveal others.
 * @param {Collection} collection @returns {Facts & { level: number, shows: boolean }} */
export function factsOf({ policy: document, disclosure }) {
	const { domain, policy } = document, labels = labelsOf(domain), facts = { policy: document, before: BEFORE }
	const inside = (/** @type {number[]} */ levels) =>
		({ ...facts, suspicions: [], within: disclosure.after(BEFORE, greatest(levels)), level: greatest(levels), shows: true })
	if (policy.kind === "secret") {
		const at = factorsOf(domain).findIndex(({ name }) => name === policy.secret)
		return inside(disclosure.levels((x) => labels[x][at], false))
	}
	const groupOf = (/** @type {number} */ x) => policy.blocks[x]
	if (policy.kind === "blocks" && greatest(disclosure.levels(groupOf, false)) === Infinity) return inside(disclosure.levels(groupOf))
	/** @type {Map<string, Facts["suspicions"][0]>} */
	const groups = new Map()
	disclosure.beliefs(BEFORE).forEach(([before, after], x) => {
		const key = [before, after].map((share) => share.toFixed(9)).join(), group = groups.get(key) ?? { values: [], count: 0, before, after }
		group.values.push(labels[x])
		groups.set(key, { ...group, count: group.count + 1 })
	})
	const levels = disclosure.levels(), hidden = levels.filter(Number.isFinite)
	const suspicions = [...groups.values()].sort((a, b) => a.after - b.after)
	return { ...facts, suspicions, within: null, level: hidden.length ? greatest(hidden) : Infinity, shows: hidden.length < levels.length }
}

/** Returns what all replies of a survey reveal together. @param {Collection[]} collections
 * @returns {{ after: number, guess: number, chance: number, drawn: number, shows: number[] }} */
export function together(collections) {
	// A question that equals an earlier one gets the same reply, which reveals nothing more.
	const drawn = collections.filter((one, i) => !collections.slice(0, i).some((other) => one.url === other.url || one.asksAs(other)))
	const facts = drawn.map(factsOf), level = facts.reduce((sum, one) => sum + one.level, 0)
	const product = (/** @type {"guess" | "chance"} */ key) => drawn.reduce((all, { disclosure }) => all * disclosure[key], 1)
	return { after: drawn[0].disclosure.after(BEFORE, level), guess: product("guess"), chance: product("chance"), drawn: drawn.length,
		shows: drawn.filter((_, i) => facts[i].shows).map((one) => collections.indexOf(one)) }
}
