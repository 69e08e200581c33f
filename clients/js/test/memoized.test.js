// Permanent answers and reports about them: both levels are computed and checked, and specs that do not fit together
// are rejected.
import assert from "node:assert/strict"
import test from "node:test"
import * as client from "../sfumato.js"
import { close, distribution, published } from "../testing.js"

const VECTORS = published("memoized.json")
const copy = (document) => JSON.parse(JSON.stringify(document))
const [uniform] = VECTORS,
	BLOCKS = VECTORS.find(({ spec }) => spec.parameters.mechanism === "parts" && spec.parameters.keep.length > 1),
	TABLE = VECTORS.find(({ spec }) => spec.parameters.mechanism === "table")
const SUBSETS = VECTORS.find(
	({ spec: { parameters: p } }) => p.mechanism === "subset-selection" && p.permanent.size < p.single.size,
)

/** Opens a changed spec under a uniform policy of this level. */
function disclosed({ spec }, change = () => {}, epsilon = "1") {
	const changed = copy(spec)
	change(changed.parameters)
	return client.disclose(client.readMechanism(changed), {
		domain: changed.domain,
		policy: { kind: "uniform", epsilon },
	})
}

test("both levels are disclosed", () => {
	const { levels, lifetime, guess } = disclosed(uniform)
	assert.ok(levels().every((level) => close(level, 1, 1e-9)))
	assert.ok(lifetime.levels().every((level) => close(level, 2, 1e-9)))
	assert.ok(lifetime.guess > guess)
})

test("a mechanism that violates either policy is rejected", () => {
	assert.throws(() => disclosed(uniform, undefined, "0.99"), { name: "PolicyViolated" })
	assert.throws(() => disclosed(uniform, (p) => (p.lifetime.epsilon = "1.99")), { name: "PolicyViolated" })
	assert.ok(disclosed(uniform, (p) => (p.lifetime.epsilon = "2.01")).proved)
})

const FAULTS = [
	["a larger probability of the permanent answer", uniform, (p) => (p.keep = [["1", "1"]])],
	[
		"a permanent answer at a lower level",
		uniform,
		(p) => Object.assign(p, { permanent: p.single, single: p.permanent, keep: [p.keep[0].reverse()] }),
	],
	["the odds of another part", BLOCKS, (p) => p.keep.reverse()],
	["another partition", BLOCKS, (p) => (p.permanent.part_of = [0, 0, 0, 1, 1])],
	["other unprotected values", BLOCKS, (p) => (p.permanent.unprotected = [0])],
	["larger permanent sets", SUBSETS, (p) => (p.permanent.size = p.single.size + 1)],
	[
		"a table that is not a mixture",
		TABLE,
		(p) => ([p.single.weights[0][0], p.single.weights[0][1]] = [p.single.weights[0][1], p.single.weights[0][0]]),
	],
	["another probability for a table", TABLE, (p) => (p.keep = [["1", "2"]])],
	["an unknown key", uniform, (p) => (p.memory = 1)],
	["a negative number of changes", uniform, (p) => (p.max_changes = -1)],
	["a period of no waves", uniform, (p) => (p.refresh_every = "x")],
]

for (const [name, vector, change] of FAULTS)
	test(`a memoized spec is rejected: ${name}`, () => {
		assert.ok(disclosed(vector, undefined, "inf"))
		assert.throws(() => disclosed(vector, change, "inf"), { name: "InvalidInput" })
	})

for (const vector of VECTORS.filter(
	({ spec: { domain, parameters: p } }) => domain.values && !(p.mechanism === "parts" && p.keep.length > 1),
)) {
	test(`two reports about one answer reveal at most the answer: ${vector.hash.slice(0, 8)}`, () => {
		const mechanism = client.readMechanism(vector.spec),
			{
				memory,
				law,
				domain: { size },
			} = mechanism
		/** Two waves of one device. */
		const sample = (x, draws) => {
			const answer = memory.draw(x, draws)
			return `${memory.report(answer, draws)},${memory.report(answer, draws)}`
		}
		const rows = Array.from({ length: size }, (_, x) => distribution({ sample }, x, 1e5)),
			answers = Array.from({ length: size }, (_, x) =>
				distribution({ sample: (x, draws) => memory.draw(x, draws) }, x, 1e4),
			)
		for (let x = 0; x < size; x++)
			for (let other = 0; other < size; other++) {
				if (x === other) continue
				const worst = (laws) =>
					Math.max(...[...laws[x]].map(([report, p]) => Math.log(p / (laws[other].get(report) ?? 0))))
				const joint = worst(rows)
				assert.ok(close(worst(answers), memory.law.ratio(x, other)))
				assert.ok(joint >= law.ratio(x, other) - 1e-12 && joint <= memory.law.ratio(x, other) + 1e-12)
			}
	})
}

test("values of one bucket share a permanent answer, and all answers of a person have one hash function", () => {
	const spec = copy(published("local-hashing.json")[0].spec),
		{ epsilon, buckets, threshold } = spec.parameters
	const parameters = {
		mechanism: "local-hashing",
		single: { epsilon, buckets, threshold },
		permanent: { epsilon, buckets, threshold },
		keep: [[threshold, threshold]],
		lifetime: { kind: "uniform", epsilon },
		max_changes: null,
		refresh_every: null,
	}
	const { memory } = client.readMechanism({ ...spec, mechanism: "memoized", parameters })
	assert.equal(memory.most, 2)
	for (let x = 0; x < 5; x++)
		for (const [answer] of distribution({ sample: (x, draws) => memory.draw(x, draws, 13n) }, x, 100))
			assert.equal(answer / 2n, 6n)
	// Hash function 6 has the binary digits 110: the bucket is the parity of bits 1 and 2 of the value.
	assert.deepEqual(
		[0, 1, 2, 3, 4].map((x) => memory.keyOf(x, 13n)),
		[0, 0, 1, 1, 1],
	)
})
