// The values that a reply names, and how often a reply names the answer. Both follow from the parameters that the
// sampler
// reads; a test compares them with the exact law. A reply names the values for which it is likeliest.
import { leastKeys, noiseOf, readDesign } from "./sfumato.js"

/** Numerator and denominator. @typedef {[bigint, bigint]} Fraction */
/**
 * Replies about all values, about some attributes of a product (`axes`), or about groups of values (`groups`).
 * `own` is the probability that the reply names the answer x. `other` has the least and the greatest probability that
 * it names
 * another given value; it is absent where the page does not state them. `one`: the reply names one value.
 * @typedef {{ size: number, names: (report: bigint) => number[], own: (x: number) => Fraction, other?: (x: number) =>
 * [Fraction, Fraction],
 *   one: boolean, outputs: bigint, axes?: number[], groups?: number[], scale?: boolean }} Namer
 */
/** `share` is the probability that the reply is about this part. @typedef {Namer & { share: Fraction }} NamedPart */
/** @typedef {{ parts: NamedPart[], read: (report: bigint) => [number, bigint][] }} ReplyReader */

/** Maximum pairs that are compared to state how often a reply names a value that is not the answer. */
const MOST_PAIRS = 2 ** 25
const ONE = 1n << 64n,
	TOTAL = 1n << 62n

const range = (n = 0) => Array.from({ length: n }, (_, i) => i)

/** keep + (1 - keep)·n/d. @returns {Fraction} */
const mixed = (keep = 0n, n = 0n, d = 1n) => [keep * d + (ONE - keep) * n, ONE * d]

/** keep·a/b + (1 - keep)·n/d. @returns {Fraction} */
const blended = (keep = 0n, a = 0n, b = 1n, n = 0n, d = 1n) => [keep * a * d + (ONE - keep) * n * b, ONE * b * d]

/** @param {Fraction} first @param {Fraction} second @returns {Fraction} */
const times = ([a, b], [c, d]) => [a * c, b * d]

/** @param {Fraction[]} terms @returns {Fraction} */
const plus = (terms) =>
	terms.reduce(([a, b], [c, d]) => (b === d ? [a + c, b] : [a * d + c * b, b * d]), /** @type {Fraction} */ ([0n, 1n]))

/** @param {Fraction} first @param {Fraction} second */
const less = ([a, b], [c, d]) => a * d < c * b

/** The least and the greatest of some fractions. @param {Fraction[]} all @returns {[Fraction, Fraction]} */
const extremes = (all) => [all.reduce((a, b) => (less(b, a) ? b : a)), all.reduce((a, b) => (less(a, b) ? b : a))]

/**
 * Positions of the bits of a bitmap among the first k, from a string of digits, because shifts of long numbers are
 * slow.
 */
function bits(set = 0n, k = 0) {
	const digits = set.toString(2),
		last = digits.length - 1
	return range(Math.min(k, digits.length)).filter((i) => digits[last - i] === "1")
}

/** Parts: mechanisms of k values that draw from sets. `keep` is the probability that a report depends on the value,
 * `base` that another report names a given value.
 * @type {Record<string, (p: any, k: number) => Namer & { keep: bigint, bits: number, base: Fraction }>} */
