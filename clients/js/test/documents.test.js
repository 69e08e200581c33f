// Documents match their hash, malformed documents are rejected, and randomness has one source.
import assert from "node:assert/strict"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import test from "node:test"
import * as client from "../sfumato.js"
import { changed, collection, folder, isSmall, opened, published, source, toHex, withGlobals } from "../testing.js"

const [{ spec: response, hash: responseHash }] = published("randomized-response.json")
const free = (spec) => JSON.stringify({ domain: spec.domain, policy: { kind: "uniform", epsilon: "inf" } })
const json = (spec) => JSON.stringify(spec)

// -- hashes and labels ----------------------------------------------------------------------------------------

test("specs have the same hash as in Python", async () => {
	for (const path of ["./", "reports/", "laws/"])
		for (const [, vectors] of folder(path))
			for (const { spec, hash } of vectors.filter(isSmall)) {
				const result = await opened(client, collection({ mechanism: json(spec), policy: free(spec), hash }))
				assert.equal(result.domain.size, client.readMechanism(spec).domain.size)
			}
})

test("labels of every kind have the same hash and index as in Python", async () => {
	for (const { mechanism, policy, hash, labels } of published("documents/labels.json")) {
		const { domain } = await opened(client, collection({ mechanism, policy, hash }))
		assert.deepEqual(
			labels.map(domain.place),
			labels.map((_, i) => i),
		)
		for (const other of [null, undefined, "nothing", [], {}, NaN, -1]) assert.equal(domain.place(other), -1)
	}
})

test("numbers have the same hash, labels and index as in Python", async () => {
	for (const { mechanism, policy, hash, labels, cases } of published("documents/numbers.json")) {
		const { domain } = await opened(client, collection({ mechanism, policy, hash }))
		assert.deepEqual([domain.size, labels.map(domain.place)], [labels.length, labels.map((_, i) => i)])
		for (const [value, index] of cases)
			assert.equal(domain.place(value === null ? null : Number(value)), index, `${value} in ${policy}`)
		// Only a stated null or NaN is a missing value, because a call without a value sends a stored answer again.
		for (const other of [undefined, "nothing", "", "1", true, [], {}]) assert.equal(domain.place(other), -1, `${other}`)
	}
})

test("faults in the edges of bins are detected", async () => {
	const entries = published("documents/numbers.json")
	for (const [right, wrong] of [
		["edge < value : edge <= value", "edge <= value : edge < value"],
		["nearest([n, d]) {", "nearest([n, d]) {\n\treturn Number(n) / Number(d) * (1 + Number.EPSILON)"],
		["(place(value) < 0 && isMissing(value) ? size : place(value))", "place(value)"],
		["const at = Math.min(Math.max(value, first), first + size - 1)", "const at = value"],
	]) {
		const { readMechanism } = await changed(right, wrong)
		const differ = entries.some(({ mechanism, cases }) => {
			const { domain } = readMechanism(JSON.parse(mechanism))
			return cases.some(([value, index]) => domain.place(value === null ? null : Number(value)) !== index)
		})
		assert.ok(differ, wrong)
	}
})

test("malformed bounds are rejected", () => {
	for (const domain of [
		{ low: "0", high: "x", bins: 5 },
		{ low: 0, high: 5, bins: 1.5 },
		{ low: 5, high: 5 },
		{ low: 0.5, high: 5 },
		{ edges: [0, "1e3"] },
		{ edges: 3 },
	])
		assert.throws(() => client.readMechanism({ ...response, domain }), { name: "InvalidInput" }, JSON.stringify(domain))
})

test("a value has an index only if it equals a label exactly", () => {
	const { domain } = client.readMechanism({ ...response, domain: { values: ["1", "2", "3", "4", "5"] } })
	assert.deepEqual([1, null, "6", [], true, "5"].map(domain.place), [-1, -1, -1, -1, -1, 4])
})

// -- rejected documents ---------------------------------------------------------------------------------------

