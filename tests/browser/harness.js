// What the tests run in the page: vectors replayed, samples drawn, randomness made repeatable.
import { bitDraws, disclose, privatize, readLevel, readMechanism, serialise } from "/static/sfumato.js"

const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16))
const hex = (array) => Array.from(array, (byte) => byte.toString(16).padStart(2, "0")).join("")

/** Every case of these vectors whose decisions or report differ from the recorded ones. */
export function replay(vectors) {
	const wrong = []
	for (const { spec, cases } of vectors) {
		const mechanism = readMechanism(spec)
		for (const known of cases) {
			const words = known.auxiliary.map(BigInt)
			const auxiliary = (width) => BigInt.asUintN(width, words.shift())
			const draws = bitDraws(auxiliary, mechanism.layoutOf(known.value), bytes(known.frame))
			const decisions = []
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
			let report = "none: it asked for more words than there are"
			try {
				report = hex(serialise(mechanism, mechanism.sample(known.value, recording)))
			} catch (error) {
				if (!(error instanceof TypeError)) throw error
			}
			const same = report === known.report && JSON.stringify(decisions) === JSON.stringify(known.decisions)
			if (!same || words.length) wrong.push({ spec, known, report, decisions, left: words.length })
		}
	}
	return wrong
}

/** Serialised reports of the value with index x, one after the other in hex. */
export function sample(spec, x, count) {
	const mechanism = readMechanism(spec)
	let reports = ""
	for (let i = 0; i < count; i++) reports += hex(serialise(mechanism, privatize(mechanism, x)))
	return reports
}

/**
 * What the module makes of the law of each mechanism: the sum of greatest likelihoods, and all ratios, infinite as
 * null.
 */
export const laws = (specs) =>
	specs.map((spec) => {
		const { law, domain } = readMechanism(spec),
			places = Array.from({ length: domain.size }, (_, x) => x)
		return {
			greatest: law.greatest.map(String),
			ratios: places.map((x) => places.map((other) => (x === other ? 0 : law.ratio(x, other)))),
		}
	})

/** In hexadecimal digits: there may be many. */
export const odds = (specs) => specs.map((spec) => readMechanism(spec).law.greatest.map((part) => part.toString(16)))

/** The ratios to the average over a prior. */
export const against = (pairs) => pairs.map(([spec, prior]) => readMechanism(spec).law.against(prior))

/** Whether each mechanism is taken under its policy: proved, not decided, or the name of the refusal. */
export const verdicts = (pairs) =>
	pairs.map(([spec, policy]) => {
		try {
			return disclose(readMechanism(spec), policy).proved ? "proved" : "undecided"
		} catch (error) {
			return error.name
		}
	})

/** The odds that are stated: of a right guess, and for each value the greatest level. */
export const disclosures = (pairs) =>
	pairs.map(([spec, policy]) => {
		const { guess, chance, levels } = disclose(readMechanism(spec), policy)
		return { guess, chance, levels: levels() }
	})

export const levels = (texts) => texts.map(readLevel)

/** Makes this page's random numbers repeatable, and so insecure: splitmix64, a word for eight bytes. */
export function seed(start) {
	let state = BigInt(start)
	const word = () => {
		state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
		let z = state
		z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n)
		z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn)
		return z ^ (z >> 31n)
	}
	crypto.getRandomValues = (array) => {
		const filled = new BigUint64Array(Math.ceil(array.byteLength / 8)).map(word)
		const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
		bytes.set(new Uint8Array(filled.buffer, 0, array.byteLength))
		return array
	}
}