const PARTS = {
	"randomized-response": ({ threshold }, k) => {
		const keep = BigInt(threshold),
			n = BigInt(k),
			own = mixed(keep, 1n, n),
			other = /** @type {Fraction} */ ([ONE - keep, ONE * n])
		return {
			keep,
			base: [1n, n],
			size: k,
			outputs: n,
			bits: 0,
			one: true,
			names: (report) => [Number(report)],
			own: () => own,
			other: () => [other, other],
		}
	},
	"hadamard-response": ({ threshold, block_size: size, blocks }, k) => {
		const keep = BigInt(threshold),
			width = size - 1,
			own = mixed(keep, 1n, 2n * BigInt(blocks)),
			near = blended(keep, 1n, 2n, 1n, 2n * BigInt(blocks))
		const far = /** @type {Fraction} */ ([ONE - keep, ONE * 2n * BigInt(blocks)]),
			even = (n = 0) => n.toString(2).replaceAll("0", "").length % 2 === 0
		/** @returns {[Fraction, Fraction]} */
		const other = (x = 0) => [
			k > width ? far : near,
			Math.min(k - Math.floor(x / width) * width, width) > 1 ? near : far,
		]
		return {
			keep,
			base: [1n, 2n * BigInt(blocks)],
			size: k,
			outputs: BigInt(blocks) * BigInt(size),
			bits: 0,
			one: false,
			own: () => own,
			other,
			names: (report) => {
				const column = Number(report % BigInt(size)),
					first = Number(report / BigInt(size)) * width
				return range(Math.max(0, Math.min(width, k - first)))
					.filter((i) => even(((i + 1) & column) >>> 0))
					.map((i) => first + i)
			},
		}
	},
	"cyclic-design": ({ threshold, design: document }, k) => {
		const keep = BigInt(threshold),
			{ modulus, size, base } = readDesign(document),
			own = mixed(keep, BigInt(size), BigInt(modulus))
		/**
		 * Numbers of elements of the sets whose sum with a difference is in the same set, too.
		 * @type {number[] | undefined}
		 */
		let counts
		/** @returns {[Fraction, Fraction]} */
		const other = (x = 0) => {
			counts ??= base.reduce(
				(all, /** @type {any} */ set) =>
					(
						set.forEach((/** @type {number} */ e) =>
							set.forEach((/** @type {number} */ f) => all[(f - e + modulus) % modulus]++),
						),
						all
					),
				Array(modulus).fill(0),
			)
			const differences = new Set(
				range(k)
					.filter((y) => y !== x)
					.map((y) => /** @type {number[]} */ (counts)[(y - x + modulus) % modulus]),
			)
			return extremes(
				[...differences].map((count) =>
					blended(keep, BigInt(count), BigInt(size * base.length), BigInt(size), BigInt(modulus)),
				),
			)
		}
		const isStated = base.length * size * size <= MOST_PAIRS
		return {
			keep,
			base: [BigInt(size), BigInt(modulus)],
			size: k,
			outputs: BigInt(base.length * modulus),
			bits: 0,
			one: false,
			own: () => own,
			...(isStated && { other }),
			names: (report) => {
				const y = Number(report),
					shift = y % modulus
				return Array.from(base[Math.floor(y / modulus)], (e) => (shift - e + modulus) % modulus)
					.filter((x) => x < k)
					.sort((a, b) => a - b)
			},
		}
	},
	"subset-selection": ({ threshold, size }, k) => {
		const keep = BigInt(threshold),
			[d, n] = [BigInt(size), BigInt(k)],
			own = mixed(keep, d, n),
			other = blended(keep, d - 1n, n - 1n, d, n)
		return {
			keep,
			base: [d, n],
			size: k,
			outputs: 0n,
			bits: k,
			one: size === 1,
			names: (report) => bits(report, k),
			own: () => own,
			other: () => [other, other],
		}
	},
}

/** Number of bits of an index below n. */
const bitsFor = (n = 0n) => (n > 1n ? (n - 1n).toString(2).length : 0)

/**
 * Values in parts; those with place -1 are revealed with the probability `keep` of their part.
 * @param {ReturnType<typeof PARTS[string]>[]} parts
 * @param {number[]} partOf
 * @param {number[]} places
 * @returns {Namer}
 */
function parted(parts, partOf, places) {
	const isIndex = parts.every(({ outputs }) => outputs),
		body = BigInt(Math.max(...parts.map((part) => part.bits || bitsFor(part.outputs))))
	const revealed = range(places.length).filter((x) => places[x] < 0),
		members = parts.map((_, j) => range(places.length).filter((x) => partOf[x] === j && places[x] >= 0))
	const names = (/** @type {bigint} */ report) => {
		let j = 0,
			rest = report
		if (isIndex) for (; j < parts.length && rest >= parts[j].outputs; j++) rest -= parts[j].outputs
		else [j, rest] = [Number(report >> body), report & ((1n << body) - 1n)]
		if (j >= parts.length) return [revealed[isIndex ? Number(rest) : j - parts.length]]
		return parts[j].names(rest).map((place) => members[j][place])
	}
	/** @returns {Fraction} */
	const own = (x = 0) => (places[x] < 0 ? [parts[partOf[x]].keep, ONE] : parts[partOf[x]].own(places[x]))
	/** @returns {[Fraction, Fraction]} */
	const other = (x = 0) => {
		const part = parts[partOf[x]],
			within = range(places.length).filter((y) => y !== x && partOf[y] === partOf[x])
		if (places[x] < 0)
			return [
				[0n, 1n],
				[0n, 1n],
			]
		return extremes([
			...(within.length < places.length - 1 ? [/** @type {Fraction} */ ([0n, 1n])] : []),
			...(within.some((y) => places[y] < 0) ? [times([ONE - part.keep, ONE], part.base)] : []),
			...(within.some((y) => places[y] >= 0) ? (part.other?.(places[x]) ?? []) : []),
		])
	}
	return {
		...(parts.every((part) => part.other) && { other }),
		size: places.length,
		outputs: isIndex ? parts.reduce((all, { outputs }) => all + outputs, BigInt(revealed.length)) : 0n,
		names,
		own,
		one: parts.every(({ one }) => one),
	}
}

