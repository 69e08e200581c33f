// Cyclic designs: the derived sets are balanced, and a spec with another design than it states is rejected.
import assert from "node:assert/strict"
import test from "node:test"
import { disclose, privatize, readMechanism, serialise } from "../sfumato.js"
import { close, distribution, published } from "../testing.js"

const singer = (prime, power, dimension, polynomial) => {
	const q = prime ** power,
		points = (t) => (q ** t - 1) / (q - 1)
	return {
		kind: "singer",
		prime,
		power,
		dimension,
		polynomial,
		modulus: points(dimension),
		blocks: 1,
		size: points(dimension - 1),
	}
}
const residues = (prime, order, cosets = 1, zero = 0) => {
	const step = (prime - 1) / order
	return {
		kind: "residues",
		prime,
		order,
		cosets,
		zero,
		modulus: prime,
		blocks: order % 2 ? step / 2 : step,
		size: cosets * order + zero,
	}
}

const FANO = singer(2, 1, 3, [1, 0, 1, 1])
/** Singer sets over fields of 2, 3, 4, 8, 9 and 19 elements; residues of odd and even order, with and without 0. */
const DESIGNS = [
	FANO,
	singer(3, 1, 3, [1, 0, 2, 1]),
	singer(3, 1, 4, [2, 0, 0, 1, 1]),
	singer(2, 2, 3, [1, 0, 0, 0, 0, 1, 1]),
	singer(2, 3, 3, [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
	singer(3, 2, 3, [2, 0, 0, 0, 0, 1, 1]),
	singer(19, 1, 3, [4, 0, 4, 1]),
	residues(3, 2),
	residues(17, 1, 5),
	residues(17, 4, 1, 1),
	residues(17, 8),
	residues(17, 16),
	residues(101, 25),
	residues(101, 10, 3, 1),
	residues(103, 3, 7),
	residues(103, 51),
	residues(103, 34, 2, 1),
]

/** Half of all reports depend on the value. */
const spec = (design, size = design.modulus, mechanism = "cyclic-design", more = {}) => ({
	mechanism,
	version: 1,
	domain: { size },
	parameters: { epsilon: "inf", design, threshold: `${2n ** 63n}`, ...more },
	report: { encoding: "index", bits: Math.ceil(Math.log2(design.blocks * design.modulus)) },
	layout: {
		frame_bits: 64,
		numbers: [
			[32, 32],
			[0, 32],
		],
		lanes: 0,
		planes: 0,
		planes_start: 0,
	},
})

/** Returns the reports of a value that the sampler may be forced to draw, in the order of their numbers. */
const forced = (mechanism, x, count) =>
	Array.from({ length: count }, (_, choice) =>
		Number(mechanism.sample(x, { bernoulli: () => true, below: () => choice })),
	)

for (const design of DESIGNS)
	test(`the base blocks are balanced: ${JSON.stringify(design)}`, () => {
		const { modulus, blocks, size } = design,
			mechanism = readMechanism(spec(design)),
			reports = forced(mechanism, 0, blocks * size)
		// In ascending order, block by block; every block has the same number of residues.
		assert.deepEqual(
			reports,
			[...new Set(reports)].sort((a, b) => a - b),
		)
		const base = Array.from({ length: blocks }, (_, j) =>
			reports.filter((y) => Math.floor(y / modulus) === j).map((y) => y % modulus),
		)
		assert.ok(base.every(({ length }) => length === size))
		const differences = new Array(modulus).fill(0)
		for (const block of base)
			for (const e of block) for (const other of block) differences[(e - other + modulus) % modulus]++
		assert.deepEqual([...new Set(differences.slice(1))], [(blocks * size * (size - 1)) / (modulus - 1)])
		// The outputs of the last value are those of the first one, shifted.
		const shifted = base.flatMap((block, j) => block.map((e) => j * modulus + ((e + modulus - 1) % modulus)))
		assert.deepEqual(forced(mechanism, modulus - 1, blocks * size), shifted)
	})

test("a spec whose design is not what it states is rejected", () => {
	const seven = residues(7, 3),
		rejected = (design, message, size = 5, name = "InvalidInput") =>
			assert.throws(() => readMechanism(spec(design, size)), { name, message }, JSON.stringify(design))
	for (const key of Object.keys(FANO)) {
		const { [key]: _, ...rest } = FANO
		assert.throws(() => readMechanism(spec(rest, 5)))
	}
	// A polynomial that is not primitive: (x + 1)^3, and one with a root of order 5 among 15.
	rejected({ ...FANO, polynomial: [1, 1, 1, 1] }, /have modulus 7 and 1 base blocks of 3 residues/)
	rejected(singer(2, 1, 4, [1, 1, 1, 1, 1]), /1 base blocks of 7 residues/)
	rejected({ ...FANO, polynomial: [1, 0, 1, 0] }, /from 1 to 1/)
	rejected({ ...FANO, polynomial: [1, 0, 2, 1] }, /from 0 to 1/)
	rejected({ ...FANO, polynomial: [1, 1, 1] }, /have 4 items/)
	for (const change of [{ modulus: 8 }, { modulus: "7" }, { size: 2 }, { size: 4 }, { blocks: 2 }])
		rejected({ ...FANO, ...change }, /a design must have modulus 7/)
	for (const change of [{ blocks: 2 }, { size: 4 }, { modulus: 11 }])
		rejected({ ...seven, ...change }, /a design must have modulus 7/)
	rejected({ ...seven, zero: 2 }, /from 0 to 1/)
	rejected({ ...seven, order: 4 }, /be an integer/)
	rejected({ ...seven, cosets: 3 }, /from 1 to 2/)
	rejected(residues(7, 3, 2, 1), /from 2 to 6/)
	rejected(residues(7, 1), /from 2 to 6/)
	rejected(residues(9, 4), /a prime number/)
	rejected({ ...FANO, prime: 4 }, /a prime number/)
	rejected(FANO, /modulus must be at least 8/, 8)
	rejected({ ...FANO, kind: "affine" }, /one of singer,residues; got "affine"/, 5, "UnknownSpec")
	rejected({ ...FANO, kind: "constructor" }, /one of singer,residues/, 5, "UnknownSpec")
	assert.throws(() => readMechanism({ ...spec(FANO), parameters: { epsilon: "1", threshold: "0" } }), {
		name: "UnknownSpec",
	})
})

test("a spec that contains the sets, or keys of another kind, is rejected", () => {
	for (const design of [
		{ ...FANO, base: [[0, 1, 3]] },
		{ ...FANO, order: 3 },
		{ ...residues(7, 3), power: 1 },
	]) {
		assert.throws(() => readMechanism(spec(design, 5)), {
			name: "InvalidInput",
			message: /keys must be among .*; got "(base|order|power)"/,
		})
	}
	assert.throws(() => readMechanism(spec(FANO, 5, "cyclic-design", { sets: [[0, 1, 3]] })), {
		name: "InvalidInput",
		message: /got "sets"/,
	})
	assert.throws(() => readMechanism(spec(FANO, 5, "cyclic-design", { sensitive: [0] })), {
		name: "InvalidInput",
		message: /got "sensitive"/,
	})
})

test("a design with too many outputs is rejected before its sets are derived", () => {
	for (const design of [
		singer(2, 1, 23, [1, ...new Array(22).fill(0), 1]),
		singer(4194301, 22, 22, []),
		singer(2039, 1, 3, [1, 1, 1, 1]),
		residues(4194319, 2097159),
		residues(4099, 1, 5),
		residues(65537, 2),
	])
		assert.throws(() => readMechanism(spec(design, 5)), { name: "InvalidInput" }, JSON.stringify(design))
})

/** Compares the computed law with all decisions of the sampler. */
function compare(mechanism) {
	const {
			law,
			domain: { size },
		} = mechanism,
		all = Array.from({ length: size }, (_, x) => x),
		rows = all.map((x) => distribution(mechanism, x, 10_000))
	const reports = [...new Set(rows.flatMap((row) => [...row.keys()]))],
		columns = reports.map((report) => rows.map((row) => row.get(report) ?? 0))
	assert.ok(
		close(
			columns.reduce((sum, column) => sum + Math.max(...column), 0),
			Number(law.greatest[0]) / Number(law.greatest[1]),
		),
	)
	for (const x of all)
		for (const other of all)
			if (x !== other) {
				assert.ok(
					close(
						Math.max(...columns.filter((column) => column[x]).map((column) => Math.log(column[x] / column[other]))),
						law.ratio(x, other),
					),
				)
			}
	return reports.length
}

test("the law of fewer values than residues counts the empty sets", () => {
	for (const design of DESIGNS.filter(({ modulus, blocks }) => modulus * blocks < 400)) {
		for (const k of [2, 3, 5, design.modulus])
			if (k <= design.modulus) assert.equal(compare(readMechanism(spec(design, k))), design.modulus * design.blocks)
	}
})

test("designs hide the sensitive values, and the values of a block", () => {
	const { parameters } = spec(FANO),
		kinds = [
			{ mechanism: "cyclic-design", size: 3, parameters },
			{ mechanism: "randomized-response", size: 2, parameters },
		]
	const parts = {
		...spec(FANO, 8),
		mechanism: "parts",
		parameters: { part_of: [0, 1, 0, 2, 1, 2, 0, 2], unprotected: [], kind: [0, 1, 0], kinds },
	}
	assert.equal(compare(readMechanism(parts)), 7 + 2 + 7)
	const changed = (/** @type {any} */ change) => ({ ...parts, parameters: { ...parts.parameters, ...change } })
	for (const change of [
		{ kind: [0, 0, 0] },
		{ kind: [0, 2, 0] },
		{ kinds: [{ ...kinds[0], size: 2 }, kinds[1]] },
		{ unprotected: [0] },
		{ unprotected: undefined },
	])
		assert.throws(() => readMechanism(changed(change)))
	const open = { part_of: Array(8).fill(0), kind: [0] },
		four = [{ mechanism: "cyclic-design", size: 4, parameters }]
	assert.equal(compare(readMechanism(changed({ ...open, unprotected: [0, 3, 5, 6], kinds: four }))), 7 + 4)
	assert.throws(() => readMechanism(changed({ ...open, unprotected: [3, 0, 5, 6], kinds: four })))
})

test("sets that are too many to weigh are bounded", () => {
	const mechanism = readMechanism(spec(singer(2, 1, 15, [1, 1, ...new Array(13).fill(0), 1]))),
		{
			law,
			domain: { size },
		} = mechanism
	const prior = new Array(size).fill(1 / size),
		level = law.ratio(0, 1),
		verdict = (epsilon) =>
			disclose(mechanism, { domain: { size }, policy: { kind: "prior", prior: prior.map(String), epsilon } }).proved
	for (const bound of law.against(prior)) assert.ok(close(bound, level, 1e-9))
	assert.ok(verdict(`${level + 1e-6}`))
	assert.throws(() => verdict(`${level - 1e-6}`), { name: "PolicyViolated" })
})

test("a report about 1,000 values has two bytes", () => {
	const mechanism = readMechanism(
		published("reports/cyclic-design.json").find(({ spec }) => spec.domain.size === 1000).spec,
	)
	assert.equal(serialise(mechanism, privatize(mechanism, 999)).length, 2)
})