/** Returns the name of the error. */
const refusal = async (document, address) =>
	opened(client, document, address).then(
		() => "opened",
		(error) => error.name,
	)

test("a mechanism that does not match its hash is rejected", async () => {
	const changed = { ...response, parameters: { ...response.parameters, threshold: `${2n ** 64n}` } }
	assert.equal(
		await refusal(collection({ mechanism: json(response), policy: free(response), hash: responseHash })),
		"opened",
	)
	assert.equal(
		await refusal(collection({ mechanism: json(changed), policy: free(response), hash: responseHash })),
		"HashMismatch",
	)
	// Another spelling of a number is another document.
	const respelled = json(response).replace('"version":1', '"version":1.0')
	assert.equal(
		await refusal(collection({ mechanism: respelled, policy: free(response), hash: responseHash })),
		"HashMismatch",
	)
})

test("a policy over another domain, or stricter than the mechanism, is rejected", async () => {
	const other = free({ domain: { size: client.readMechanism(response).domain.size + 1 } })
	assert.equal(
		await refusal(collection({ mechanism: json(response), policy: other, hash: responseHash })),
		"InvalidInput",
	)
	const strict = json({ domain: response.domain, policy: { kind: "uniform", epsilon: "1/1000" } })
	assert.equal(
		await refusal(collection({ mechanism: json(response), policy: strict, hash: responseHash })),
		"PolicyViolated",
	)
})

test("a collection has one address", async () => {
	const document = collection({ mechanism: json(response), policy: free(response), hash: responseHash })
	for (const path of [
		"collections/%61bc",
		"collections/abc?",
		"collections/abc#",
		"%63ollections/abc",
		"collections/other",
	]) {
		assert.equal(await refusal(document, `https://collector.example/v1/${path}`), "InvalidInput", path)
	}
})

test("unknown specs are rejected, and the error names them", () => {
	for (const [change, named] of [
		[{ mechanism: "quantum-response" }, /quantum-response/],
		[{ mechanism: "constructor" }, /constructor/],
		[{ mechanism: "__proto__" }, /__proto__/],
		[{ version: 2 }, /got 2/],
		[{ domain: { file: "labels.csv" } }, /labels.csv/],
	])
		assert.throws(() => client.readMechanism({ ...response, ...change }), { name: "UnknownSpec", message: named })
})

test("wrong parameters are rejected", () => {
	for (const threshold of [
		"-1",
		"1e3",
		"1.5",
		`${2n ** 64n + 1n}`,
		"",
		" 1",
		"01",
		"0x10",
		0.5,
		null,
		true,
		[1],
		2 ** 60,
		undefined,
	]) {
		const parameters = { ...response.parameters, threshold }
		assert.throws(() => client.readMechanism({ ...response, parameters }), { name: "InvalidInput" }, `${threshold}`)
	}
	const half = `${2n ** 61n}`,
		whole = `${2n ** 62n}`,
		[{ spec: table }] = published("table.json")
	for (const weights of [
		[
			[half, `${2n ** 61n - 1n}`],
			[whole, "0"],
		],
		[[whole], [half, half]],
		[[whole, "0"]],
		[],
		null,
	]) {
		const changed = { ...table, domain: { size: 2 }, parameters: { ...table.parameters, weights } }
		assert.throws(() => client.readMechanism(changed), { name: "InvalidInput" })
	}
})