/**
 * Values of a table: those with the largest weight of a column; none if all are equal.
 * @param {any} p
 * @param {number} k
 * @returns {Namer}
 */
function table({ weights }, k) {
	const rows = weights.map((/** @type {any[]} */ row) => row.map(BigInt)),
		outputs = rows[0].length
	const named = range(outputs).map((y) => {
		const column = rows.map((/** @type {bigint[]} */ row) => row[y]),
			most = column.reduce((/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b))
		return column.every((/** @type {bigint} */ one) => one === most) ? [] : range(k).filter((x) => column[x] === most)
	})
	const own = Array(k).fill(0n)
	named.forEach((values, y) => values.forEach((x) => (own[x] += rows[x][y])))
	return {
		size: k,
		outputs: BigInt(outputs),
		names: (report) => named[Number(report)],
		own: (x) => [own[x], TOTAL],
		one: named.every(({ length }) => length === 1),
	}
}

/**
 * Status and set of every value: whether its block is high, and whether it is in the set of its block.
 * @param {any} p
 * @param {number} most values of a block
 * @param {number} blocks
 * @returns {{ classes: { low: number, inside: boolean, level: Fraction }[], isTop: (low: number, inside: boolean) =>
 *   boolean, named: number, own: Fraction }} `level` is the probability of one report of a pattern, `named` the number of
 *   positions that a report names
 */
function nested({ thresholds, sizes, high }, most, blocks) {
	const keep = thresholds.map(BigInt)
	const classes = [0, 1]
		.flatMap((low) =>
			[true, false].map((inside) => {
				const size = BigInt(sizes[low]),
					forced = size ? keep[1 + low] : 0n,
					status = low ? ONE - keep[0] : keep[0]
				const odds = /** @type {Fraction} */ (
					inside
						? size
							? mixed(forced, size, BigInt(most))
							: [0n, 1n]
						: [(ONE - forced) * BigInt(most - sizes[low]), ONE * BigInt(most)]
				)
				// The probability of the class per status and per set, as reports of one pattern.
				const room = inside ? size : BigInt(most - sizes[low])
				const ofStatus = low ? blocks - high : high,
					level = times(times([status, ONE * BigInt(ofStatus)], odds), [1n, room || 1n])
				return { low, inside, level, odds: times([status, ONE], odds), positions: ofStatus * Number(room) }
			}),
		)
		.filter(({ positions }) => positions)
	const top = classes.reduce((a, b) => (less(a.level, b.level) ? b : a)),
		tied = classes.filter(({ level }) => !less(level, top.level))
	return {
		classes,
		isTop: (low, inside) =>
			tied.length < classes.length && tied.some((one) => one.low === low && one.inside === inside),
		named: tied.reduce((sum, { positions }) => sum + positions, 0),
		own: plus(tied.map(({ odds }) => odds)),
	}
}

