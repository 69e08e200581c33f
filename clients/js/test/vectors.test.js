// Random words become the decisions and reports that Python makes of them.
import assert from "node:assert/strict"
import test from "node:test"
import * as client from "../sfumato.js"
import { changed, folder, fromHex, isSmall, published, replay, toHex, toNumber } from "../testing.js"

/** The names of all mechanisms that the module knows: it lists them where it refuses another. */
function known() {
	try {
		client.readMechanism({ mechanism: "" })
	} catch (error) {
		return /be one of (.*); got/.exec(error.message)[1].split(",").sort()
	}
}

test("every mechanism has vectors, and every vector file a mechanism", () => {
	assert.deepEqual(folder().map(([name]) => name), known())
})

for (const [name, vectors] of folder()) test(`${name}: words give the recorded decisions and reports`, () => {
	let cases = 0
	for (const vector of vectors) {
		const found = replay(client, vector)
		assert.deepEqual(found.wrong, [])
		cases += found.cases
	}
	assert.ok(cases >= 10)
})

/** Faults that show in one word of 2^16 or fewer, or in the order of decisions alone. */
const FAULTS = [
	["auxiliary(width - read) < low", "auxiliary(width - read) <= low"],
	["low > 0n && auxiliary", "auxiliary"],
	["while ((value", "if ((value"],
	["const kept = draws.bernoulli(keep, ONE),", "const first = draws.below(k), kept = draws.bernoulli(keep, ONE),"],
]

for (const [right, wrong] of FAULTS) test(`a small fault shows: ${wrong}`, async () => {
	const broken = await changed(right, wrong)
	assert.ok(published("randomized-response.json").filter(isSmall).some((vector) => replay(broken, vector).wrong.length))
})

for (const [name, vectors] of folder("reports/")) test(`${name}: reports are serialised as batches have them`, () => {
	for (const { spec, good } of vectors) {
		const mechanism = client.readMechanism(spec), width = BigInt(Math.max(mechanism.bits, 1))
		for (const { reports, batch } of good) {
			const numbers = reports.map((report) => toNumber(fromHex(report)))
			assert.deepEqual(numbers.map((report) => toHex(client.serialise(mechanism, report))), reports)
			// After a header of 48 bytes, report after report without gaps.
			const packed = numbers.reduce((all, report, i) => all | (report << (BigInt(i) * width)), 0n)
			assert.equal(toNumber(fromHex(batch).slice(48)), packed)
		}
	}
})
