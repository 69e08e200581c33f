// The law that the module computes is the exact law of the mechanism and of the sampler that runs.
import assert from "node:assert/strict"
import test from "node:test"
import * as client from "../sfumato.js"
import { changed, close, distribution, folder, fraction, isSmall, logarithm, published } from "../testing.js"

const LAWS = folder("laws/")
const EPSILONS = ["0", "0.1", "0.5", "1", "2", "5", "10", "20", "inf"]
/** Mechanisms whose closed forms exist only for finite epsilon. */
const FINITE = ["composed-subsets", "nested-cyclic"]
const places = (size) => Array.from({ length: size }, (_, x) => x)

/** Returns all differences from the published law. */
function differences({ readMechanism }, { spec, greatest, ratios, pairs, prior }) {
	const {
			law,
			domain: { size },
		} = readMechanism(spec),
		wrong = []
	const [n, d] = fraction(greatest),
		[m, e] = law.greatest
	if (n * e !== m * d) wrong.push(["greatest", `${m}/${e}`])
	for (const x of places(size))
		for (const other of places(size)) {
			const actual = x === other ? 0 : law.ratio(x, other)
			if (!close(actual, logarithm(ratios[pairs[x][other]]))) wrong.push([x, other, actual])
		}
	const all = prior.weights.reduce((sum, weight) => sum + weight, 0)
	const bounds = size > 1 ? law.against?.(prior.weights.map((weight) => weight / all)) : undefined
	bounds?.forEach((actual, i) => {
		const right = [prior.upper, prior.lower][i]
		if (!close(actual, right === "inf" ? Infinity : right, 1e-9)) wrong.push(["prior", i, actual])
	})
	return wrong
}

test("every mechanism has published laws for every epsilon", () => {
	assert.deepEqual(
		LAWS.map(([name]) => name),
		folder().map(([name]) => name),
	)
	for (const [name, vectors] of LAWS)
		assert.deepEqual(
			[...new Set(vectors.map(({ epsilon }) => epsilon))],
			EPSILONS.filter((epsilon) => !(FINITE.includes(name) && epsilon === "inf")),
			name,
		)
})

for (const [name, vectors] of LAWS)
	test(`${name}: the computed law equals the exact law`, () => {
		for (const vector of vectors) assert.deepEqual(differences(client, vector), [], JSON.stringify(vector))
	})

/** Maximum sequences of decisions to enumerate for one value. */
const MOST_PATHS = 10_000

for (const [name, vectors] of folder())
	test(`${name}: the sampler has the computed law`, () => {
		let compared = 0
		for (const { spec } of vectors.filter(isSmall)) {
			const mechanism = client.readMechanism(spec),
				{
					law,
					domain: { size },
				} = mechanism
			const rows = size > 6 ? [undefined] : places(size).map((x) => distribution(mechanism, x, MOST_PATHS))
			if (rows.includes(undefined)) continue
			compared++
			const reports = new Set(rows.flatMap((row) => [...row.keys()]))
			const columns = [...reports].map((report) => rows.map((row) => row.get(report) ?? 0))
			for (const x of places(size))
				assert.ok(
					close(
						columns.reduce((sum, column) => sum + column[x], 0),
						1,
					),
				)
			const greatest = columns.reduce((sum, column) => sum + Math.max(...column), 0)
			assert.ok(close(greatest, Number(law.greatest[0]) / Number(law.greatest[1])), `${greatest}`)
			for (const x of places(size))
				for (const other of places(size))
					if (x !== other) {
						const ratio = Math.max(
							...columns.filter((column) => column[x]).map((column) => Math.log(column[x] / column[other])),
						)
						assert.ok(close(ratio, law.ratio(x, other)), `${ratio} is not ${law.ratio(x, other)}`)
					}
		}
		assert.ok(compared)
	})

test("a slightly wrong law is detected", async () => {
	const broken = await changed("high = keep * d + low", "high = keep * d + low + (keep >> 30n)")
	assert.ok(published("laws/randomized-response.json").some((vector) => differences(broken, vector).length))
})

test("the probability of a correct guess is 1 only if the report always reveals the value", () => {
	for (const [, vectors] of LAWS)
		for (const { spec, greatest } of vectors) {
			const mechanism = client.readMechanism(spec),
				{ size } = mechanism.domain,
				[n, d] = fraction(greatest)
			const { guess, chance } = client.disclose(mechanism, {
				domain: spec.domain,
				policy: { kind: "uniform", epsilon: "inf" },
			})
			assert.ok(close(guess, Number(n) / Number(d) / size))
			assert.equal(chance, 1 / size)
			assert.equal(guess === 1, n === d * BigInt(size))
		}
})