/** @type {Record<string, (p: any, k: number, sizes?: number[]) => Namer | ReplyReader | null>} */
const MECHANISMS = {
	...PARTS,
	table,
	"high-low-mixed-subsets": ({ sensitive, thresholds, sizes, weight: stated }, k) => {
		const s = sensitive.length,
			keep = thresholds.map(BigInt),
			weight = BigInt(stated),
			weights = [ONE - weight, weight],
			others = range(k).filter((x) => !sensitive.includes(x))
		const hidden = plus([0, 1].map((i) => times([weights[i], ONE], mixed(keep[i], BigInt(sizes[i]), BigInt(s))))),
			open = plus([0, 1].map((i) => times([weights[i], ONE], [keep[i], ONE])))
		const whole = (1n << BigInt(s)) - 1n,
			both = (/** @type {(i: number) => Fraction} */ odds) => plus([0, 1].map((i) => times([weights[i], ONE], odds(i))))
		const near =
				s > 1 ? [both((i) => blended(keep[i], BigInt(sizes[i] - 1), BigInt(s - 1), BigInt(sizes[i]), BigInt(s)))] : [],
			far = others.length ? [both((i) => [(ONE - keep[i]) * BigInt(sizes[i]), ONE * BigInt(s)])] : []
		return {
			size: k,
			outputs: 0n,
			one: false,
			own: (x) => (sensitive.includes(x) ? hidden : open),
			other: (x) =>
				sensitive.includes(x)
					? extremes([...near, ...far])
					: [
							[0n, 1n],
							[0n, 1n],
						],
			names: (report) => {
				const kind = Number(report >> BigInt(s))
				if (kind > 1) return [others[kind - 2]]
				return sizes[kind] === s ? [...sensitive] : bits(report & whole, s).map((place) => sensitive[place])
			},
		}
	},
	"unary-encoding": (p, k) => {
		const own = /** @type {Fraction} */ ([BigInt(p.own), ONE]),
			other = /** @type {Fraction} */ ([BigInt(p.other), ONE])
		return {
			size: k,
			outputs: 0n,
			one: false,
			names: (report) => bits(report, k),
			own: () => own,
			other: () => [other, other],
		}
	},
	parts: (p) => {
		const seen = /** @type {number[]} */ ([]),
			open = new Set(p.unprotected),
			places = p.part_of.map((/** @type {number} */ j, /** @type {number} */ x) =>
				open.has(x) ? -1 : (seen[j] = (seen[j] ?? 0) + 1) - 1,
			)
		const kinds = p.kinds.map((/** @type {any} */ { mechanism, size, parameters }) =>
			PARTS[mechanism](parameters, size),
		)
		return parted(
			p.kind.map((/** @type {number} */ kind) => kinds[kind]),
			p.part_of,
			places,
		)
	},
	"composed-subsets": ({ blocks, thresholds, sizes }, k) => {
		const count = Math.max(...blocks) + 1,
			keep = thresholds.map(BigInt)
		const set = (/** @type {number} */ i, /** @type {number} */ n) =>
			PARTS["subset-selection"]({ threshold: keep[i], size: sizes[i] }, n)
		const groups = set(1, count)
		return {
			parts: [
				{ ...set(0, k), share: [1n, 1n] },
				{ ...groups, groups: blocks, own: (x) => groups.own(blocks[x]), share: [1n, 1n] },
			],
			read: (report) => [
				[0, report & ((1n << BigInt(k)) - 1n)],
				[1, report >> BigInt(k)],
			],
		}
	},
	"nested-cyclic": (p, k) => {
		const count = Math.max(...p.blocks) + 1,
			seen = /** @type {number[]} */ ([]),
			places = p.blocks.map((/** @type {number} */ j) => (seen[j] = (seen[j] ?? 0) + 1) - 1),
			size = Math.max(...seen)
		const { classes, isTop, named, own } = nested(p, size, count),
			seed = BigInt(p.seed)
		const blocksOf = (pattern = 0) => {
			const raised = leastKeys(seed, pattern * count, count, p.high)
			return range(count).map((j) => {
				const low = +!raised.includes(j)
				return {
					low,
					set: new Set(leastKeys(seed, p.patterns * count + (pattern * count + j) * size, size, p.sizes[low])),
				}
			})
		}
		/**
		 * Numbers of reports by the difference of two values, of which the second is named, and by the class of the first.
		 * @type {Uint32Array | undefined}
		 */
		let counts
		const countReports = () => {
			const all = new Uint32Array(count * size * classes.length)
			for (let pattern = 0; pattern < p.patterns; pattern++) {
				const cells = blocksOf(pattern).map(({ low, set }) =>
					range(size).map((place) => classes.findIndex((one) => one.low === low && one.inside === set.has(place))),
				)
				const lit = cells.map((block) =>
					range(size).filter((place) => isTop(classes[block[place]].low, classes[block[place]].inside)),
				)
				for (let from = 0; from < count; from++)
					for (let to = 0; to < count; to++) {
						const row = ((to - from + count) % count) * size
						for (const place of lit[to])
							for (let start = 0; start < size; start++) {
								const difference = row + place - start + (place < start ? size : 0)
								all[difference * classes.length + cells[from][start]]++
							}
					}
			}
			return all
		}
		/** @returns {[Fraction, Fraction]} */
		const other = (x = 0) => {
			const known = (counts ??= countReports())
			const kinds = new Map(
				range(k)
					.filter((y) => y !== x)
					.map((y) => {
						const difference =
								((p.blocks[y] - p.blocks[x] + count) % count) * size + ((places[y] - places[x] + size) % size),
							row = known.slice(difference * classes.length, (difference + 1) * classes.length)
						return [row.join(), row]
					}),
			)
			return extremes(
				Array.from(kinds.values(), (row) =>
					plus(classes.map(({ level }, i) => times(level, [BigInt(row[i]), BigInt(p.patterns)]))),
				),
			)
		}
		return {
			size: k,
			outputs: BigInt(p.patterns * count * size),
			one: false,
			own: () => own,
			...(p.patterns * count * size * named <= MOST_PAIRS && { other }),
			names: (report) => {
				const y = Number(report),
					shift = Math.floor(y / size) % count,
					sets = blocksOf(Math.floor(y / (count * size)))
				return range(k).filter((x) => {
					const { low, set } = sets[(p.blocks[x] - shift + count) % count]
					return isTop(low, set.has((places[x] - (y % size) + size) % size))
				})
			},
		}
	},
	"shifted-waves": ({ modulus: v, waves, thresholds }, k) => {
		const all = waves.reduce((/** @type {number} */ sum, /** @type {number[]} */ row) => sum + row[3], 0)
		const sets = waves.map((/** @type {number[]} */ [a, b, d]) =>
			range(v).filter((x) => (2 * a * v * x + (b - a) * x * x) % (2 * v * v) < 2 * v * d),
		)
		const own = plus(
			waves.map((/** @type {number[]} */ row, /** @type {number} */ i) =>
				times([BigInt(row[3]), BigInt(all)], mixed(BigInt(thresholds[i]), BigInt(sets[i].length), BigInt(v))),
			),
		)
		return {
			size: k,
			outputs: BigInt(v * waves.length),
			one: false,
			own: () => own,
			names: (report) => {
				const y = Number(report),
					shift = y % v
				return sets[Math.floor(y / v)]
					.map((/** @type {number} */ e) => (shift + e) % v)
					.filter((/** @type {number} */ x) => x < k)
					.sort((/** @type {number} */ a, /** @type {number} */ b) => a - b)
			},
		}
	},
	"one-bit": ({ positions, step }, k) => {
		const places = positions ? positions.map(BigInt) : range(k).map(BigInt),
			top = places.reduce((/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b)),
			base = (ONE - BigInt(step) * top) / 2n
		return {
			size: k,
			outputs: 2n,
			one: false,
			scale: true,
			names: (report) => range(k).filter((x) => places[x] === (report ? top : 0n)),
			own: (x) => [base + BigInt(step) * places[x], ONE],
		}
	},
	"shifted-bins": ({ width: m, share: stated, thresholds }, k) => {
		const share = BigInt(stated),
			own = plus(
				[share, ONE - share].map((weight, i) =>
					times([weight, ONE], mixed(BigInt(thresholds[i]), 1n, BigInt(Math.ceil(k / m) + 1 - i))),
				),
			)
		return {
			size: k,
			outputs: BigInt(k + m - 1),
			one: false,
			own: () => own,
			names: (report) => range(k).filter((x) => x <= Number(report) && x > Number(report) - m),
		}
	},
	"truncated-geometric": ({ ratio }, k) => {
		const weights = noiseOf(BigInt(ratio), k - 1),
			tail = weights.reduce((a, b) => a + b)
		return {
			size: k,
			outputs: BigInt(k),
			one: true,
			names: (report) => [Number(report)],
			own: (x) => [x % (k - 1) ? weights[0] : tail, TOTAL],
		}
	},
	// A single report of a memoized mechanism has the law of the mechanism that it repeats.
	memoized: ({ mechanism, single }, k, sizes) =>
		Object.hasOwn(MECHANISMS, mechanism) ? MECHANISMS[mechanism](single, k, sizes) : null,
	product: (p) => {
		const parts = p.kind.map((/** @type {number} */ kind, /** @type {number} */ i) => {
			const { mechanism, size, parameters } = p.kinds[kind]
			return { .../** @type {Namer} */ (MECHANISMS[mechanism](parameters, size)), axes: [i], share: [1n, 1n] }
		})
		return {
			parts,
			read: (report) => {
				const digits = /** @type {[number, bigint][]} */ ([])
				for (let i = parts.length - 1; i >= 0; i--) {
					digits.unshift([i, report % parts[i].outputs])
					report /= parts[i].outputs
				}
				return digits
			},
		}
	},
	"sampled-parts": (p, _, sizes = []) => {
		const all = BigInt(p.weights.reduce((/** @type {number} */ sum, /** @type {number} */ weight) => sum + weight, 0))
		/**
		 * Readers of the drawn parts; a product has several components.
		 * @type {{ parts: NamedPart[], read: ReplyReader["read"], outputs: bigint }[]}
		 */
		const drawn = p.kind.map((/** @type {number} */ kind, /** @type {number} */ i) => {
			const { mechanism, size, parameters } = p.kinds[kind],
				reader = readerOf(
					MECHANISMS[mechanism](
						parameters,
						size,
						p.parts[i].map((/** @type {number} */ axis) => sizes[axis]),
					),
				)
			if (!reader) return null
			const parts = reader.parts.map((part) => ({
				...part,
				axes: part.axes ? part.axes.map((axis) => p.parts[i][axis]) : p.parts[i],
				share: times(part.share, [BigInt(p.weights[i]), all]),
			}))
			return { parts, read: reader.read, outputs: parts.reduce((product, { outputs }) => product * outputs, 1n) }
		})
		if (drawn.includes(/** @type {any} */ (null))) return null
		const starts = drawn.map((_, i) => drawn.slice(0, i).reduce((sum, { parts }) => sum + parts.length, 0))
		return {
			parts: drawn.flatMap(({ parts }) => parts),
			read: (report) => {
				let i = 0
				for (; report >= drawn[i].outputs; i++) report -= drawn[i].outputs
				return drawn[i].read(report).map(([at, rest]) => [starts[i] + at, rest])
			},
		}
	},
}

