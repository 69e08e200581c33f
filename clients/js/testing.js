// Helpers for the tests: published vectors, their replay, and the law of a sampler from all sequences of its decisions.
import { readFileSync, readdirSync } from "node:fs"
import { webcrypto } from "node:crypto"

// Node 18 does not have it as a global.
globalThis.crypto ??= webcrypto

const VECTORS = new URL("../../vectors/", import.meta.url)

/** Reads a vector file. @param {string} path relative to the folder of vectors */
export const published = (path) => JSON.parse(readFileSync(new URL(path, VECTORS), "utf8"))

/** Returns the vector files of a folder, by name. */
export const folder = (path = "./") =>
	readdirSync(new URL(path, VECTORS))
		.filter((name) => name.endsWith(".json"))
		.sort()
		.map((name) => [name.replace(".json", ""), published(path + name)])

/** Returns whether a vector has few values; a mechanism over a million values takes long to read. */
export const isSmall = ({ spec }) => !(spec.domain.size > 10_000)

export const source = () => readFileSync(new URL("sfumato.js", import.meta.url), "utf8")

/** Imports the module with one change of its source, to show that the tests detect it. */
export function changed(right, wrong) {
	const code = source()
	if (code.split(right).length !== 2) throw new Error(`the module must contain this code exactly once: ${right}`)
	return import(`data:text/javascript,${encodeURIComponent(code.replace(right, () => wrong))}`)
}

export const fromHex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16))
export const toHex = (bytes) => Buffer.from(bytes).toString("hex")
/** Reads little-endian bytes as a number. */
export const toNumber = (bytes) => BigInt(`0x${toHex(bytes.slice().reverse()) || "0"}`)

/** Returns numerator and denominator of "n/d" or "n". */
export const fraction = (ratio) => [...ratio.split("/"), "1"].slice(0, 2).map(BigInt)

/** Returns the logarithm of a ratio that is "n/d", "n" or "inf". */
export function logarithm(ratio) {
	if (ratio === "inf") return Infinity
	const [n, d] = fraction(ratio).map(Number)
	return Math.log(n / d)
}

export const close = (actual, expected, tolerance = 1e-12) =>
	actual === expected || Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected))

/** Returns the number of cases of a vector, and the cases whose decisions or report differ from the recorded ones. */
export function replay(client, { spec, cases }) {
	const mechanism = client.readMechanism(spec),
		wrong = []
	for (const known of cases) {
		const words = known.auxiliary.map(BigInt),
			decisions = []
		const auxiliary = (width) => {
			if (!words.length) throw new RangeError("the sampler requested more words than were recorded")
			return BigInt.asUintN(width, words.shift())
		}
		const draws = client.bitDraws(auxiliary, mechanism.layoutOf(known.value), fromHex(known.frame))
		const recording = {
			bernoulli(n, d) {
				const result = draws.bernoulli(n, d)
				decisions.push(["bernoulli", [`${n}`, `${d}`], Number(result)])
				return result
			},
			below(m) {
				const result = draws.below(m)
				decisions.push(["below", [`${m}`], result])
				return result
			},
		}
		let report = ""
		try {
			report = toHex(client.serialise(mechanism, mechanism.sample(known.value, recording)))
		} catch (error) {
			if (!(error instanceof RangeError)) throw error
		}
		const same = report === known.report && JSON.stringify(decisions) === JSON.stringify(known.decisions)
		if (!same || words.length) wrong.push({ known, report, decisions, left: words.length })
	}
	return { cases: cases.length, wrong }
}

/**
 * Returns the probability of every report of the value with index x, from all sequences of decisions of the sampler;
 * undefined if there
 * are more than `most` sequences.
 */
export function distribution(mechanism, x, most) {
	const probabilities = new Map(),
		path = []
	do {
		let next = 0,
			probability = 1
		if (!most--) return
		const decide = (odds) => {
			if (next === path.length) path.push({ odds, taken: odds.findIndex(Boolean) })
			const { taken } = path[next++]
			probability *= odds[taken]
			return taken
		}
		const share = (n, d) => Number(n) / Number(d)
		const report = mechanism.sample(x, {
			bernoulli: (n, d) => decide([share(d - n, d), share(n, d)]) === 1,
			below: (m) => decide(new Array(Number(m)).fill(1 / Number(m))),
		})
		probabilities.set(report, (probabilities.get(report) ?? 0) + probability)
		// The last decision with another possible outcome takes it; the decisions after it start over.
		while (path.length) {
			const last = path[path.length - 1],
				after = last.odds.findIndex((odds, i) => i > last.taken && odds > 0)
			if (after > 0) {
				last.taken = after
				break
			}
			path.pop()
		}
	} while (path.length)
	return probabilities
}

/** Runs a function with other globals, such as those of a browser, or random bytes that the test knows. */
export async function withGlobals(globals, run) {
	const before = Object.fromEntries(
		Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]),
	)
	try {
		for (const [name, value] of Object.entries(globals))
			Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
		return await run()
	} finally {
		for (const [name, descriptor] of Object.entries(before)) {
			if (descriptor) Object.defineProperty(globalThis, name, descriptor)
			else delete globalThis[name]
		}
	}
}

/** Opens a collection whose document is this JSON. */
export const opened = ({ openCollection }, json, address = "https://collector.example/v1/collections/abc") =>
	withGlobals(
		{
			location: { href: "https://collector.example/" },
			fetch: async () => ({ ok: true, text: async () => json }),
		},
		() => openCollection(address),
	)

/**
 * Returns the JSON of a collection. Mechanism and policy are JSON strings, because their hash depends on the spelling.
 */
export const collection = ({ mechanism, policy, hash, id = "abc" }) =>
	`{"id": "${id}", "title": "A question", "state": "open", "submission": "open", "asks": "", "mechanism_hash": "${hash}", "mechanism": ${mechanism}, "policy": ${policy}}`
