// What the tests share: published vectors, their replay, and the law of a sampler by going through all of its decisions.
import { readFileSync, readdirSync } from "node:fs"
import { webcrypto } from "node:crypto"

// Node 18 has it, but not as a global.
globalThis.crypto ??= webcrypto

const VECTORS = new URL("../../vectors/", import.meta.url)

/** @param {string} path below the folder of vectors */
export const published = (path) => JSON.parse(readFileSync(new URL(path, VECTORS), "utf8"))

/** The vector files of a folder, by name. */
export const folder = (path = "./") => readdirSync(new URL(path, VECTORS)).filter((name) => name.endsWith(".json")).sort()
	.map((name) => [name.replace(".json", ""), published(path + name)])

/** Whether a vector has few values: a mechanism over a million of them takes a while to read. */
export const isSmall = ({ spec }) => !(spec.domain.size > 10_000)

export const source = () => readFileSync(new URL("sfumato.js", import.meta.url), "utf8")

/** The module with one change of its text, to show that tests find it. */
export function changed(right, wrong) {
	const text = source()
	if (text.split(right).length !== 2) throw new Error(`not there exactly once: ${right}`)
	return import(`data:text/javascript,${encodeURIComponent(text.replace(right, () => wrong))}`)
}

export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16))
export const toHex = (bytes) => Buffer.from(bytes).toString("hex")
/** Little-endian. */
export const toNumber = (bytes) => BigInt(`0x${toHex(bytes.slice().reverse()) || "0"}`)

/** Numerator and denominator of "n/d" or "n". */
export const fraction = (text) => [...text.split("/"), "1"].slice(0, 2).map(BigInt)

/** The logarithm of a ratio that is "n/d", "n" or "inf". */
export function logarithm(text) {
	if (text === "inf") return Infinity
	const [n, d] = fraction(text).map(Number)
	return Math.log(n / d)
}

export const close = (found, right, tolerance = 1e-12) => found === right || Math.abs(found - right) <= tolerance * Math.max(1, Math.abs(right))

/** The number of cases of a vector, and those whose decisions or report differ from the recorded ones. */
export function replay(client, { spec, cases }) {
	const mechanism = client.readMechanism(spec), wrong = []
	for (const known of cases) {
		const words = known.auxiliary.map(BigInt), decisions = []
		const auxiliary = (width) => {
			if (!words.length) throw new RangeError("more words were asked for than were recorded")
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

/** The probability of every report of the value with index x, by going through all decisions of the sampler; undefined if there
 * are more than `most` sequences of them. */
export function distribution(mechanism, x, most) {
	const found = new Map(), path = []
	do {
		let next = 0, probability = 1
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
		found.set(report, (found.get(report) ?? 0) + probability)
		// The last decision that has another possible outcome takes it; those after it begin again.
		while (path.length) {
			const last = path[path.length - 1], after = last.odds.findIndex((odds, i) => i > last.taken && odds > 0)
			if (after > 0) {
				last.taken = after
				break
			}
			path.pop()
		}
	} while (path.length)
	return found
}

/** Run with other globals than there are: a browser's, or random bytes that the test knows. */
export async function withGlobals(globals, run) {
	const before = Object.fromEntries(Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]))
	try {
		for (const [name, value] of Object.entries(globals)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
		return await run()
	} finally {
		for (const [name, descriptor] of Object.entries(before)) {
			if (descriptor) Object.defineProperty(globalThis, name, descriptor)
			else delete globalThis[name]
		}
	}
}

/** What opening a collection gives whose document is this text. */
export const opened = ({ openCollection }, text, address = "https://collector.example/v1/collections/abc") => withGlobals({
	location: { href: "https://collector.example/" },
	fetch: async () => ({ ok: true, text: async () => text }),
}, () => openCollection(address))

/** The text of a collection. Documents are texts already: what they are hashed as. */
export const collection = ({ mechanism, policy, hash, id = "abc" }) =>
	`{"id": "${id}", "title": "A question", "state": "open", "submission": "open", "asks": "", "mechanism_hash": "${hash}", "mechanism": ${mechanism}, "policy": ${policy}}`