/** @param {Namer | ReplyReader | null} reader @returns {ReplyReader | null} */
const readerOf = (reader) =>
	!reader || "read" in reader ? reader : { parts: [{ ...reader, share: [1n, 1n] }], read: (report) => [[0, report]] }

/**
 * Returns what replies of a mechanism name, or null if this module does not know the mechanism.
 * @param {any} spec
 * @param {number} size of the domain
 * @param {number[]} [sizes] of the factors
 * @returns {ReplyReader | null}
 */
export function replyReader({ mechanism, parameters }, size, sizes) {
	// One reply of a memoized mechanism has the law of its single mechanism.
	if (mechanism === "memoized")
		return replyReader({ mechanism: parameters.mechanism, parameters: parameters.single }, size, sizes)
	const make = Object.hasOwn(MECHANISMS, mechanism) ? MECHANISMS[mechanism] : null
	return make && readerOf(make(parameters, size, sizes))
}

/**
 * Returns the number of a report as it is sent: an index, or the bytes of a number in hexadecimal digits, the lowest
 * first.
 * @param {string} report JSON
 */
export function reportNumber(report) {
	if (!report.startsWith('"')) return BigInt(report)
	const bytes = report.slice(1, -1).match(/../g) ?? []
	return bytes.length ? BigInt(`0x${bytes.reverse().join("")}`) : 0n
}

/**
 * Returns the parts that a reply is about, each with the values that it names.
 * @param {ReplyReader} reader
 * @param {string} report JSON
 * @returns {{ part: NamedPart, values: number[] }[]}
 */
export const readReply = (reader, report) =>
	reader
		.read(reportNumber(report))
		.map(([at, rest]) => ({ part: reader.parts[at], values: reader.parts[at].names(rest) }))