test("layouts whose decisions share bits, or read bits that are not drawn, are rejected", () => {
	const { layout } = response
	for (const change of [
		{ lanes: 2 ** 53 },
		{
			numbers: [
				[16, 32],
				[0, 32],
			],
		},
		{
			numbers: [
				[32, 32],
				[0, 33],
			],
		},
		{
			numbers: [
				[33, 32],
				[0, 32],
			],
		},
		{
			numbers: [
				[-1, 32],
				[32, 32],
			],
		},
		...[3, 7, 63].map((bits) => ({ frame_bits: bits, numbers: [[0, bits]] })),
	])
		assert.throws(() => client.readMechanism({ ...response, layout: { ...layout, ...change } }), {
			name: "InvalidInput",
		})
	assert.throws(() => client.bitDraws(() => 0n, layout, new Uint8Array(7)), { name: "InvalidInput" })
	const narrow = client.readMechanism({
		...response,
		layout: {
			...layout,
			numbers: [
				[32, 32],
				[0, 2],
			],
		},
	})
	assert.throws(() => client.privatize(narrow, 0), { name: "InvalidInput", message: /choose among/ })
})

/** Values of every JSON type. */
const STRANGE = [null, true, -1, 2 ** 70, 1.5, "x", "inf", "\ud800", [], [[]], [1, 2], {}, { x: 1 }]

/** Yields the document with one part left out, or replaced by another value; in a list, only its first item. */
function* others(document) {
	if (Array.isArray(document)) {
		if (!document.length) return
		yield document.slice(1)
		for (const other of [...STRANGE, ...others(document[0])]) yield [other, ...document.slice(1)]
	} else if (document && typeof document === "object") {
		for (const [key, part] of Object.entries(document)) {
			yield Object.fromEntries(Object.entries(document).filter(([other]) => other !== key))
			for (const other of [...STRANGE, ...others(part)]) yield { ...document, [key]: other }
		}
	}
}

test("a changed spec is rejected, or is another mechanism with a valid law", () => {
	let refused = 0
	for (const [name, vectors] of folder()) {
		const size = ({ spec }) => client.readMechanism(spec).domain.size,
			[{ spec }] = vectors.filter(isSmall).sort((a, b) => size(a) - size(b))
		for (const other of others(spec)) {
			let mechanism
			try {
				mechanism = client.readMechanism(other)
			} catch (error) {
				assert.ok(error instanceof Error)
				refused++
				continue
			}
			const {
				law: {
					greatest: [n, d],
				},
				domain: { size },
			} = mechanism
			// An empty domain has no law to check.
			assert.ok(!size || (d > 0n && n >= d && n <= d * BigInt(size)), `${name}: ${json(other)}`)
		}
	}
	assert.ok(refused > 1000)
})

/** Yields the document with one number replaced by a large one; in a list, only in its first two items. */
function* enlarged(document) {
	if (typeof document === "number") yield* [2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, -(2 ** 31)]
	else if (document && typeof document === "object")
		for (const [key, part] of Object.entries(document).slice(0, Array.isArray(document) ? 2 : undefined)) {
			for (const other of enlarged(part))
				yield Array.isArray(document) ? Object.assign([...document], { [key]: other }) : { ...document, [key]: other }
		}
}

test("no number of a spec reserves memory before it is checked", async () => {
	let refused = 0
	const real = Uint8Array,
		bounded = (length) => assert.ok(!(length > 2 ** 26), `an array of ${length} items`)
	class Bounded extends real {
		constructor(...parts) {
			bounded(parts[0])
			super(...parts)
		}
	}
	const boundedArray = (length) => (bounded(length), Array(length)),
		watched = await changed("...Array(", "...boundedArray(")
	await withGlobals({ Uint8Array: Bounded, boundedArray }, async () => {
		for (const [name, vectors] of folder())
			for (const { spec } of vectors.filter(isSmall).slice(0, 2))
				for (const other of enlarged(spec)) {
					try {
						const mechanism = watched.readMechanism(other)
						watched.disclose(mechanism, { domain: other.domain, policy: { kind: "uniform", epsilon: "inf" } })
						watched.serialise(mechanism, watched.privatize(mechanism, 0))
					} catch (error) {
						// The engine limits the length of a BigInt itself.
						assert.match(
							error.name,
							/InvalidInput|UnknownSpec|PolicyViolated|RangeError/,
							`${name}: ${error.message}: ${json(other)}`,
						)
						refused++
					}
				}
	})
	assert.ok(refused > 500)
})

