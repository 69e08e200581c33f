// What replies reveal, for the survey page. The client library computes the numbers from the law of the mechanism (its
// `disclosure`). This file reads no epsilon and computes no law.
import { factorsOf, labelsOf } from "./domains.js"
/** @import {Collection} from "./sfumato.js" */
/** @typedef {import("./words.js").Facts} Facts */

/** Probability that a stranger assigns to a participant's answer before the reply. */
const BEFORE = 0.1

/** @param {number[]} levels */
const greatest = (levels) => levels.reduce((a, b) => Math.max(a, b), 0)

/**
 * Returns the bounds of a collection's mechanism, the epsilon of the values that it hides, and whether a reply may
 * reveal others.
 * @param {Pick<Collection, "policy" | "disclosure">} collection
 * @returns {Facts & { level: number, shows: boolean }}
 */
export function factsOf({ policy: document, disclosure }) {
	const { domain, policy } = document,
		labels = labelsOf(domain),
		facts = { policy: document, before: BEFORE, across: null }
	const after = (/** @type {number} */ level) => disclosure.after(BEFORE, level)
	if (policy.kind === "secret") {
		const at = factorsOf(domain).findIndex(({ name }) => name === policy.secret),
			level = greatest(disclosure.levels((x) => labels[x][at], false))
		return { ...facts, suspicions: [], within: after(level), level, shows: true }
	}
	if (policy.kind === "blocks") {
		const groupOf = (/** @type {number} */ x) => policy.blocks[x],
			within = disclosure.levels(groupOf),
			across = greatest(disclosure.levels(groupOf, false))
		const level = across === Infinity ? greatest(within) : Math.max(across, greatest(within))
		return {
			...facts,
			suspicions: alike(
				labels,
				within.map((one) => [BEFORE, after(one)]),
			),
			within: after(greatest(within)),
			across: across === Infinity ? null : after(across),
			level,
			shows: across === Infinity,
		}
	}
	const levels = disclosure.levels(),
		hidden = levels.filter(Number.isFinite)
	return {
		...facts,
		suspicions: alike(labels, disclosure.beliefs(BEFORE)),
		within: null,
		level: hidden.length ? greatest(hidden) : Infinity,
		shows: hidden.length < levels.length,
	}
}

/**
 * Groups values with the same probabilities before and after the reply.
 * @param {any[]} labels
 * @param {number[][]} beliefs
 * @returns {Facts["suspicions"]}
 */
function alike(labels, beliefs) {
	/** @type {Map<string, Facts["suspicions"][0]>} */
	const groups = new Map()
	beliefs.forEach(([before, after], x) => {
		const key = [before, after].map((share) => share.toFixed(9)).join(),
			group = groups.get(key) ?? { values: [], count: 0, before, after }
		group.values.push(labels[x])
		groups.set(key, { ...group, count: group.count + 1 })
	})
	return [...groups.values()].sort((a, b) => a.after - b.after)
}

/**
 * Returns the law and the policy of all replies about one unchanged answer, if the question returns.
 * @param {Collection} collection
 */
export const lifetimeOf = ({ policy: { domain }, disclosure: { lifetime }, mechanism: { parameters } }) =>
	lifetime && /** @type {Pick<Collection, "policy" | "disclosure">} */ ({
		policy: { domain, policy: parameters.lifetime },
		disclosure: lifetime,
	})

/**
 * Returns the greatest level of all replies to a collection: those about each of its permanent answers add up.
 * @param {Collection} collection
 */
function totalLevel(collection) {
	const { level } = factsOf(lifetimeOf(collection) ?? collection)
	return level && level * (collection.most ?? 1)
}

/**
 * Returns the bounds on a stranger's belief after one reply, after all replies about an unchanged answer, and after all
 * replies about all
 * permanent answers.
 * @param {Collection} collection
 */
export function bothLevels(collection) {
	const all = lifetimeOf(collection),
		{ after } = collection.disclosure
	return (
		all && {
			before: BEFORE,
			one: after(BEFORE, factsOf(collection).level),
			all: after(BEFORE, factsOf(all).level),
			total: after(BEFORE, totalLevel(collection)),
		}
	)
}

/** Returns what all replies of a survey reveal together. @param {Collection[]} collections
 * @returns {{ after: number, guess: number, chance: number, drawn: number, shows: number[] }} */
export function together(collections) {
	// A question that equals an earlier one gets the same reply, which reveals nothing more.
	const drawn = collections.filter(
		(one, i) => !collections.slice(0, i).some((other) => one.url === other.url || one.asksAs(other)),
	)
	const facts = drawn.map((one) => factsOf(lifetimeOf(one) ?? one)),
		level = drawn.reduce((sum, one) => sum + totalLevel(one), 0)
	const product = (/** @type {"guess" | "chance"} */ key) =>
		drawn.reduce((all, one) => all * (lifetimeOf(one) ?? one).disclosure[key], 1)
	return {
		after: drawn[0].disclosure.after(BEFORE, level),
		guess: product("guess"),
		chance: product("chance"),
		drawn: drawn.length,
		shows: drawn.filter((_, i) => facts[i].shows).map((one) => collections.indexOf(one)),
	}
}
