// The mechanisms for a mean: rejected parameters, and laws of many values.
import assert from "node:assert/strict"
import test from "node:test"
import { disclose, privatize, readMechanism } from "../sfumato.js"
import { close, distribution, published } from "../testing.js"

const ONE = 2n ** 64n
const [bit] = published("one-bit.json"),
	[bins] = published("shifted-bins.json"),
	[noise] = published("truncated-geometric.json")
const read = ({ spec }, parameters, size = 5) => readMechanism({ ...spec, domain: { size }, parameters })

test("parameters out of range are rejected", () => {
	const half = `${ONE / 2n}`,
		thresholds = [half, half]
	for (const [vector, parameters, size] of [
		[bit, {}],
		[bit, { step: `${ONE / 4n}` }], // the least value would never report 1
		[bit, { step: "-2" }],
		[bit, { step: "2" }, 1],
		[bit, { step: "2", positions: ["0", "1", "2", "3"] }],
		[bit, { step: "2", positions: ["1", "2", "3", "4", "5"] }],
		[bit, { step: "2", positions: ["0", "0", "0", "0", "0"] }],
		[bit, { step: "2", positions: ["0", "1", "2", "3", `${2n ** 40n + 1n}`] }],
		[bit, { step: "2", base: "5" }],
		[bins, { width: 1, share: "0", thresholds }],
		[bins, { width: 5, share: "0", thresholds }],
		[bins, { width: 2, share: "1", thresholds }], // all offsets have the same number of bins
		[bins, { width: 3, share: `${ONE + 1n}`, thresholds }],
		[bins, { width: 3, share: "1", thresholds: [half] }],
		[bins, { width: 3, share: "1", thresholds: [half, `${ONE + 1n}`] }],
		[bins, { width: 3, share: "1", thresholds, offsets: 3 }],
		[noise, { ratio: `${ONE + 1n}` }],
		[noise, { ratio: half, weights: [half] }],
		[noise, { ratio: half }, 1],
		[noise, { ratio: half }, 2 ** 16 + 1],
	])
		assert.throws(() => read(vector, parameters, size), { name: "InvalidInput" }, JSON.stringify(parameters))
	assert.ok(read(bit, { step: `${ONE / 4n - 2n}` }))
	assert.ok(read(bins, { width: 3, share: "1", thresholds }))
	assert.ok(read(noise, { ratio: `${ONE}` }))
})

/** Returns whether the mechanism is accepted at this level between all pairs. */
function obeys(mechanism, epsilon) {
	try {
		return disclose(mechanism, { domain: {}, policy: { kind: "uniform", epsilon } }).proved
	} catch (error) {
		assert.equal(error.name, "PolicyViolated")
		return false
	}
}

test("the laws of many values are compared by their widest ratio", () => {
	const levels = {
		"one-bit": ["2", "1.999"],
		"shifted-bins": ["1/2", "0.499"],
		"truncated-geometric": ["4.999", "4.998"],
	}
	for (const [name, [level, less]] of Object.entries(levels)) {
		const { spec } = published(`${name}.json`).find(({ spec }) => spec.domain.size > 4096),
			mechanism = readMechanism(spec)
		assert.deepEqual([obeys(mechanism, level), obeys(mechanism, less)], [true, false], name)
	}
})

test("between few and many values, ratios are bounded and likelihoods are exact", () => {
	const size = 140,
		ratio = `${ONE / 3n}`,
		mechanism = read(noise, { ratio }, size),
		{ law } = mechanism
	const columns = law.columns(),
		exact = (x, other) => Math.max(...columns.map((column) => Math.log(column[x] / column[other])))
	for (let d = 1; d < size; d++)
		for (const x of [0, Math.floor((size - d) / 2), size - 1 - d]) {
			assert.ok(
				law.ratio(x, x + d) >= exact(x, x + d) - 1e-12 && law.ratio(x + d, x) >= exact(x + d, x) - 1e-12,
				`${x} ${d}`,
			)
		}
	// The bound of neighbours is attained, and that of all values by the ends of column 1.
	assert.ok(close(law.ratio(70, 71), exact(70, 71)) && close(law.ratio(1, size - 1), exact(1, size - 1)))
	// The weights cannot fall below 1, so the ratio of the ends is less than 3^139.
	assert.ok(law.ratio(0, size - 1) < Math.log(2 ** 62))
	const greatest = columns.reduce((sum, column) => sum + Math.max(...column), 0) / 2 ** 62
	assert.ok(close(greatest, Number(law.greatest[0]) / Number(law.greatest[1])))
	for (const x of [0, 71, size - 1]) {
		const probabilities = distribution(mechanism, x, 10_000)
		columns.forEach((column, y) =>
			assert.ok(close(probabilities.get(BigInt(y)) ?? 0, column[x] / 2 ** 62), `${x} ${y}`),
		)
	}
})

test("a report of bins is the offset with a bin of the value, or with another bin", () => {
	const size = 200,
		width = 60,
		mechanism = read(bins, { width, share: `${ONE / 3n}`, thresholds: [`${ONE}`, `${ONE}`] }, size)
	for (let x = 0; x < size; x++) {
		// Without other bins, the value is one of the `width` values that end with the report.
		const report = Number(privatize(mechanism, x))
		assert.ok(report >= x && report < x + width)
	}
	assert.ok(!obeys(mechanism, "100"))
})