// -- randomness -----------------------------------------------------------------------------------------------

/** Runs a function while random bytes are recorded and no other randomness is allowed. */
function recorded(run) {
	const calls = [],
		real = crypto
	const getRandomValues = (array) => {
		assert.ok(array.byteLength <= 65536)
		real.getRandomValues(array)
		calls.push(Uint8Array.from(array))
		return array
	}
	const random = Math.random
	Math.random = () => assert.fail("Math.random was called")
	return withGlobals({ crypto: { getRandomValues } }, () => run(calls)).finally(() => (Math.random = random))
}

test("a report depends only on bytes from crypto.getRandomValues", async () => {
	for (const [, vectors] of folder())
		for (const { spec } of vectors.filter(isSmall).slice(0, 2))
			await recorded((calls) => {
				const mechanism = client.readMechanism(spec),
					x = mechanism.domain.size - 1,
					layout = mechanism.layoutOf(x)
				const report = client.privatize(mechanism, x),
					[frame, ...words] = calls
				assert.equal(8 * frame.length, layout.frame_bits)
				assert.ok(words.every((word) => word.length === 8))
				const auxiliary = (width) => BigInt.asUintN(width, BigInt(`0x${toHex(words.shift())}`))
				assert.equal(mechanism.sample(x, client.bitDraws(auxiliary, layout, frame)), report)
				assert.equal(words.length, 0)
			})
})

test("a frame of more than 64 KiB is drawn in parts", async () => {
	const mechanism = client.readMechanism({ ...response, layout: { ...response.layout, frame_bits: 8 * 70_000 } })
	await recorded((calls) => {
		client.privatize(mechanism, 0)
		assert.deepEqual(calls.map(({ length }) => length).slice(0, 2), [65536, 70_000 - 65536])
		// A part that stays 0 was not drawn; the probability of that by chance is 2^-32000.
		assert.ok(calls.slice(0, 2).every((part) => part.some(Boolean)))
	})
})

test("the module has one source of randomness, no dependencies and no code from strings", () => {
	const code = source()
	assert.equal(code.match(/getRandomValues/g).length, 1)
	assert.doesNotMatch(code, /Math\.random|randomUUID|Date\b|performance\b|eval\(|Function\(|https?:\/\//)
	assert.doesNotMatch(code, /^\s*(import|export)\b.*\bfrom\b|\bimport\(|\brequire\(/m)
})

// -- loading in a page ----------------------------------------------------------------------------------------

test("the module does not load in an insecure page, and begins to send in a secure page", async () => {
	const load = (globals) =>
		withGlobals(globals, () => import(`data:text/javascript,${encodeURIComponent(source())}//${Math.random()}`))
	const location = { href: "http://collector.example/", origin: "http://collector.example" }
	await assert.rejects(load({ location, isSecureContext: false }), { name: "InsecurePage" })
	const listened = [],
		locked = []
	const navigator = { locks: { request: async (name) => locked.push(name) } }
	await load({ location, isSecureContext: true, addEventListener: (name) => listened.push(name), navigator })
	assert.deepEqual([listened, locked], [["online"], ["sfumato"]])
})

test("the example in the README runs", async () => {
	const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
	const code = [...readme.matchAll(/^```js\n(.*?)^```$/gms)]
		.map(([, block]) => block)
		.find((block) => block.includes("./sfumato.js"))
	const file = new URL(`../.readme-${process.pid}.mjs`, import.meta.url),
		printed = [],
		log = console.log
	writeFileSync(file, code)
	try {
		console.log = (...values) => printed.push(values.join(" "))
		await import(file.href)
	} finally {
		console.log = log
		rmSync(file)
	}
	const shown = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, comment]) => comment)
	assert.ok(shown.length > 2)
	assert.deepEqual(printed.slice(0, shown.length - 1), shown.slice(0, -1))
	assert.match(printed.at(-1), /^[0-9a-f]{2}$/)
})
