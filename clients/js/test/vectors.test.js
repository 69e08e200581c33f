// The same random words give the same decisions and reports as in Python.
import assert from "node:assert/strict"
import test from "node:test"
import * as client from "../sfumato.js"
import { changed, folder, fromHex, isSmall, published, replay, toHex, toNumber } from "../testing.js"

/** Returns the names of all mechanisms that the module knows, from its error for an unknown one. */
function known() {
	try {
		client.readMechanism({ mechanism: "" })
	} catch (error) {
		return /be one of (.*); got/.exec(error.message)[1].split(",").sort()
	}
}

test("every mechanism has vectors, and every vector file a mechanism", () => {
	assert.deepEqual(
		folder().map(([name]) => name),
		known(),
	)
})

for (const [name, vectors] of folder())
	test(`${name}: words give the recorded decisions and reports`, () => {
		let cases = 0
		for (const vector of vectors) {
			const result = replay(client, vector)
			assert.deepEqual(result.wrong, [])
			cases += result.cases
		}
		assert.ok(cases >= 10)
	})

/** Faults that change the result for at least one word in 2^16, or that change only the order of decisions. */
const FAULTS = [
	["auxiliary(width - read) < low", "auxiliary(width - read) <= low"],
	["low > 0n && auxiliary", "auxiliary"],
	["while ((value", "if ((value"],
	[
		"const truthful = draws.bernoulli(keep, ONE),",
		"const first = draws.below(k), truthful = draws.bernoulli(keep, ONE),",
	],
	["(x + base[block]", "(modulus - x + base[block]", "cyclic-design"],
	["let root = 2;", "let root = 3;", "cyclic-design"],
	["(i + step - j) % step", "(i + j) % step", "cyclic-design"],
	["sequence[n - 1] = 1", "sequence[0] = 1", "cyclic-design"],
	["base + step *", "base - step + step *", "one-bit"],
	["(x + m - 1 - offset)", "(x + m - offset)", "shifted-bins"],
	["first + draws.below(m - first)", "draws.below(m - first)", "shifted-bins"],
	["weights[last] += left / 2n", "left / 2n", "truncated-geometric"],
	["+ by - 1n) / by", ") / by", "truncated-geometric"],
]

for (const [right, wrong, name = "randomized-response"] of FAULTS)
	test(`a small fault is detected: ${wrong}`, async () => {
		const broken = await changed(right, wrong)
		assert.ok(
			published(`${name}.json`)
				.filter(isSmall)
				.some((vector) => replay(broken, vector).wrong.length),
		)
	})

for (const [name, vectors] of folder("reports/"))
	test(`${name}: reports are serialised as in batches`, () => {
		for (const { spec, good } of vectors) {
			const mechanism = client.readMechanism(spec),
				width = BigInt(Math.max(mechanism.bits, 1))
			for (const { reports, batch } of good) {
				const numbers = reports.map((report) => toNumber(fromHex(report)))
				assert.deepEqual(
					numbers.map((report) => toHex(client.serialise(mechanism, report))),
					reports,
				)
				// After a header of 48 bytes, a batch has the reports without gaps.
				const packed = numbers.reduce((all, report, i) => all | (report << (BigInt(i) * width)), 0n)
				assert.equal(toNumber(fromHex(batch).slice(48)), packed)
			}
		}
	})
